// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a tokenizer.json or a SentencePiece file, and as the text it encodes.
#include "target.hpp"
#include "tokenizer/tokenizer.hpp"

namespace carina::tokenizer_fuzz {

CARINA_FUZZ_TARGET(tokenizer) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = carina::tokenizer::Tokenizer::parse(text);
  if (!tokenizer.ok()) return 0;
  const auto tokens = tokenizer->encode(text);
  if (!tokens.ok()) return 0;
  for (const int64_t token : *tokens) {
    if (!tokenizer->decode(token).ok()) __builtin_trap();
  }
  return 0;
}

}  // namespace carina::tokenizer_fuzz
