// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/byte_pairs.hpp"

#include <queue>
#include <tuple>

namespace carina::tokenizer {

std::vector<int64_t> mergePairs(std::vector<int64_t> tokens, const Merges& merges) {
  constexpr int64_t kGone = -1;
  const auto count = static_cast<int64_t>(tokens.size());
  std::vector<int64_t> next(tokens.size()), previous(tokens.size());
  for (int64_t i = 0; i < count; ++i) {
    next[static_cast<size_t>(i)] = i + 1;
    previous[static_cast<size_t>(i)] = i - 1;
  }
  const auto at = [&](int64_t i) -> int64_t& { return tokens[static_cast<size_t>(i)]; };
  // Rank, position of the left token, and both tokens at that time; outdated candidates are skipped.
  using Candidate = std::tuple<int64_t, int64_t, int64_t, int64_t>;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> open;
  const auto consider = [&](int64_t left) {
    if (left < 0 || next[static_cast<size_t>(left)] >= count) return;
    const int64_t right = next[static_cast<size_t>(left)];
    const auto merge = merges.find({at(left), at(right)});
    if (merge != merges.end()) open.emplace(merge->second.rank, left, at(left), at(right));
  };
  for (int64_t i = 0; i < count; ++i) consider(i);
  while (!open.empty()) {
    const auto [rank, left, first, second] = open.top();
    open.pop();
    const int64_t right = next[static_cast<size_t>(left)];
    if (at(left) != first || right >= count || at(right) != second) continue;
    at(left) = merges.at({first, second}).token;
    at(right) = kGone;
    const int64_t behind = next[static_cast<size_t>(right)];
    next[static_cast<size_t>(left)] = behind;
    if (behind < count) previous[static_cast<size_t>(behind)] = left;
    consider(previous[static_cast<size_t>(left)]);
    consider(left);
  }
  std::erase(tokens, kGone);
  return tokens;
}

}  // namespace carina::tokenizer
