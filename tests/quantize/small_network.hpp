// SPDX-License-Identifier: Apache-2.0
// Small float graphs for the quantizer's tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "aten/ops.hpp"
#include "support/graph_maker.hpp"

namespace carina::quantize {

using ir::Ints;
using ir::Value;

inline Tensor ramp(const Shape& shape, float low, float high) {
  Tensor tensor = Tensor::uninitialized(DType::Float32, shape);
  const auto values = tensor.mutableAs<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = low + (high - low) * static_cast<float>(i * 37 % values.size()) /
                          static_cast<float>(values.size() - 1);
  }
  return tensor;
}

struct Network : test::GraphMaker {
  /// Sets the source of subsequently created nodes to node `name` in module `module`.
  void in(const std::string& name, const std::string& module) {
    b = ir::Builder(graph, nullptr, std::make_shared<const ir::Location>(ir::Location{name, module, ""}));
  }
  Value* constant(const Shape& shape, float low, float high) {
    return graph.addConstant(ramp(shape, low, high));
  }
  Value* conv(Value* x, int64_t out, bool bias = true) {
    return make<aten::Conv2d>(x, constant({out, x->dim(1), 3, 3}, -1, 0.5f),
                              bias ? constant({out}, -1, 1) : nullptr, Ints{1, 1}, Ints{1, 1}, Ints{1, 1}, 1);
  }
  /// Depthwise, with these weights (one tap per channel).
  Value* depthwise(Value* x, const std::vector<float>& weights) {
    const auto channels = static_cast<int64_t>(weights.size());
    return make<aten::Conv2d>(x, graph.addConstant(Tensor::from(Shape{channels, 1, 1, 1}, weights)), nullptr,
                              Ints{1, 1}, Ints{0, 0}, Ints{1, 1}, channels);
  }
  Value* relu(Value* x) { return make<aten::Relu>(x); }
  Value* done(Value* x) {
    graph.setOutputs({x});
    return x;
  }
};

inline std::vector<aten::QuantizePerTensor> quantizes(const ir::Graph& graph) {
  std::vector<aten::QuantizePerTensor> found;
  for (ir::Node* node : graph.nodes()) {
    if (const auto op = ir::dynCast<aten::QuantizePerTensor>(node)) found.push_back(op);
  }
  return found;
}

}  // namespace carina::quantize
