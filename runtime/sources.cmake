# The runtime's sources, for this build and for the cross build of the firmware.
set(CARINA_RUNTIME_SOURCES
  kernels/activation.cpp
  kernels/all.cpp
  kernels/binary.cpp
  kernels/call.cpp
  kernels/channels.cpp
  kernels/conv.cpp
  kernels/convert.cpp
  kernels/create.cpp
  kernels/cut.cpp
  kernels/dequantize.cpp
  kernels/grid_sampler.cpp
  kernels/index.cpp
  kernels/int8.cpp
  kernels/int8_matrix.cpp
  kernels/int8_runs.cpp
  kernels/int8_runs_helium.cpp
  kernels/join.cpp
  kernels/layout.cpp
  kernels/matmul.cpp
  kernels/norm.cpp
  kernels/pad.cpp
  kernels/pool.cpp
  kernels/quantize.cpp
  kernels/reduce.cpp
  kernels/reduction.cpp
  kernels/region.cpp
  kernels/repeat.cpp
  kernels/resize.cpp
  kernels/softmax.cpp
  kernels/stream.cpp
  kernels/unary.cpp
  src/c_api.cpp
  src/ethosu_delegate.cpp
  src/ethosu_driver.cpp
  src/ethosu_validator.cpp
  src/flatbuffer.cpp
  src/kernel.cpp
  src/method.cpp
  src/plan_reader.cpp
  src/program.cpp
  src/status.cpp
  src/tokenizer.cpp
  src/words.cpp)

# kernels/list.def, from the rows of operators.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(CARINA_RUNTIME_GENERATED "${CMAKE_BINARY_DIR}/gen/runtime")
set(operator_rows "${CMAKE_CURRENT_LIST_DIR}/../src/aten")
set(kernel_list_script "${CMAKE_CURRENT_LIST_DIR}/../scripts/gen_kernel_list.py")
file(GLOB operator_families CONFIGURE_DEPENDS "${operator_rows}/operators/*.json")
execute_process(
  COMMAND "${Python3_EXECUTABLE}" "${kernel_list_script}" "${operator_rows}/schemas.json" "${operator_rows}/operators"
          "${CARINA_RUNTIME_GENERATED}/kernels/list.def"
  COMMAND_ERROR_IS_FATAL ANY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  "${operator_rows}/schemas.json" ${operator_families} "${kernel_list_script}" "${CMAKE_CURRENT_LIST_DIR}/../scripts/operator_rows.py")
