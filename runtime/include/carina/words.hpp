// SPDX-License-Identifier: Apache-2.0
// How tokenizers of language models cut a text into words, inside of which byte pairs are merged.
#pragma once

#include "carina/span.hpp"

namespace carina::rt {

struct WordRules {
  /// The pattern of GPT-2, which the ByteLevel pre-tokenizer of Hugging Face's tokenizers has built in:
  /// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+, for texts in ASCII: see
  /// firstForeign(). Otherwise all is one word.
  bool gpt2 = false;
  bool singleDigits = false;  // every digit is cut off on its own first
};

/// Place of the first byte that rules with `gpt2` do not know: which characters beyond ASCII are letters and
/// numbers is a question of a Unicode table that is not here. The text's size when there is none.
size_t firstForeign(Text text);

/// The words of a text in order; together they are the text.
class Words {
 public:
  Words(Text text, WordRules rules) : rest_(text), rules_(rules) {}
  /// Empty at the end.
  Text next();

 private:
  Text rest_, part_;  // `part_` comes before `rest_`: what single digits leave together
  WordRules rules_;
};

}  // namespace carina::rt
