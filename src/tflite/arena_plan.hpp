// SPDX-License-Identifier: Apache-2.0
// Where tensors and the memories of NPU parts lie in the one arena of a model.
#pragma once

#include <cstdint>
#include <vector>

namespace carina::tflite {

/// A stretch of memory in use from one operator to another, both included. -1: before the first operator.
struct ArenaPiece {
  int64_t offset = 0, bytes = 0;  // within its body
  int32_t first = 0, last = 0;
};

/// What keeps its shape wherever it lies: a tensor, or the memory of an NPU part with its inputs and outputs,
/// which live longer than the part runs.
using ArenaBody = std::vector<ArenaPiece>;

/// Whether two bodies can lie that far apart (the second's start minus the first's).
bool fitTogether(const ArenaBody& a, const ArenaBody& b, int64_t distance);

/// Offset of each body, a multiple of 16 and such that no piece lies below 0; large bodies choose first, each
/// the lowest place that is free while it lives.
std::vector<int64_t> placeBodies(const std::vector<ArenaBody>& bodies);

}  // namespace carina::tflite
