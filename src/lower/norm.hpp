// SPDX-License-Identifier: Apache-2.0
// Normalisation of rows: parameters shared by the rules.
#pragma once

#include <vector>

#include "lower/lowering.hpp"

namespace carina::lower {

/// What a norm computes from each row: (x - mean) / sqrt(variance + eps), or x / sqrt(mean(x^2) + eps).
struct Norm {
  std::vector<int> dims;
  double eps = 0;
  bool centred = false;
};

/// Parameters of a layer or RMS norm. Fails if it has weights.
Result<Norm> normOf(const ir::Node& node);

/// Elements that are added up at once (sumOfSquares) of rows of 18 bits and more: a sum of 30 bits drops the
/// low bits of each square. In rows of up to 4,096 elements that matters next to no outlier.
inline int64_t partOfWideRows(int64_t count) {
  return count <= 4096 ? count : 256;
}

}  // namespace carina::lower
