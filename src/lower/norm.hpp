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

}  // namespace carina::lower
