// SPDX-License-Identifier: Apache-2.0
// Finds the known word that a misspelt one was meant to be.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace carina {

/// `word` with lower-case ASCII letters and '-' for '_'.
std::string folded(std::string_view word);

/// The word of `known` with the smallest edit distance from `word` (at most two, and less than half of its
/// letters), or else the only one that begins or ends with `word` (of at least three letters). ASCII case is
/// ignored, and '_' is '-'. Empty if there is no such word.
std::string nearestWord(std::string_view word, std::span<const std::string> known);

}  // namespace carina
