# cmake -DSOURCE=repository -DWORK=folder -DLIMIT=bytes -P footprint_test.cmake
# Builds the runtime for Cortex-M33 with -Os and checks the size of what a delegated network links.
find_program(CXX arm-none-eabi-g++ REQUIRED)
find_program(SIZE arm-none-eabi-size REQUIRED)
find_program(NM arm-none-eabi-nm REQUIRED)
include("${SOURCE}/runtime/sources.cmake")
list(TRANSFORM CARINA_RUNTIME_SOURCES PREPEND "${SOURCE}/runtime/")
file(MAKE_DIRECTORY "${WORK}")
execute_process(
  COMMAND "${CXX}" -std=c++17 -Os -mcpu=cortex-m33 -mthumb -mfpu=fpv5-sp-d16 -mfloat-abi=hard -ffunction-sections -fdata-sections
    -fno-exceptions -fno-rtti -fno-math-errno -ffp-contract=off -fno-threadsafe-statics -fno-unwind-tables
    -fno-asynchronous-unwind-tables -Wall -Wextra -Wpedantic -Wnon-virtual-dtor -Werror
    "-I${SOURCE}/runtime/include" "-I${SOURCE}/runtime" "-I${SOURCE}/runtime/src"
    ${CARINA_RUNTIME_SOURCES} "${SOURCE}/tests/firmware/footprint.cpp"
    -nostartfiles --specs=nano.specs -Wl,--gc-sections -o "${WORK}/footprint.elf"
  RESULT_VARIABLE failed ERROR_VARIABLE errors)
if(failed)
  message(FATAL_ERROR "the runtime does not build for Cortex-M33:\n${errors}")
endif()
execute_process(COMMAND "${SIZE}" "${WORK}/footprint.elf" OUTPUT_VARIABLE table COMMAND_ERROR_IS_FATAL ANY)
message("${table}")
string(REGEX MATCH "\n *([0-9]+)" _ "${table}")
set(text ${CMAKE_MATCH_1})
if(NOT text LESS LIMIT)
  message(FATAL_ERROR "${text} bytes of code and constants; the budget is ${LIMIT}")
endif()
if(text LESS 8192)
  message(FATAL_ERROR "${text} bytes cannot be the whole runtime: the linker dropped it")
endif()
execute_process(COMMAND "${NM}" "${WORK}/footprint.elf" OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCH " (malloc|_malloc_r|free|printf|_printf_r|__cxa_throw|_Znwj)\n" forbidden "${symbols}")
if(forbidden)
  message(FATAL_ERROR "heap, stdio or exceptions are linked:${forbidden}")
endif()
