// SPDX-License-Identifier: Apache-2.0
// A static initializer of Highway's shared library measures the resolution of the processor's clock for its
// benchmark helpers: three of the eleven milliseconds that starting the program took. The dynamic linker
// finds this definition first, and nothing here measures with them.
#include <hwy/nanobenchmark.h>

#include <cstdint>

namespace hwy::platform {

uint64_t TimerResolution() {
  return 1;
}

}  // namespace hwy::platform
