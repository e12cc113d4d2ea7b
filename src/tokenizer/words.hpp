// SPDX-License-Identifier: Apache-2.0
// How a text is cut into words before byte pairs are merged inside of each.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "carina/words.hpp"

namespace carina::tokenizer {

using rt::WordRules;

/// The words, in order; together they are the text. With `gpt2`, text beyond ASCII is refused.
Result<std::vector<std::string_view>> splitWords(std::string_view text, const WordRules& rules);

}  // namespace carina::tokenizer
