// SPDX-License-Identifier: Apache-2.0
// Places tensors and the memories of NPU parts in the single arena of a model.
#pragma once

#include <cstdint>
#include <vector>

namespace carina::tflite {

/// A range of memory in use from operator `first` through `last`. -1: before the first operator.
struct ArenaPiece {
  int64_t offset = 0, bytes = 0;  // within its body
  int32_t first = 0, last = 0;
};

/// A unit that is placed as a whole: a tensor, or the memory of an NPU part together with its inputs and
/// outputs, which outlive the execution of the part.
using ArenaBody = std::vector<ArenaPiece>;

/// Whether two bodies can be placed at that distance (the second's start minus the first's).
bool fitTogether(const ArenaBody& a, const ArenaBody& b, int64_t distance);

/// Offset of each body, a multiple of 16, such that no piece starts below 0. Larger bodies are placed first,
/// each at the lowest offset that is free during its lifetime.
std::vector<int64_t> placeBodies(const std::vector<ArenaBody>& bodies);

}  // namespace carina::tflite
