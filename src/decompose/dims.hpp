// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "ir/op_def.hpp"

namespace carina::decompose {

/// A valid dimension in [-rank, rank), counted from the front.
inline int64_t wrapped(int64_t dim, int64_t rank) {
  return dim < 0 ? dim + rank : dim;
}

/// 0 ... count - 1: all dimensions of a tensor, or the positions along one.
inline ir::Ints numbersBelow(int64_t count) {
  ir::Ints numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  return numbers;
}

/// dims wrapped into [0, rank) in order; all of them if the list is absent or empty.
inline std::vector<int> wrappedDims(const std::optional<ir::Ints>& dims, int64_t rank) {
  std::vector<int> all;
  for (int64_t d : dims && !dims->empty() ? *dims : numbersBelow(rank))
    all.push_back(static_cast<int>(wrapped(d, rank)));
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace carina::decompose
