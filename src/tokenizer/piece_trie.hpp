// SPDX-License-Identifier: Apache-2.0
// A trie of texts by their bytes, which finds those that a text begins with.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace carina::tokenizer {

class PieceTrie {
 public:
  /// `value` is not negative.
  void add(std::string_view text, int64_t value) {
    uint32_t node = 0;
    for (const char c : text) {
      const auto [child, isNew] = children_.try_emplace(key(node, c), static_cast<uint32_t>(values_.size()));
      if (isNew) values_.push_back(-1);
      node = child->second;
    }
    values_[node] = value;
  }

  /// Calls `found(length, value)` for every text that `text` begins with, the shortest first.
  template <typename Found>
  void forEachPrefix(std::string_view text, const Found& found) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      const auto child = children_.find(key(node, text[i]));
      if (child == children_.end()) return;
      node = child->second;
      if (values_[node] >= 0) found(i + 1, values_[node]);
    }
  }

  /// Length of the longest text that `text` begins with, 0 for none.
  size_t longestPrefix(std::string_view text) const {
    size_t longest = 0;
    forEachPrefix(text, [&](size_t length, int64_t) { longest = length; });
    return longest;
  }

  /// The value of exactly this text.
  std::optional<int64_t> find(std::string_view text) const {
    uint32_t node = 0;
    for (const char c : text) {
      const auto child = children_.find(key(node, c));
      if (child == children_.end()) return std::nullopt;
      node = child->second;
    }
    return values_[node] >= 0 ? std::optional(values_[node]) : std::nullopt;
  }

 private:
  static uint64_t key(uint32_t node, char c) { return uint64_t{node} << 8 | static_cast<uint8_t>(c); }

  std::unordered_map<uint64_t, uint32_t> children_;  // by node and byte
  std::vector<int64_t> values_{-1};                  // of each node; -1: none
};

}  // namespace carina::tokenizer
