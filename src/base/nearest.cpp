// SPDX-License-Identifier: Apache-2.0
#include "base/nearest.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace carina {
namespace {

/// Levenshtein distance.
size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string folded(std::string_view word) {
  std::string text(word);
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '_') c = '-';
  }
  return text;
}

std::string nearestWord(std::string_view word, std::span<const std::string> known) {
  constexpr size_t kMaxLetters = 64;  // longer words are not typing errors
  if (word.empty() || word.size() > kMaxLetters) return {};
  const std::string wanted = folded(word);
  const std::string* nearest = nullptr;
  size_t least = 3;
  size_t beginning = 0;
  const std::string* longer = nullptr;
  for (const std::string& candidate : known) {
    const std::string text = folded(candidate);
    const size_t distance = editDistance(wanted, text);
    if (distance < least && 2 * distance < text.size()) {
      nearest = &candidate;
      least = distance;
    }
    if (wanted.size() > 2 && (text.starts_with(wanted) || text.ends_with(wanted))) {
      longer = &candidate;
      ++beginning;
    }
  }
  if (nearest == nullptr && beginning == 1) nearest = longer;
  return nearest == nullptr ? std::string() : *nearest;
}

}  // namespace carina
