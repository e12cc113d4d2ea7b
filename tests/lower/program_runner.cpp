// SPDX-License-Identifier: Apache-2.0
// See program_runner.hpp.
#include "program_runner.hpp"

#include <cmath>
#include <unordered_map>

#include "aten/executor.hpp"
#include "aten/ops.hpp"
#include "tosa/interpreter.hpp"

namespace carina::lower::test {
namespace {

Result<std::vector<Tensor>> runNode(const ir::Node& node,
                                    const std::unordered_map<const ir::Value*, Tensor>& values) {
  ir::Graph graph("node");
  std::unordered_map<const ir::Value*, ir::Value*> mapping;
  for (ir::Value* operand : node.operands()) {
    if (operand && mapping.count(operand) == 0) {
      mapping[operand] = graph.addConstant(operand->isConstant() ? operand->constant() : values.at(operand));
    }
  }
  CARINA_TRY(ir::Node* const copy, ir::cloneNode(node, graph, mapping));
  graph.setOutputs(copy->results());
  return aten::execute(graph, {});
}

}  // namespace

Result<std::vector<Tensor>> runProgram(const partition::Partitioned& program,
                                       std::span<const Tensor> inputs) {
  std::unordered_map<const ir::Value*, Tensor> values;
  for (size_t i = 0; i < inputs.size(); ++i) values[program.graph.inputs()[i]] = inputs[i];
  for (const ir::Node* node : program.graph.nodes()) {
    std::vector<Tensor> results;
    if (node->is(partition::delegateCallDef())) {
      std::vector<Tensor> operands;
      for (const ir::Value* operand : node->operands()) operands.push_back(values.at(operand));
      for (const auto& delegate : program.delegates) {
        if (delegate.call != node) continue;
        CARINA_TRY(results, tosa::interpret(delegate.tosa, operands));
      }
    } else {
      CARINA_TRY(results, runNode(*node, values));
    }
    for (size_t i = 0; i < results.size(); ++i) values[node->result(i)] = results[i];
  }
  std::vector<Tensor> outputs;
  for (const ir::Value* output : program.graph.outputs()) {
    outputs.push_back(output->isConstant() ? output->constant() : values.at(output));
  }
  return outputs;
}

QuantumDifference compareInQuanta(const Tensor& a, const Tensor& b, double quantum) {
  QuantumDifference difference{a.numElements(), 0, 0};
  for (int64_t i = 0; i < a.numElements(); ++i) {
    const double quanta = std::abs(a.realAt(i) - b.realAt(i)) / quantum;
    difference.overOne += quanta > 1.001;
    difference.largest = std::max(difference.largest, quanta);
  }
  return difference;
}

double outputQuantum(const ir::Graph& program, size_t output) {
  const auto dequantize = ir::producerAs<aten::DequantizePerTensor>(program.outputs()[output]);
  return dequantize ? dequantize.scale() : 1.0;
}

}  // namespace carina::lower::test
