// SPDX-License-Identifier: Apache-2.0
// Norms of rows, as their rules see them.
#pragma once

#include <vector>

#include "lower/lowering.hpp"

namespace carina::lower {

/// What a norm does with its rows: (x - mean) / sqrt(variance + eps), or x / sqrt(mean(x^2) + eps).
struct Norm {
  std::vector<int> dims;
  double eps = 0;
  bool centred = false;
};

/// Of a layer or RMS norm. Fails on one with weights.
Result<Norm> normOf(const ir::Node& node);

}  // namespace carina::lower
