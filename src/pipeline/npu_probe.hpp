// SPDX-License-Identifier: Apache-2.0
// Runs a compiled part on the NPU model step by step and shows every value as soon as its last operation is
// done.
#pragma once

#include <functional>
#include <span>

#include "compiler/compiler.hpp"
#include "npu/model/model.hpp"

namespace carina::pipeline {

/// A value's elements in row-major order of height, width, depth, sign-extended.
using ValueListener =
    std::function<void(const compiler::ValuePlacement& placement, std::span<const int64_t> elements)>;

struct ProbeResult {
  std::vector<Tensor> outputs;
  npu::RunStats stats;
};

/// Inputs of the part's types and shapes. Fails with the model's fault.
Result<ProbeResult> probe(const compiler::CompiledProgram& program, std::span<const Tensor> inputs,
                          const ValueListener& listener = nullptr);

}  // namespace carina::pipeline
