// SPDX-License-Identifier: Apache-2.0
// How large an arena the interpreter of TensorFlow Lite for Microcontrollers needs for a model.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "tflite/vela.hpp"

namespace carina::pipeline {

struct TfliteArena {
  int64_t tensors = 0;      // what the memory planner lays out at the start of the arena
  int64_t interpreter = 0;  // records of tensors and operators, data of kernels, variables, at its end
  int64_t bytes() const { return tensors + interpreter; }
};

/// Of the main subgraph and those that its operators run. Tensors lie where the file's plan says; others as a
/// planner lays them out that places the largest first, each at the lowest address that is free while it
/// lives (the interpreter's GreedyMemoryPlanner does so). Records are counted with pointers of
/// `pointerBytes`, and with what the reference kernels keep; kernels of other libraries may ask for more, as
/// scratch memory. Errors: subgraphs that do not exist or run themselves.
Result<TfliteArena> tfliteArena(const tflite::Model& model, const tflite::NpuProgram* plan,
                                int64_t pointerBytes = 4);

}  // namespace carina::pipeline
