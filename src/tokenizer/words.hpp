// SPDX-License-Identifier: Apache-2.0
// How a text is cut into words before byte pairs are merged inside of each.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace carina::tokenizer {

struct WordRules {
  /// The pattern of GPT-2, which the ByteLevel pre-tokenizer of Hugging Face's tokenizers has built in:
  /// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+. Otherwise all is one word.
  bool gpt2 = false;
  bool singleDigits = false;  // every digit is cut off on its own first
};

/// The words, in order; together they are the text. With `gpt2`, text beyond ASCII is refused: which of its
/// characters are letters and numbers is a question of a Unicode table that is not here.
Result<std::vector<std::string_view>> splitWords(std::string_view text, const WordRules& rules);

}  // namespace carina::tokenizer
