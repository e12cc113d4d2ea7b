// SPDX-License-Identifier: Apache-2.0
// Lookup in tables of pairs, such as names and their numbers, from either side; the first matching row
// counts.
#pragma once

#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

namespace carina {

template <typename A, typename B, size_t N>
constexpr std::optional<B> secondOf(const std::pair<A, B> (&table)[N], const std::type_identity_t<A>& first) {
  for (const auto& [a, b] : table) {
    if (a == first) return b;
  }
  return std::nullopt;
}

template <typename A, typename B, size_t N>
constexpr std::optional<A> firstOf(const std::pair<A, B> (&table)[N], const std::type_identity_t<B>& second) {
  for (const auto& [a, b] : table) {
    if (b == second) return a;
  }
  return std::nullopt;
}

}  // namespace carina
