// SPDX-License-Identifier: Apache-2.0
// Which known word was meant by a misspelt one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace carina {

/// In lower-case ASCII letters, with '-' for '_'.
std::string folded(std::string_view word);

/// The word of `known` that needs the fewest letters inserted, deleted or replaced (at most two, and fewer
/// than half of them) to become `word`, or that begins with `word` when no other does. ASCII case does not
/// count, and '_' is '-'. Empty when no word is that near.
std::string nearestWord(std::string_view word, std::span<const std::string> known);

}  // namespace carina
