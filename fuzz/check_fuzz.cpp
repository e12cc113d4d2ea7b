// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a program: the check reports what is wrong and never crashes.
#include <cstdint>

#include "pipeline/check.hpp"
#include "target.hpp"

namespace carina::check_fuzz {

CARINA_FUZZ_TARGET(check) {
  (void)carina::pipeline::checkProgram({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}

}  // namespace carina::check_fuzz
