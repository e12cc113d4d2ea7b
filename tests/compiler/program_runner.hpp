// SPDX-License-Identifier: Apache-2.0
// Runs compiled programs on the NPU model and compares them with the TOSA and npu interpreters.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/compiler.hpp"

namespace carina::test {

struct ProgramRun {
  std::vector<Tensor> outputs;
  std::vector<std::string> findings;  // of the stream checker
};

/// Runs one inference on memory filled with a pattern. Fails if the model reports a fault.
Result<ProgramRun> runProgram(const compiler::CompiledProgram& program, std::span<const Tensor> inputs,
                              bool check);

/// Random elements over the whole range of the type (Int32: moderate size; Bool: 0 and 1).
Tensor randomTensor(DType dtype, const Shape& shape, uint64_t seed);

/// Random inputs for a graph.
std::vector<Tensor> randomInputs(const ir::Graph& graph, uint64_t seed);

/// Compiles for the machine and compares model, npu interpreter and TOSA interpreter bit for bit; "" if all
/// agree.
std::string differences(const ir::Graph& tosa, const std::string& target, const std::string& memoryMode,
                        std::span<const Tensor> inputs, bool npuInterpreter = true,
                        compiler::Optimize optimize = compiler::Optimize::Performance);

}  // namespace carina::test
