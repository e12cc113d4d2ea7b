// SPDX-License-Identifier: Apache-2.0
// What an application of TensorFlow Lite for Microcontrollers needs to run a .tflite: operators, memory, NPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "pipeline/tflite_arena.hpp"

namespace carina::pipeline {

struct CheckedTfliteOperator {
  std::string name;  // "CONV_2D", or the code of a custom operator
  size_t count = 0;  // in all subgraphs
  std::optional<std::string>
      method;  // that registers it: "AddConv2D()"; none: no kernel for microcontrollers
};

struct TfliteCheck {
  int64_t fileBytes = 0;
  std::vector<CheckedTfliteOperator> operators;  // without duplicates
  std::string target;                            // of `ethos-u` operators; empty without one
  size_t calls = 0;                   // of the NPU in one inference, if no operator loops or branches
  bool containsControlFlow = false;   // operators run subgraphs
  int64_t plannedBytes = 0;           // of the arena, by the offline memory plan
  size_t unplanned = 0;               // tensors that the interpreter places itself
  int64_t unplannedBytes = 0;         // of those, if none shared memory with another
  int64_t fastScratchBytes = 0;       // of the largest NPU call, in addition to the arena
  int64_t variableBytes = 0;          // of variables, which persist between calls
  size_t tensors = 0, nodes = 0;      // of all subgraphs: the interpreter keeps records of them in the arena
  TfliteArena arena;                  // of an interpreter with 32-bit pointers
  std::vector<std::string> problems;  // one sentence each: what would fail and why
  bool ok() const { return problems.empty(); }
};

/// `file` is a .tflite of any maker (untrusted), compiled or not. A file that cannot be read at all is an
/// error.
Result<TfliteCheck> checkTflite(ByteSpan file);

}  // namespace carina::pipeline
