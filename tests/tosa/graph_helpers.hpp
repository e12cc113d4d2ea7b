// SPDX-License-Identifier: Apache-2.0
// Shorthand for building TOSA graphs of a few nodes.
#pragma once

#include <vector>

#include "support/graph_maker.hpp"
#include "tosa/tosa.hpp"

namespace carina::test {

inline Tensor integers(DType dtype, Shape shape, const std::vector<int64_t>& values) {
  Tensor tensor = Tensor::uninitialized(dtype, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i) tensor.setIntegerAt(static_cast<int64_t>(i), values[i]);
  return tensor;
}
inline Tensor list(DType dtype, const std::vector<int64_t>& values) {
  return integers(dtype, {static_cast<int64_t>(values.size())}, values);
}
inline std::vector<int64_t> valuesOf(const Tensor& tensor) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < tensor.numElements(); ++i) values.push_back(tensor.integerAt(i));
  return values;
}

struct RescaleSpec {
  DType from = DType::Int32, to = DType::Int8;
  int64_t multiplier = int64_t{1} << 30, shift = 31, inputZero = 0, outputZero = 0;
  tosa::RoundingMode mode = tosa::RoundingMode::SINGLE_ROUND;
  bool scale32 = true, inputUnsigned = false, outputUnsigned = false;
};

/// x [n] -> RESCALE -> output.
inline ir::Graph rescaleGraph(const RescaleSpec& spec, int64_t n) {
  ir::Graph graph;
  ir::Builder b(graph);
  ir::Value* x = graph.addInput({spec.from, {n}}, "x");
  // Separate statements, since the evaluation order of arguments is unspecified.
  ir::Value* multiplier = b.constant(list(spec.scale32 ? DType::Int32 : DType::Int16, {spec.multiplier}));
  ir::Value* shift = b.constant(list(DType::Int8, {spec.shift}));
  ir::Value* inputZero = b.constant(list(spec.from, {spec.inputZero}));
  ir::Value* outputZero = b.constant(list(spec.to, {spec.outputZero}));
  auto op = tosa::Rescale::create(b, x, multiplier, shift, inputZero, outputZero, spec.scale32, spec.mode,
                                  false, spec.inputUnsigned, spec.outputUnsigned);
  op.output()->name = "y";
  graph.setOutputs({op.output()});
  return graph;
}

/// a, b [n] -> an operator of these two operands and attributes -> output.
template <typename Op, typename... Attributes>
ir::Graph binaryGraph(DType dtype, int64_t n, Attributes... attributes) {
  GraphMaker maker;
  ir::Value* a = maker.input({n}, dtype);
  ir::Value* b = maker.input({n}, dtype);
  maker.graph.setOutputs({maker.make<Op>(a, b, attributes...)});
  return std::move(maker.graph);
}

}  // namespace carina::test
