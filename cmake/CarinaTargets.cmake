# Code that nobody waits for. g++ compiles -O1 in a third more time than -Og, which inlines too little: with two of -O1's passes its
# code is a seventh smaller, and compiles no slower.
set(CARINA_COLD_OPTIONS $<$<CONFIG:Release>:-Og>)
foreach(pass IN ITEMS -finline-small-functions -finline-functions-called-once)
  list(APPEND CARINA_COLD_OPTIONS $<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:${pass}>)
endforeach()

# The standard library's headers and fmt's, parsed once for the libraries' cold files and once for the hot ones (a precompiled header
# goes with one set of flags): a second of what a group of files took. Only headers that do not change and that most groups include:
# loading a larger one costs the others more than it saves. Every file includes what it uses all the same.
set(CARINA_COMMON_HEADERS <algorithm> <array> <bit> <charconv> <cmath> <cstdint> <cstring> <filesystem> <fstream> <functional> <limits> <map>
  <memory> <numeric> <optional> <set> <span> <sstream> <string> <string_view> <unordered_map> <unordered_set> <utility> <variant> <vector>
  <fmt/format.h>)
foreach(part IN ITEMS carina_headers carina_headers_hot)
  add_library(${part} OBJECT "${PROJECT_SOURCE_DIR}/cmake/headers.cpp")
  target_precompile_headers(${part} PRIVATE ${CARINA_COMMON_HEADERS})
  set_target_properties(${part} PROPERTIES UNITY_BUILD OFF)  # one file, whose precompiled header the others name
  target_link_libraries(${part} PRIVATE fmt::fmt)
endforeach()
target_compile_options(carina_headers PRIVATE ${CARINA_COLD_OPTIONS})

# carina_library(NAME [SOURCES file...] [HOT file...] [DEPS target...] [PRIVATE_DEPS target...])
# One static library per floor, target carina_NAME, alias carina::NAME. Headers are included as "NAME/file.hpp".
# HOT: files whose loops are what compiling or running a network takes. Others are optimized less, which saves about a third of
# their build time.
function(carina_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;HOT;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(carina_${name} STATIC ${ARG_SOURCES})
  set(parts carina_${name})
  if(ARG_HOT)
    add_library(carina_${name}_hot OBJECT ${ARG_HOT})
    target_sources(carina_${name} PRIVATE $<TARGET_OBJECTS:carina_${name}_hot>)
    list(APPEND parts carina_${name}_hot)
  endif()
  foreach(part IN LISTS parts)
    target_include_directories(${part} PUBLIC "${PROJECT_SOURCE_DIR}/src" "${PROJECT_BINARY_DIR}/gen")
    target_link_libraries(${part} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
  endforeach()
  target_compile_options(carina_${name} PRIVATE ${CARINA_COLD_OPTIONS})
  set_target_properties(carina_${name} PROPERTIES UNITY_BUILD_BATCH_SIZE ${CARINA_COLD_BATCH})
  target_precompile_headers(carina_${name} REUSE_FROM carina_headers)
  if(ARG_HOT)
    target_precompile_headers(carina_${name}_hot REUSE_FROM carina_headers_hot)
  endif()
  add_library(carina::${name} ALIAS carina_${name})
endfunction()

# GoogleTest's and RapidCheck's headers, parsed once for all test programs: three of six seconds a file. Only headers that do not
# change, and every file includes what it uses: it compiles without them, too (-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON).
if(CARINA_TESTS)
  add_executable(carina_test_headers "${PROJECT_SOURCE_DIR}/tests/support/test_headers.cpp")
  target_precompile_headers(carina_test_headers PRIVATE <algorithm> <fstream> <functional> <map> <gmock/gmock.h> <gtest/gtest.h> <rapidcheck/gtest.h>)
  target_compile_options(carina_test_headers PRIVATE ${CARINA_COLD_OPTIONS})
  set_target_properties(carina_test_headers PROPERTIES UNITY_BUILD OFF)  # one file, whose precompiled header the others name
  target_link_libraries(carina_test_headers PRIVATE GTest::gmock_main rapidcheck)
endif()

# carina_test(NAME LABEL unit|conformance|e2e|firmware SOURCES file... DEPS target...)
# One GoogleTest program per module; every TEST is a ctest test of its own. tests/support finds the repository
# and the larger suites for them. Graphs are verified after each pass (ir/verifier.hpp).
function(carina_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock_main rapidcheck)
  target_precompile_headers(${name} REUSE_FROM carina_test_headers)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT CARINA_VERIFY_EACH_PASS=1)
endfunction()

# carina_fuzz(NAME IN program DEPS target...): the target of fuzz/NAME_fuzz.cpp. With CARINA_FUZZ a libFuzzer program, NAME_fuzz;
# otherwise part of the program that replays corpora, and a test fuzz.NAME_fuzz, where there is a committed corpus fuzz/corpus/NAME.
function(carina_fuzz name)
  cmake_parse_arguments(ARG "" "IN" "DEPS" ${ARGN})
  set(corpus "${PROJECT_SOURCE_DIR}/fuzz/corpus/${name}")
  if(CARINA_FUZZ)
    add_executable(${name}_fuzz ${name}_fuzz.cpp)
    target_compile_definitions(${name}_fuzz PRIVATE CARINA_FUZZ)
    target_link_libraries(${name}_fuzz PRIVATE ${ARG_DEPS})
    target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  elseif(CARINA_TESTS AND IS_DIRECTORY "${corpus}")
    target_sources(${ARG_IN} PRIVATE ${name}_fuzz.cpp)
    target_link_libraries(${ARG_IN} PRIVATE ${ARG_DEPS})
    add_test(NAME fuzz.${name}_fuzz COMMAND ${ARG_IN} ${name} "${corpus}")
    set_tests_properties(fuzz.${name}_fuzz PROPERTIES LABELS conformance TIMEOUT 600)
  endif()
endfunction()

# carina_dialect(TARGET NAME TABLE.json): generates gen/NAME/ops.hpp and ops.cpp from an operator table and adds them to the
# target. The table's "header" is "NAME/ops.hpp".
function(carina_dialect target name table)
  get_filename_component(table_path "${table}" ABSOLUTE)
  set(out "${PROJECT_BINARY_DIR}/gen/${name}")
  add_custom_command(OUTPUT "${out}/ops.hpp" "${out}/ops.cpp"
    COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/scripts/gen_dialect.py" "${table_path}" "${out}"
    COMMAND "${CMAKE_COMMAND}" -E touch "${out}/ops.hpp" "${out}/ops.cpp"
    DEPENDS "${table_path}" "${PROJECT_SOURCE_DIR}/scripts/gen_dialect.py" VERBATIM)
  target_sources(${target} PRIVATE "${out}/ops.cpp" "${out}/ops.hpp")
  add_custom_target(${target}_ops DEPENDS "${out}/ops.hpp")
  add_dependencies(${target} ${target}_ops)
  if(TARGET ${target}_hot)
    add_dependencies(${target}_hot ${target}_ops)
  endif()
endfunction()
