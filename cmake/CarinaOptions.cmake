# Language level, warnings, sanitizers and the compiler cache: everything that holds for all targets.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

option(CARINA_SANITIZE "Build with AddressSanitizer and UndefinedBehaviorSanitizer" OFF)
option(CARINA_FUZZ "Build the libFuzzer targets (clang only)" OFF)
option(CARINA_TESTS "Build the tests" ON)
option(CARINA_MPI "carina evaluate under mpirun, where an MPI is installed" ON)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # Clones share the compiler cache wherever they lie.
  set(CARINA_CCACHE /usr/bin/env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros "${CCACHE_PROGRAM}")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)  # what lets it cache files that use precompiled headers
  endif()
  set(CMAKE_C_COMPILER_LAUNCHER ${CARINA_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CARINA_CCACHE})
endif()

# The files of a target are compiled eight or 24 at a time: their headers are parsed once, and what they share is compiled once. All names
# in a target's files, in anonymous namespaces too, are therefore different.
option(CARINA_UNITY "Compile the files of a target in groups" ON)
if(CARINA_UNITY)
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)
  set(CARINA_COLD_BATCH 24)  # files that nobody waits for compile fast enough for larger groups
  # The file that a group includes is not the main file, where the anonymous namespace is what it should be.
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()

# GCC's garbage collector runs where the heap has doubled since 128 MB: a fifteenth of the time for memory that a compilation
# of a few seconds need not give back (at most 0.6 GB each here).
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:SHELL:--param ggc-min-heapsize=524288>")

# lld links several times faster than bfd; LTO is not used, so any linker gives the same code. Behind g++ only for tests: it gives
# functions with nothing in their cold part an unwind entry of no bytes there, and of entries with one address lld 14 keeps the first,
# so that an exception (out of memory) that passes the function whose cold part is really there ends the process.
find_program(LLD_PROGRAM ld.lld)
if(LLD_PROGRAM AND NOT CMAKE_CROSSCOMPILING)
  set(CARINA_LLD -fuse-ld=lld -Wl,--build-id=sha1)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    add_link_options(${CARINA_LLD})
  endif()
endif()

# Without a search path in the programs: every library is a package's. What CMake writes into build trees ends in an empty
# entry where MPI brings one, and libraries would be looked for in the current folder first.
set(CMAKE_SKIP_RPATH ON)

# g++ -Wshadow also complains of enumerators of an enum class; only locals matter here. Its -Wrestrict has false
# alarms on std::string (GCC bug 105651).
# clang's -Wshadow means globals, too, of which a group of files has those of all.
set(CARINA_CLANG_SHADOW -Wshadow)
if(CARINA_UNITY)
  set(CARINA_CLANG_SHADOW -Wno-shadow)
endif()
add_compile_options(-Wall -Wextra -Wpedantic "$<IF:$<CXX_COMPILER_ID:GNU>,-Wshadow=local;-Wno-restrict,${CARINA_CLANG_SHADOW}>"
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> -Werror)

if(CARINA_SANITIZE)
  add_compile_definitions(CARINA_SANITIZED)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
if(CARINA_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
