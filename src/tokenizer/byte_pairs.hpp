// SPDX-License-Identifier: Apache-2.0
// Byte pair encoding: the bytes of a word, of which pairs of neighbours are merged in the order of their
// rank.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace carina::tokenizer {

/// What a pair of tokens becomes.
struct Merge {
  int64_t rank = 0;
  int64_t token = 0;
};
using Merges = std::map<std::pair<int64_t, int64_t>, Merge>;

/// Merges pairs of neighbouring tokens until none is left that can be: always one of the lowest rank, the
/// first of those. n log n.
std::vector<int64_t> mergePairs(std::vector<int64_t> tokens, const Merges& merges);

}  // namespace carina::tokenizer
