// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding: adjacent pairs of the bytes of a word are merged in the order of their rank.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace carina::tokenizer {

/// The result of merging a pair of tokens.
struct Merge {
  int64_t rank = 0;
  int64_t token = 0;
};
using Merges = std::map<std::pair<int64_t, int64_t>, Merge>;

/// Merges adjacent tokens until no merge applies, always the first pair of the lowest rank. n log n.
std::vector<int64_t> mergePairs(std::vector<int64_t> tokens, const Merges& merges);

}  // namespace carina::tokenizer
