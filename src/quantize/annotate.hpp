// SPDX-License-Identifier: Apache-2.0
// What the quantizer does around each aten operator: which results get a range of their own, which share the
// range of their inputs, and which clamps belong to the operator in front of them.
#pragma once

#include <unordered_map>
#include <vector>

#include "ir/graph.hpp"

namespace carina::quantize {

enum class Role : uint8_t {
  Float,    // left in float: nothing around it is quantized on its account
  Own,      // inputs are quantized; the result has a range of its own
  Shared,   // inputs and results have one range
  Compare,  // the float inputs share one range; the result is no float
};

Role roleOf(const ir::Node& node);

/// relu, relu6, hardtanh, clamp with numbers: monotone, so after a computation they are a limit on the codes.
bool isClamp(const ir::Node& node);

/// Which values get quantize/dequantize nodes and which of them have one range together.
struct Annotation {
  /// Groups of values with one range, each in program order; groups in order of their first value.
  std::vector<std::vector<ir::Value*>> groups;
  std::unordered_map<const ir::Value*, size_t> groupOf;
};

/// All float32 values that operators with a role read or write, except: convolution and linear weights and
/// biases, and results that go only into a clamp (the clamp's result stands for both).
Annotation annotate(const ir::Graph& graph);

/// The constant weight and bias of a convolution or linear; weightAxis is the dimension of its output
/// channels.
struct WeightedOp {
  ir::Node* node = nullptr;
  ir::Value* input = nullptr;
  ir::Value* weight = nullptr;
  ir::Value* bias = nullptr;  // null when absent
  int weightAxis = 0;
  static constexpr size_t kWeightOperand = 1, kBiasOperand = 2;
};

/// The view; nothing when the node is another operator or the weight is no constant.
std::optional<WeightedOp> asWeighted(const ir::Node& node);

}  // namespace carina::quantize
