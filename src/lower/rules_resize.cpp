// SPDX-License-Identifier: Apache-2.0
// Nearest and bilinear upsampling as RESIZE.
#include <array>

#include "aten/ops.hpp"
#include "decompose/resize_axes.hpp"
#include "lower/rules.hpp"

namespace carina::lower {
namespace {

Status lowerUpsample(Lowering& lowering, const ir::Node& node) {
  const ir::Value* input = node.operands()[0];
  const bool bilinear = ir::isa<aten::UpsampleBilinear2dVec>(&node);
  CARINA_TRY(const QuantizedValue real, lowering.plainValue(input));
  CARINA_TRY(const auto axes, decompose::resizeAxes(node));
  Emitter& emit = lowering.emit();
  ir::Value* data = lowering.ordered(real.data, {0, 2, 3, 1});
  const Shape& result = node.result()->shape();
  for (size_t i = 0; i < 2; ++i) {
    if (input->dim(static_cast<int64_t>(i) + 2) != 1) continue;
    Shape multiples(4, 1);  // a single row is repeated
    multiples[i + 1] = result[i + 2];
    data = emit.tile(data, multiples);
  }
  const auto& [y, x] = axes;
  // Selecting one row of several also has the parameters of the identity.
  const bool keeps = data->shape() == Shape{result[0], result[2], result[3], result[1]};
  if (!keeps || !y.identity() || !x.identity()) {
    const double weight = static_cast<double>(y.numerator * x.numerator);
    const DType dtype = data->dtype();
    data = emit.resize(data, bilinear, {y.numerator, y.denominator, x.numerator, x.denominator},
                       {y.offset, x.offset}, {y.border, x.border});
    if (bilinear) {
      CARINA_TRY(data, emit.rescale(data, dtype, 0, 0, std::array{1 / weight}));
    }
  }
  QuantizedValue resized = real;
  resized.data = {data, Layout::ordered(result, {0, 2, 3, 1})};
  lowering.define(node.result(), std::move(resized));
  return {};
}

}  // namespace

void addResizeRules(Rules& rules) {
  for (const ir::OpDef* def :
       {&aten::UpsampleNearest2dVec::def(), &aten::PrivateUpsampleNearestExact2dVec::def(),
        &aten::UpsampleBilinear2dVec::def()})
    rules[def] = lowerUpsample;
}

}  // namespace carina::lower
