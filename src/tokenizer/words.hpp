// SPDX-License-Identifier: Apache-2.0
// Splits a text into words, within which byte pairs are merged.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "carina/words.hpp"

namespace carina::tokenizer {

using rt::WordRules;

/// The words in order; concatenated, they are the text. With `gpt2`, text beyond ASCII is rejected.
Result<std::vector<std::string_view>> splitWords(std::string_view text, const WordRules& rules);

}  // namespace carina::tokenizer
