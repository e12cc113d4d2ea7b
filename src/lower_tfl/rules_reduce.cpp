// SPDX-License-Identifier: Apache-2.0
// Sums, means and extremes over dimensions.
#include <algorithm>
#include <bit>

#include "lower/reduction.hpp"
#include "lower_tfl/lowering.hpp"
#include "tfl/geometry.hpp"

namespace carina::lower_tfl {
namespace {

/// Sums of (code - zero) over axes, as int32 in the input's shape with these axes reduced to 1. Height and
/// width of int8 images are summed in one operation, a depthwise convolution with ones.
ir::Value* summed(Lowering& lowering, ir::Value* input, int64_t zero, const ir::Ints& axes) {
  Emitter& emit = lowering.emit();
  const Shape& shape = input->shape();
  ir::Ints sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  const bool image = shape.size() == 4 && sorted == ir::Ints{1, 2} && input->dtype() == DType::Int8;
  if (image && shape[1] <= lower::kMaxSumHeight && shape[1] * shape[2] <= lower::kMaxSumArea &&
      shape[3] <= lower::kMaxSumChannels) {
    Tensor ones = Tensor::uninitialized(DType::Int8, {shape[1], shape[2], shape[3], 1});
    const auto values = ones.mutableAs<int8_t>();
    std::fill(values.begin(), values.end(), int8_t{1});
    return emit.depthwiseConv2d(input, emit.constant(std::move(ones)),
                                emit.constant(Tensor::zeros(DType::Int32, {shape[3]})), zero, 0,
                                {{1, 1}, {1, 1}, {0, 0, 0, 0}});
  }
  ir::Value* value = lowering.widened(input, zero);
  for (int64_t axis : sorted) value = emit.reduce(Reduce::Sum, value, axis);
  return value;
}

Result<ir::Ints> axesOf(const ir::Node& node) {
  CARINA_TRY(const ir::Ints given, tfl::constantInts(node.operand(1), "axes"));
  return tfl::axesOf(given, node.operand(0)->rank());
}

template <bool kMean>
Status lowerSum(Lowering& lowering, const ir::Node& node) {
  const ir::Value *input = node.operand(0), *output = node.result();
  CARINA_TRY(const Quantum from, lowering.codesOf(input, "input"));
  CARINA_TRY(const Quantum to, lowering.codesOf(output, "result"));
  CARINA_TRY(const ir::Ints axes, axesOf(node));
  int64_t count = 1;
  for (int64_t axis : axes) count *= input->dim(axis);
  if (count == 1 && input->quantization == output->quantization) {
    lowering.define(output, lowering.emit().reshape(lowering.get(input), output->shape()));
    return {};
  }
  Multiplier factor = quantizeMultiplier(from.scale / to.scale);
  if (kMean) {
    // The multiplier includes the division by the count, and first gains as many bits.
    int bits = std::bit_width(static_cast<uint64_t>(count)) - 1;
    bits = std::min({bits, 32, 31 + factor.shift});
    factor.value = static_cast<int32_t>((int64_t{factor.value} << bits) / count);
    factor.shift -= bits;
  }
  ir::Value* sums = summed(lowering, lowering.get(input), from.zero, axes);
  CARINA_TRY(ir::Value * codes, lowering.rescale(sums, output->dtype(), 0, to.zero, factor));
  lowering.define(output, lowering.emit().reshape(codes, output->shape()));
  return {};
}

template <Reduce kReduce>
Status lowerExtreme(Lowering& lowering, const ir::Node& node) {
  const ir::Value *input = node.operand(0), *output = node.result();
  CARINA_TRY(const ir::Ints axes, axesOf(node));
  ir::Value* value = lowering.get(input);
  for (int64_t axis : axes) value = lowering.emit().reduce(kReduce, value, axis);
  lowering.define(output, lowering.emit().reshape(value, output->shape()));
  return {};
}

Status lowerArgMax(Lowering& lowering, const ir::Node& node) {
  const auto op = ir::cast<tfl::ArgMax>(&node);
  if (op.output()->dtype() != DType::Int32)
    return fail(Code::NoIntegerForm, "its result is {}", ir::typeText(op.output()->type))
        .withRemedy("use int32 positions");
  CARINA_TRY([[maybe_unused]] const Quantum from, lowering.codesOf(op.input(), "input"));
  CARINA_TRY(const int64_t axis, tfl::axisOf(op.axis()->constant().integerAt(0), op.input()->rank()));
  lowering.define(op.output(), lowering.emit().argmax(lowering.get(op.input()), axis));
  return {};
}

}  // namespace

void addReduceRules(Rules& rules) {
  rules[&tfl::Mean::def()] = lowerSum<true>;
  rules[&tfl::Sum::def()] = lowerSum<false>;
  rules[&tfl::ReduceMax::def()] = lowerExtreme<Reduce::Max>;
  rules[&tfl::ReduceMin::def()] = lowerExtreme<Reduce::Min>;
  rules[&tfl::ArgMax::def()] = lowerArgMax;
}

}  // namespace carina::lower_tfl
