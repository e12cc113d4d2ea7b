// SPDX-License-Identifier: Apache-2.0
// RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "lower_tfl/lowering.hpp"

namespace carina::lower_tfl {
namespace {

/// RESIZE of one dimension: output o is at input position (o * denominator + offset) / numerator.
struct Axis {
  int64_t numerator = 1, denominator = 1, offset = 0;
  int64_t border(int64_t inputs, int64_t outputs) const {
    return (outputs - 1) * denominator + offset - (inputs - 1) * numerator;
  }
};

/// The ratio used by both kinds of resizing, not reduced.
Axis ratioOf(int64_t inputs, int64_t outputs, bool alignCorners) {
  if (alignCorners && outputs > 1) return {outputs - 1, inputs - 1, 0};
  return {outputs, inputs, 0};
}

Axis reduced(const Axis& axis) {
  const int64_t by = std::gcd(std::gcd(axis.numerator, axis.denominator), axis.offset);
  return {axis.numerator / by, axis.denominator / by, axis.offset / by};
}

/// Ranges of TOSA 2.7.2.
bool inRange(const Axis& axis, int64_t inputs, int64_t outputs) {
  const int64_t n = axis.numerator, border = axis.border(inputs, outputs);
  return n <= 2048 && axis.denominator >= 1 && axis.denominator < 16 * n && axis.offset >= -n &&
         axis.offset < 16 * n && border >= -16 * n && border < n;
}

/// The input row of output o, in the float32 arithmetic of TFLite's kernel.
int64_t nearestRow(int64_t o, int64_t inputs, int64_t outputs, bool alignCorners, bool halfPixel) {
  const bool aligned = alignCorners && outputs > 1;
  const auto rows = static_cast<float>(aligned ? inputs - 1 : inputs);
  const float scale = rows / static_cast<float>(aligned ? outputs - 1 : outputs);
  const float at = (static_cast<float>(o) + (halfPixel ? 0.5F : 0.0F)) * scale;
  const auto row = static_cast<int64_t>(alignCorners ? std::round(at) : std::floor(at));
  return std::clamp<int64_t>(row, 0, inputs - 1);
}

/// Resizes one dimension of an image by selecting rows.
ir::Value* picked(Emitter& emit, ir::Value* image, int64_t axis, const std::vector<int64_t>& rows) {
  std::vector<ir::Value*> parts;
  for (size_t i = 0; i < rows.size();) {
    size_t count = 1;
    while (i + count < rows.size() && rows[i + count] == rows[i] + static_cast<int64_t>(count)) ++count;
    parts.push_back(emit.sliceAxis(image, axis, rows[i], static_cast<int64_t>(count)));
    i += count;
  }
  // TOSA concatenates at most 64 values at a time.
  while (parts.size() > 1) {
    std::vector<ir::Value*> joined;
    for (size_t i = 0; i < parts.size(); i += 64) {
      const auto end = std::min(parts.size(), i + 64);
      joined.push_back(emit.concat(
          {parts.begin() + static_cast<std::ptrdiff_t>(i), parts.begin() + static_cast<std::ptrdiff_t>(end)},
          axis));
    }
    parts = std::move(joined);
  }
  return parts[0];
}

Status lowerNearest(Lowering& lowering, const ir::Node& node) {
  const auto op = ir::cast<tfl::ResizeNearestNeighbor>(&node);
  const Shape &in = op.input()->shape(), &out = op.output()->shape();
  Emitter& emit = lowering.emit();
  ir::Value* image = lowering.get(op.input());
  if (dtypeSize(image->dtype()) > 2)
    return fail(Code::NoIntegerForm, "its input is {}", ir::typeText(op.input()->type));
  std::array<Axis, 2> axes;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t inputs = in[i + 1], outputs = out[i + 1];
    std::vector<int64_t> rows;
    for (int64_t o = 0; o < outputs; ++o)
      rows.push_back(nearestRow(o, inputs, outputs, op.alignCorners(), op.halfPixelCenters()));
    // RESIZE rounds to the nearest row: rounding down is half a row less.
    Axis axis = ratioOf(inputs, outputs, op.alignCorners());
    axis.numerator *= 2;
    axis.denominator *= 2;
    if (!op.alignCorners()) axis.offset = -axis.numerator / 2;
    if (op.halfPixelCenters()) axis.offset += axis.denominator / 2;
    axis = reduced(axis);
    bool same = inRange(axis, inputs, outputs);
    for (int64_t o = 0; same && o < outputs; ++o) {
      const int64_t twice = 2 * (o * axis.denominator + axis.offset) + axis.numerator;
      const int64_t row = twice < 0 ? 0 : twice / (2 * axis.numerator);
      same = std::clamp<int64_t>(row, 0, inputs - 1) == rows[static_cast<size_t>(o)];
    }
    if (same) {
      axes[i] = axis;
    } else {
      image = picked(emit, image, static_cast<int64_t>(i) + 1, rows);
    }
  }
  const bool whole = image->shape() == out;
  if (!whole) {
    const Shape& now = image->shape();
    image = emit.resize(
        image, false, {axes[0].numerator, axes[0].denominator, axes[1].numerator, axes[1].denominator},
        {axes[0].offset, axes[1].offset}, {axes[0].border(now[1], out[1]), axes[1].border(now[2], out[2])});
  }
  lowering.define(op.output(), image);
  return {};
}

/// The factor 1 / unit for a single rounding to the nearest integer, with ties away from zero like TFLite: a
/// factor slightly above 1 / unit moves ties across the half on both sides, and nothing else: sums of int8
/// are below 2^8 units, and units of up to 2^20 have steps that this error does not reach.
lower::RescaleFactor awayFromZero(int64_t unit) {
  int shift = 30;
  while ((int64_t{1} << shift) / unit < (1 << 29)) ++shift;
  return {static_cast<int32_t>((int64_t{1} << shift) / unit + 1), static_cast<int8_t>(shift)};
}

Status lowerBilinear(Lowering& lowering, const ir::Node& node) {
  const auto op = ir::cast<tfl::ResizeBilinear>(&node);
  CARINA_TRY([[maybe_unused]] const Quantum from, lowering.codesOf(op.input(), "input"));
  const Shape &in = op.input()->shape(), &out = op.output()->shape();
  Emitter& emit = lowering.emit();
  ir::Value* image = lowering.get(op.input());
  std::array<Axis, 2> axes;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t inputs = in[i + 1], outputs = out[i + 1];
    Axis axis = ratioOf(inputs, outputs, op.alignCorners());
    if (op.halfPixelCenters()) {
      axis = {2 * axis.numerator, 2 * axis.denominator, axis.denominator - axis.numerator};
    }
    if (inputs == outputs || inputs == 1) {
      // A single row is repeated; dimensions that keep their size are not resized.
      axes[i] = {1, 1, 0};
      if (inputs == 1 && outputs > 1) {
        Shape multiples(4, 1);
        multiples[i + 1] = outputs;
        image = emit.tile(image, multiples);
      }
      continue;
    }
    axis = reduced(axis);
    if (!inRange(axis, inputs, outputs)) {
      return fail(Code::NoIntegerForm, "it resizes {} to {}, which RESIZE cannot express", inputs, outputs)
          .withRemedy("resize by a simpler ratio");
    }
    axes[i] = axis;
  }
  if (image->shape() == out) {
    lowering.define(op.output(), image);
    return {};
  }
  const Shape& now = image->shape();
  ir::Value* sums = emit.resize(
      image, true, {axes[0].numerator, axes[0].denominator, axes[1].numerator, axes[1].denominator},
      {axes[0].offset, axes[1].offset}, {axes[0].border(now[1], out[1]), axes[1].border(now[2], out[2])});
  const int64_t unit = axes[0].numerator * axes[1].numerator;
  if (sums->dtype() == DType::Int48) {
    const Multiplier factor = quantizeMultiplier(1.0 / static_cast<double>(unit));
    CARINA_TRY(ir::Value * codes, lowering.rescale48(sums, DType::Int16, std::span(&factor, 1)));
    lowering.define(op.output(), codes);
    return {};
  }
  ir::Value* codes =
      emit.rescale(sums, op.output()->dtype(), 0, 0, std::array{awayFromZero(unit)}, true, false);
  lowering.define(op.output(), codes);
  return {};
}

}  // namespace

void addResizeRules(Rules& rules) {
  rules[&tfl::ResizeNearestNeighbor::def()] = lowerNearest;
  rules[&tfl::ResizeBilinear::def()] = lowerBilinear;
}

}  // namespace carina::lower_tfl
