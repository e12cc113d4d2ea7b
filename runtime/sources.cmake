# The runtime's sources, for this build and for the cross build of the firmware.
set(CARINA_RUNTIME_SOURCES
  src/ethosu_delegate.cpp
  src/ethosu_driver.cpp
  src/flatbuffer.cpp
  src/kernel.cpp
  src/kernels/all.cpp
  src/kernels/channels.cpp
  src/kernels/clamp.cpp
  src/kernels/convert.cpp
  src/kernels/dequantize.cpp
  src/kernels/layout.cpp
  src/kernels/quantize.cpp
  src/method.cpp
  src/plan_reader.cpp
  src/program.cpp
  src/status.cpp)
