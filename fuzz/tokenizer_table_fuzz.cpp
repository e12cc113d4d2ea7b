// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a device's tokenizer table, and as the text it encodes.
#include "carina/tokenizer.hpp"
#include "target.hpp"

namespace carina::rt::tokenizer_table_fuzz {

CARINA_FUZZ_TARGET(tokenizer_table) {
  Tokenizer tokenizer;
  if (!Tokenizer::load(Bytes(data, size), &tokenizer).ok()) return 0;
  static TokenPiece pieces[256];
  uint32_t count = 0;
  const size_t length = size < 128 ? size : 128;
  const Text text(reinterpret_cast<const char*>(data + size - length), length);
  if (!tokenizer.encode(text, pieces, &count).ok()) return 0;
  uint8_t sum = 0;
  for (uint32_t i = 0; i < count; ++i) {
    Text piece;
    if (pieces[i].token >= tokenizer.size()) __builtin_trap();
    if (!tokenizer.decode(pieces[i].token, &piece).ok()) continue;
    for (const char c : piece) sum = static_cast<uint8_t>(sum + c);  // every byte can be read
  }
  return sum == 0 && count > 256 ? -1 : 0;
}

}  // namespace carina::rt::tokenizer_table_fuzz
