// SPDX-License-Identifier: Apache-2.0
// Arbitrary text as Ethos-N networks: what the assembler accepts can be written and read.
#include "base/file.hpp"
#include "ethosn/stream/stream_text.hpp"
#include "target.hpp"

namespace carina::ethosn_text_fuzz {

CARINA_FUZZ_TARGET(ethosn_text) {
  using namespace carina::ethosn;
  const auto network = parseNetwork(carina::asText(std::as_bytes(std::span(data, size))));
  if (!network) return 0;
  const std::vector<uint8_t> bytes = writeCompiledNetwork(*network);
  const auto read = readCompiledNetwork(std::as_bytes(std::span(bytes)));
  if (!read || *read != *network) __builtin_trap();
  return 0;
}

}  // namespace carina::ethosn_text_fuzz
