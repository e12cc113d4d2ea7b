// SPDX-License-Identifier: Apache-2.0
// The arena size that the interpreter of TensorFlow Lite for Microcontrollers needs for a model.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "tflite/vela.hpp"

namespace carina::pipeline {

struct TfliteArena {
  int64_t tensors = 0;      // laid out by the memory planner at the start of the arena
  int64_t interpreter = 0;  // at its end: records of tensors and operators, kernel data, variables
  int64_t bytes() const { return tensors + interpreter; }
};

/// For the main subgraph and those that its operators run. Tensors are placed by the file's plan; others like
/// a planner that places the largest first, each at the lowest address that is free during its lifetime (the
/// interpreter's GreedyMemoryPlanner does so). Records are counted with pointers of `pointerBytes`, and with
/// the data of the reference kernels; kernels of other libraries may need more, for scratch memory. Errors:
/// subgraphs that do not exist or run themselves.
Result<TfliteArena> tfliteArena(const tflite::Model& model, const tflite::NpuProgram* plan,
                                int64_t pointerBytes = 4);

}  // namespace carina::pipeline
