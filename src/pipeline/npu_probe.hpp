// SPDX-License-Identifier: Apache-2.0
// Runs a compiled part on the NPU model step by step, shows every value each time that its last operation is
// done, and counts which ways its branches go.
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

/// How often a choice was true and false; how often the body and the test of a loop ran.
struct WayCount {
  int64_t first = 0, second = 0;
};

struct ProbeResult {
  std::vector<Tensor> outputs;
  npu::RunStats stats;
  std::vector<WayCount> ways;  // of CompiledProgram::branches
};

/// Inputs of the part's types and shapes. Fails with the model's fault.
Result<ProbeResult> probe(const compiler::CompiledProgram& program, std::span<const Tensor> inputs,
                          const ValueListener& listener = nullptr);

}  // namespace carina::pipeline
