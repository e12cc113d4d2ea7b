// SPDX-License-Identifier: Apache-2.0
// How tokenizers of language models split text into words, within which byte pairs are merged.
#pragma once

#include "carina/span.hpp"

namespace carina::rt {

struct WordRules {
  /// The pattern of GPT-2, built into the ByteLevel pre-tokenizer of Hugging Face's tokenizers:
  /// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+, for ASCII text: see
  /// firstForeign(). If false, the whole text is one word.
  bool gpt2 = false;
  bool singleDigits = false;  // first, every digit is split off on its own
};

/// Offset of the first byte that rules with `gpt2` cannot classify: no Unicode table here tells which
/// characters beyond ASCII are letters and numbers. The text's size if there is none.
size_t firstForeign(Text text);

/// The words of a text in order; concatenated, they are the text.
class Words {
 public:
  Words(Text text, WordRules rules) : rest_(text), rules_(rules) {}
  /// Empty at the end.
  Text next();

 private:
  Text rest_, part_;  // `part_` precedes `rest_`: text between single digits
  WordRules rules_;
};

}  // namespace carina::rt
