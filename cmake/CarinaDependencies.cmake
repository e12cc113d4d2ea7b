# Everything comes from Debian packages (scripts/deps.sh installs them).
include(GoogleTest)
find_package(GTest REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(toml11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(simdjson REQUIRED)
find_package(TBB REQUIRED)
find_package(benchmark REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
find_package(PkgConfig REQUIRED)
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)
# Small C libraries become part of the programs where their packages have an archive: each shared one costs every start a tenth of a
# millisecond.
set(shared_suffixes ${CMAKE_FIND_LIBRARY_SUFFIXES})
list(PREPEND CMAKE_FIND_LIBRARY_SUFFIXES .a)
pkg_check_modules(zlib REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(md REQUIRED IMPORTED_TARGET libmd)
pkg_check_modules(inih REQUIRED IMPORTED_TARGET INIReader inih)
pkg_check_modules(stb REQUIRED IMPORTED_TARGET stb)
set(CMAKE_FIND_LIBRARY_SUFFIXES ${shared_suffixes})
find_program(FLATC flatc REQUIRED)
# Optional (Debian: libopenmpi-dev, openmpi-bin). Leak checkers find what it keeps.
if(CARINA_MPI AND NOT CARINA_SANITIZE)
  find_package(MPI QUIET COMPONENTS C)
endif()

# The package's own CMake file asks for OpenCL development files that only its GPU engine needs. Headers only: the library is
# loaded when it is needed (src/onednn/library.cpp).
if(NOT TARGET DNNL::dnnl)
  find_library(DNNL_LIBRARY dnnl REQUIRED)
  find_path(DNNL_INCLUDE dnnl.hpp REQUIRED)
  add_library(DNNL::dnnl INTERFACE IMPORTED)
  target_include_directories(DNNL::dnnl SYSTEM INTERFACE "${DNNL_INCLUDE}")
  target_link_libraries(DNNL::dnnl INTERFACE ${CMAKE_DL_LIBS})
endif()

# RapidCheck ships headers and a static library without a CMake package.
if(NOT TARGET rapidcheck)
  find_library(RAPIDCHECK_LIBRARY rapidcheck REQUIRED)
  find_path(RAPIDCHECK_INCLUDE rapidcheck.h REQUIRED)
  add_library(rapidcheck INTERFACE IMPORTED)
  target_include_directories(rapidcheck SYSTEM INTERFACE "${RAPIDCHECK_INCLUDE}")
  target_link_libraries(rapidcheck INTERFACE "${RAPIDCHECK_LIBRARY}")
endif()

# carina_flatbuffer(TARGET schema.fbs): generates gen/NAME_generated.h for one of our own schemas.
function(carina_flatbuffer target schema)
  get_filename_component(stem "${schema}" NAME_WE)
  set(out "${PROJECT_BINARY_DIR}/gen/${stem}_generated.h")
  add_custom_command(OUTPUT "${out}"
    COMMAND "${FLATC}" --cpp --scoped-enums --gen-object-api -o "${PROJECT_BINARY_DIR}/gen" "${CMAKE_CURRENT_SOURCE_DIR}/${schema}"
    DEPENDS "${schema}" VERBATIM)
  target_sources(${target} PRIVATE "${out}")
  target_include_directories(${target} PUBLIC "${PROJECT_BINARY_DIR}/gen")
endfunction()
