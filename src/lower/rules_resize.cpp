// SPDX-License-Identifier: Apache-2.0
// Nearest and bilinear upsampling as RESIZE.
#include <cmath>
#include <numeric>

#include "aten/geometry.hpp"
#include "aten/ops.hpp"
#include "lower/rules.hpp"

namespace carina::lower {
namespace {

/// RESIZE of one dimension: position of output o in the input is (o * denominator + offset) / numerator.
struct Axis {
  int64_t numerator = 1, denominator = 1, offset = 0, border = 0;
};

Axis withBorder(Axis axis, int64_t inputs, int64_t outputs) {
  axis.border = (outputs - 1) * axis.denominator - (inputs - 1) * axis.numerator + axis.offset;
  return axis;
}

/// floor(o * I / O): TOSA rounds to the nearest row, so everything is moved by half a row; the factor of two
/// keeps that whole.
Axis nearestAxis(int64_t inputs, int64_t outputs) {
  const int64_t g = std::gcd(inputs, outputs), n = 2 * outputs / g, d = 2 * inputs / g;
  return withBorder({n, d, -n / 2, 0}, inputs, outputs);
}

/// (o + 1/2) * I / O - 1/2, or o * (I - 1) / (O - 1) with aligned corners.
Axis bilinearAxis(int64_t inputs, int64_t outputs, bool alignCorners) {
  if (alignCorners) {
    const int64_t g = std::gcd(inputs - 1, outputs - 1);
    return withBorder({(outputs - 1) / g, (inputs - 1) / g, 0, 0}, inputs, outputs);
  }
  const int64_t g = std::gcd(inputs, outputs);
  return withBorder({2 * outputs / g, 2 * inputs / g, (inputs - outputs) / g, 0}, inputs, outputs);
}

/// Rows that PyTorch reads: min(floor(o * s), I - 1) with a float32 product.
bool readsTheSameRows(int64_t inputs, int64_t outputs, float scale) {
  for (int64_t o = 0; o < outputs; ++o) {
    const auto row = std::min(static_cast<int64_t>(std::floor(static_cast<float>(o) * scale)), inputs - 1);
    if (row != o * inputs / outputs) return false;
  }
  return true;
}

Status lowerUpsample(Lowering& lowering, const ir::Node& node, bool bilinear, bool alignCorners,
                     const std::optional<ir::Reals>& factors) {
  const ir::Value* input = node.operands()[0];
  CARINA_TRY(const Real real, lowering.plainReal(input));
  Emitter& emit = lowering.emit();
  ir::Value* data = lowering.ordered(real.data, {0, 2, 3, 1});
  const Shape& result = node.result()->shape();
  CARINA_TRY(const aten::ResizeGeometry geometry, aten::resizeGeometry(node));
  std::array<Axis, 2> axes;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t inputs = input->dim(static_cast<int64_t>(i) + 2), outputs = result[i + 2];
    if (inputs == 1) {  // one row serves all
      Shape multiples(4, 1);
      multiples[i + 1] = outputs;
      data = emit.tile(data, multiples);
      continue;
    }
    const double ratio = static_cast<double>(outputs) / static_cast<double>(inputs);
    const bool exact = !factors || std::abs((*factors)[i] - ratio) < 1e-6;
    if (bilinear ? (!exact && !alignCorners) || (alignCorners && outputs == 1)
                 : !readsTheSameRows(inputs, outputs, geometry.scale[i])) {
      return fail("resizing {} rows to {} by factor {}", inputs, outputs, factors ? (*factors)[i] : ratio)
          .withRemedy("give the output size instead of a factor, or a factor that gives whole sizes");
    }
    axes[i] = bilinear ? bilinearAxis(inputs, outputs, alignCorners) : nearestAxis(inputs, outputs);
  }
  for (const Axis& axis : axes) {
    if (axis.numerator > 2048 || axis.denominator >= 16 * axis.numerator) {
      return fail("resize ratio {}/{} is out of RESIZE's range", axis.numerator, axis.denominator)
          .withRemedy("resize in two steps, or by a simpler ratio");
    }
  }
  const bool resizes = axes[0].numerator != 1 || axes[0].denominator != 1 || axes[1].numerator != 1 ||
                       axes[1].denominator != 1;
  if (resizes) {
    const double weight = static_cast<double>(axes[0].numerator * axes[1].numerator);
    const DType dtype = data->dtype();
    data = emit.resize(data, bilinear,
                       {axes[0].numerator, axes[0].denominator, axes[1].numerator, axes[1].denominator},
                       {axes[0].offset, axes[1].offset}, {axes[0].border, axes[1].border});
    if (bilinear) {
      CARINA_TRY(data, emit.rescale(data, dtype, 0, 0, std::array{1 / weight}));
    }
  }
  Real resized = real;
  resized.data = {data, Layout::ordered(result, {0, 2, 3, 1})};
  lowering.define(node.result(), std::move(resized));
  return {};
}

Status lowerNearest(Lowering& lowering, const ir::Node& node) {
  return lowerUpsample(lowering, node, false, false,
                       ir::dynCast<aten::UpsampleNearest2dVec>(&node).scaleFactors());
}

Status lowerBilinear(Lowering& lowering, const ir::Node& node) {
  const aten::UpsampleBilinear2dVec op = ir::dynCast<aten::UpsampleBilinear2dVec>(&node);
  return lowerUpsample(lowering, node, true, op.alignCorners(), op.scaleFactors());
}

}  // namespace

void addResizeRules(Rules& rules) {
  rules[&aten::UpsampleNearest2dVec::def()] = lowerNearest;
  rules[&aten::UpsampleBilinear2dVec::def()] = lowerBilinear;
}

}  // namespace carina::lower
