// SPDX-License-Identifier: Apache-2.0
// Shorthand for building TOSA graphs in compiler tests.
#pragma once

#include <utility>
#include <vector>

#include "ir/op_view.hpp"
#include "tosa/tosa.hpp"

namespace carina::test {

/// Builds one graph node by node; constants are random from a seed that advances.
class TosaBuilder {
 public:
  explicit TosaBuilder(uint64_t seed = 1) : builder_(graph_), seed_(seed) {}

  ir::Value* input(DType dtype, Shape shape) { return graph_.addInput({dtype, std::move(shape)}); }
  ir::Value* scalar(DType dtype, int64_t value);
  ir::Value* shapeValue(const ir::Ints& values);
  ir::Value* random(DType dtype, const Shape& shape);
  ir::Value* constant(Tensor tensor) { return graph_.addConstant(std::move(tensor)); }

  /// Random weights and biases. pad: top, bottom, left, right.
  ir::Value* conv(ir::Value* input, int64_t channels, ir::Ints kernel, ir::Ints stride = {1, 1},
                  ir::Ints pad = {0, 0, 0, 0}, int64_t inputZero = 0, ir::Ints dilation = {1, 1});
  ir::Value* depthwise(ir::Value* input, ir::Ints kernel, ir::Ints stride = {1, 1},
                       ir::Ints pad = {0, 0, 0, 0}, int64_t inputZero = 0, int64_t multiple = 1,
                       ir::Ints dilation = {1, 1});
  /// A depthwise convolution with ones: sums of windows.
  ir::Value* sums(ir::Value* input, const ir::Ints& kernel, ir::Ints stride, int64_t inputZero);
  ir::Value* rescale(ir::Value* input, DType type, int64_t multiplier, int64_t shift, int64_t inputZero = 0,
                     int64_t outputZero = 0, bool doubleRound = false);
  /// One random scale per channel: a multiplier from 2^30 to 2^31 and a shift from `shift` to `shift` + 2.
  ir::Value* rescalePerChannel(ir::Value* input, DType type, int64_t shift, int64_t outputZero);
  ir::Value* rescale48(ir::Value* input, DType type, int64_t multiplier, int64_t shift);
  ir::Value* clamp(ir::Value* input, int64_t low, int64_t high);
  ir::Value* table(ir::Value* input);
  ir::Value* averagePool(ir::Value* input, ir::Ints kernel, ir::Ints stride, ir::Ints pad, int64_t zero);
  ir::Value* maxPool(ir::Value* input, ir::Ints kernel, ir::Ints stride, ir::Ints pad);
  /// The first result of an operator.
  template <typename Op, typename... Operands>
  ir::Value* make(Operands&&... operands) {
    return Op::create(builder_, std::forward<Operands>(operands)...).node()->result(0);
  }
  ir::Value* mul(ir::Value* a, ir::Value* b, int64_t shift = 0);
  ir::Value* reshape(ir::Value* input, const Shape& shape);
  ir::Value* slice(ir::Value* input, const Shape& start, const Shape& size);
  ir::Value* transpose(ir::Value* input, ir::Ints perms);
  ir::Value* concat(std::vector<ir::Value*> inputs, int64_t axis);
  ir::Value* pad(ir::Value* input, const ir::Ints& padding, int64_t value);
  ir::Value* tile(ir::Value* input, const ir::Ints& multiples);

  ir::Builder& builder() { return builder_; }
  ir::Graph finish(std::vector<ir::Value*> outputs);

 private:
  ir::Graph graph_;
  ir::Builder builder_;
  uint64_t seed_;
};

/// Names of the NPU operations that a TOSA graph legalizes to, in order; a single error text if it does not
/// legalize.
std::vector<std::string> operations(const ir::Graph& tosa, const char* target);

}  // namespace carina::test
