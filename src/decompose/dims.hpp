// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "ir/op_def.hpp"

namespace carina::decompose {

/// A dimension of an operator that has been checked, in [-rank, rank), counted from the front.
inline int64_t wrapped(int64_t dim, int64_t rank) {
  return dim < 0 ? dim + rank : dim;
}

/// dims wrapped into [0, rank); all of them when the list is absent or empty.
inline std::vector<int> wrappedDims(const std::optional<ir::Ints>& dims, int64_t rank) {
  std::vector<int> all;
  if (!dims || dims->empty()) {
    all.resize(static_cast<size_t>(rank));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  for (int64_t d : *dims) all.push_back(static_cast<int>(wrapped(d, rank)));
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace carina::decompose
