// SPDX-License-Identifier: Apache-2.0
// Functions of shared libraries that are loaded with the first call. A library that the program names costs
// every start a tenth of a millisecond, C++'s own, which each of these needs, half of one; most commands, and
// compiling small networks, call none of them. The files beside this one define what the headers of a library
// declare, so the linker leaves the library out (--as-needed).
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>

namespace carina::app {

/// The shared library of this name; without it the program ends as it would if it named the library.
inline void* loadLibrary(const char* name) {
  // Never closed: its threads and caches may live as long as the program.
  if (void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  std::fprintf(stderr, "error: %s\n  install the package of this library\n", dlerror());
  ::_exit(1);
}

/// The function of this (mangled) name in a library.
template <typename Function>
Function* functionIn(void* library, const char* name) {
  if (void* const found = dlsym(library, name)) return reinterpret_cast<Function*>(found);
  std::fprintf(stderr, "error: %s\n  install the version of this library that the program was built with\n",
               dlerror());
  ::_exit(1);
}

}  // namespace carina::app
