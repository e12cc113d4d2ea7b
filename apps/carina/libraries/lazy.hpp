// SPDX-License-Identifier: Apache-2.0
// Functions of shared libraries that are loaded by the first call. A library linked to the program adds a
// tenth of a millisecond to every start, and the C++ library, which each of these needs, half a millisecond;
// most commands, and compiling small networks, call none of them. The files in this directory define what the
// headers of a library declare, so that the linker leaves the library out (--as-needed).
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>

namespace carina::app {

/// The shared library of this name; if it is missing the program exits, as it would if linked to the library.
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
