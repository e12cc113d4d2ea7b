// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a program: the check reports what is wrong and never crashes.
#include <cstdint>

#include "pipeline/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)carina::pipeline::checkProgram({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
