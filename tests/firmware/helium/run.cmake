# cmake -DSOURCE=repository -DGENERATED=folder of kernels/list.def -DWORK=folder -DFVP=carina-fvp -P run.cmake
# Builds kernels.cpp with the runtime for Cortex-M33 (no Helium) and for Cortex-M55, runs both on the virtual platform's Cortex-M55
# and compares what they print.
find_program(CXX arm-none-eabi-g++ REQUIRED)
set(here "${SOURCE}/tests/firmware/helium")
file(MAKE_DIRECTORY "${WORK}")
file(GLOB kernels "${SOURCE}/runtime/kernels/int8*.cpp" "${SOURCE}/runtime/kernels/*quantize.cpp")
foreach(name call channels region stream)
  list(APPEND kernels "${SOURCE}/runtime/kernels/${name}.cpp")
endforeach()

function(build_and_run name)
  execute_process(
    COMMAND "${CXX}" ${ARGN} -mthumb -mfloat-abi=hard -std=c++17 -Os -ffunction-sections -fdata-sections -fno-exceptions -fno-rtti
      -fno-math-errno -ffp-contract=off -fno-threadsafe-statics -Wall -Wextra -Werror "-I${SOURCE}/runtime/include"
      "-I${SOURCE}/runtime" "-I${GENERATED}" "${here}/kernels.cpp" ${kernels} "${SOURCE}/runtime/src/kernel.cpp" -nostartfiles --specs=nano.specs
      -Wl,--gc-sections "-Wl,-T,${here}/corstone-300.ld" -o "${WORK}/${name}.elf"
    RESULT_VARIABLE failed ERROR_VARIABLE errors)
  if(failed)
    message(FATAL_ERROR "${name} does not build:\n${errors}")
  endif()
  execute_process(
    COMMAND "${FVP}" -C cpu0.semihosting-enable=1 "${WORK}/${name}.elf"
    TIMEOUT 120 RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE printed)
  if(failed)
    message(FATAL_ERROR "${name} ends with ${failed}:\n${output}${printed}")
  endif()
  set(${name} "${output}${printed}" PARENT_SCOPE)
endfunction()

build_and_run(plain -mcpu=cortex-m33 -mfpu=fpv5-sp-d16)
build_and_run(helium -mcpu=cortex-m55)

string(REGEX MATCHALL "\n" lines "${plain}")
list(LENGTH lines count)
if(count LESS 150 OR plain MATCHES "0000dead")
  message(FATAL_ERROR "${count} checksums, or a refused call:\n${plain}")
endif()
if(NOT plain STREQUAL helium)
  message(FATAL_ERROR "Helium computes other bits.\nplain:\n${plain}\nHelium:\n${helium}")
endif()
# The second build must use Helium.
execute_process(
  COMMAND "${CXX}" -mcpu=cortex-m55 -mthumb -mfloat-abi=hard -std=c++17 -Os -I${SOURCE}/runtime/include -I${SOURCE}/runtime -S -o -
    "${SOURCE}/runtime/kernels/int8_runs_helium.cpp"
  OUTPUT_VARIABLE assembly COMMAND_ERROR_IS_FATAL ANY)
if(NOT assembly MATCHES "vmladava" OR NOT assembly MATCHES "vqrdmulh")
  message(FATAL_ERROR "the Cortex-M55 build has no Helium instructions")
endif()
message("${count} calls give the same bits with and without Helium")
