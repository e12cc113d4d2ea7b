// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a .pt2 file. Start from tests/data/pt2.
#include "pt2/exported_program.hpp"
#include "target.hpp"

namespace carina::pt2_fuzz {

CARINA_FUZZ_TARGET(pt2) {
  pt2::ReadOptions options;
  options.state = size % 2 == 0 ? pt2::StatePolicy::Expose : pt2::StatePolicy::Refuse;
  (void)pt2::readExportedProgram(ByteSpan(reinterpret_cast<const std::byte*>(data), size), nullptr, options);
  return 0;
}

}  // namespace carina::pt2_fuzz
