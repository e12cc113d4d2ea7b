// SPDX-License-Identifier: Apache-2.0
// Runs a compiled part on the NPU model command by command, reports every value each time its last operation
// is done, and counts the paths that its branches take.
#pragma once

#include <functional>
#include <span>

#include "compiler/compiler.hpp"
#include "npu/model/model.hpp"

namespace carina::pipeline {

/// Reads a value's elements in row-major order of height, width, depth, sign-extended.
using ElementReader = std::function<std::vector<int64_t>()>;
using ValueListener =
    std::function<void(const compiler::ValuePlacement& placement, const ElementReader& elements)>;

/// How often a condition was true and false; for a loop, how often its body and its condition ran.
struct PathCount {
  int64_t first = 0, second = 0;
};

struct ProbeResult {
  std::vector<Tensor> outputs;
  npu::RunStats stats;
  std::vector<PathCount> ways;  // of CompiledProgram::branches
};

/// Inputs have the part's types and shapes. Fails with the model's fault.
Result<ProbeResult> probe(const compiler::CompiledProgram& program, std::span<const Tensor> inputs,
                          const ValueListener& listener = nullptr);

}  // namespace carina::pipeline
