// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace carina::lower {

/// A dimension of an operator that has been checked, in [-rank, rank), counted from the front.
inline int64_t wrapped(int64_t dim, int64_t rank) {
  return dim < 0 ? dim + rank : dim;
}

}  // namespace carina::lower
