// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a .pt2 file. Start from tests/data/pt2.
#include "pt2/exported_program.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carina;
  pt2::ReadOptions options;
  options.state = size % 2 == 0 ? pt2::StatePolicy::Expose : pt2::StatePolicy::Refuse;
  (void)pt2::readExportedProgram(ByteSpan(reinterpret_cast<const std::byte*>(data), size), nullptr, options);
  return 0;
}
