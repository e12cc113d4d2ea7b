# The runtime's sources, for this build and for the cross build of the firmware.
set(CARINA_RUNTIME_SOURCES
  kernels/all.cpp
  kernels/channels.cpp
  kernels/clamp.cpp
  kernels/convert.cpp
  kernels/dequantize.cpp
  kernels/layout.cpp
  kernels/quantize.cpp
  src/ethosu_delegate.cpp
  src/ethosu_driver.cpp
  src/flatbuffer.cpp
  src/kernel.cpp
  src/method.cpp
  src/plan_reader.cpp
  src/program.cpp
  src/status.cpp)
