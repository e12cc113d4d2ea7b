// SPDX-License-Identifier: Apache-2.0
// RESIZE. Ethos-U85 has an operation for it (except for 48-bit results). On Ethos-U55 and U65 output
// positions with the same weights repeat with the period of the ratio: each phase of them is a strided copy
// (nearest) or a two-tap convolution (bilinear), one axis after the other.
#include <algorithm>
#include <numeric>

#include "compiler/legalize/legalizer.hpp"

namespace carina::compiler {

using npu_ir::ElementwiseMode;
using npu_ir::OutputStage;
using npu_ir::Piece;

namespace {

constexpr int64_t kMaxOperations = 4096;
/// Weights have 9 bits including the sign.
constexpr int64_t kMaxWeight = 255;

/// One axis of a RESIZE: output position o is at input position (o * denominator + offset) / numerator.
struct Axis {
  int64_t inputs = 1, outputs = 1, numerator = 1, denominator = 1, offset = 0;

  int64_t period() const { return numerator / std::gcd(numerator, denominator); }
  bool identity() const { return inputs == outputs && numerator == 1 && denominator == 1 && offset == 0; }

  struct Sample {
    int64_t low, high,
        fraction;  // rows inside the input, and the part of the numerator towards the higher one
  };
  Sample sample(int64_t position) const {
    const int64_t t = position * denominator + offset;
    const int64_t index = t >= 0 ? t / numerator : -((-t + numerator - 1) / numerator);
    return {std::clamp<int64_t>(index, 0, inputs - 1), std::clamp<int64_t>(index + 1, 0, inputs - 1),
            t - index * numerator};
  }
  /// Weights of the rows that output position o reads, which add up to the numerator; a pair clamped to the
  /// same row counts as one.
  ir::Ints taps(int64_t o) const {
    const Sample s = sample(o);
    if (s.low == s.high || s.fraction == 0) return {numerator};
    return {numerator - s.fraction, s.fraction};
  }
  static Axis unchanged(int64_t size) { return {size, size, 1, 1, 0}; }
};

/// Output positions first, first + step, ... that read input positions source, source + sourceStep, ...
struct PhaseRun {
  int64_t first, step, count, source, sourceStep;
};

/// The positions of each phase, split where `same` indicates that two of them are read differently. Repeating
/// one source position cannot be addressed: such positions come one by one.
template <typename Source, typename Same>
std::vector<PhaseRun> runsOf(const Axis& axis, const Source& source, const Same& same) {
  std::vector<PhaseRun> result;
  const int64_t period = axis.period();
  for (int64_t phase = 0; phase < std::min(period, axis.outputs); ++phase) {
    for (int64_t o = phase; o < axis.outputs;) {
      PhaseRun run{o, period, 1, source(o), 0};
      if (o + period < axis.outputs) run.sourceStep = source(o + period) - run.source;
      for (int64_t next = o + period; run.sourceStep > 0 && next < axis.outputs && same(o, next) &&
                                      source(next) == run.source + run.count * run.sourceStep;
           next += period) {
        ++run.count;
      }
      o += run.count * period;
      result.push_back(run);
    }
  }
  return result;
}

/// Runs of output positions with the same weights.
std::vector<PhaseRun> weightedRuns(const Axis& axis) {
  return runsOf(
      axis, [&axis](int64_t o) { return axis.sample(o).low; },
      [&axis](int64_t a, int64_t b) { return axis.taps(a) == axis.taps(b); });
}

Axis axisOf(const tosa::Resize& node, size_t i) {
  const ir::Ints scale = constantValues(node.scale()), offset = constantValues(node.offset());
  const auto dim = static_cast<int64_t>(i) + 1;
  return {node.input()->dim(dim), node.output()->dim(dim), scale[2 * i], scale[2 * i + 1], offset[i]};
}

/// Whether both axes at once, in a convolution for each pair of runs, take less time than one axis after the
/// other: the rows in between are not written and read, but there are more convolutions, each of which takes
/// as long to start and end as hundreds of elements.
bool savesStep(const std::array<Axis, 2>& axes, int64_t depth) {
  constexpr int64_t kElementsPerOperation = 600;
  if (axes[0].identity() || axes[1].identity() || axes[0].numerator * axes[1].numerator > kMaxWeight)
    return false;
  const auto ys = static_cast<int64_t>(weightedRuns(axes[0]).size());
  const auto xs = static_cast<int64_t>(weightedRuns(axes[1]).size());
  return axes[0].outputs * axes[1].inputs * depth > (ys * xs - ys - xs) * kElementsPerOperation;
}

/// Weights of a depthwise window: products of row and column weights, minus 128 so that int8 holds weights up
/// to 255. byte: which byte of them, -1: all.
Tensor weightsOf(const ir::Ints& rows, const ir::Ints& columns, int64_t depth, int byte) {
  Tensor tensor = Tensor::zeros(
      DType::Int8, {static_cast<int64_t>(rows.size()), static_cast<int64_t>(columns.size()), depth});
  for (int64_t i = 0; i < tensor.numElements(); ++i) {
    const auto tap = static_cast<size_t>(i / depth);
    const int64_t weight = rows[tap / columns.size()] * columns[tap % columns.size()];
    tensor.setIntegerAt(i, (byte < 0 ? weight : (weight >> (8 * byte)) & 0xff) - 128);
  }
  return tensor;
}

}  // namespace

Status Legalizer::lowerResize(ir::Node* node) {
  const tosa::Resize op(node);
  const bool nearest = op.mode() == tosa::ResizeMode::NEAREST;
  const ir::Ints scale = constantValues(op.scale()), offset = constantValues(op.offset());
  // A RESCALE cannot be fused into a 48-bit RESIZE: convolutions are used instead. They also handle
  // parameters that exceed the operation's fields.
  bool fits = npu().resize && dtypeSize(op.output()->dtype()) <= 4;
  for (size_t axis = 0; axis < 2; ++axis) {
    fits =
        fits && scale[2 * axis] <= 2048 && offset[axis] >= -scale[2 * axis] && offset[axis] < scale[2 * axis];
  }
  if (!fits) return nearest ? resizeNearest(op) : resizeBilinear(op);
  CARINA_TRY(ir::Value * input, get(op.input()));
  const Shape& out = op.output()->shape();
  std::vector<ir::Value*> parts;
  std::vector<ir::Node*> operations;
  for (int64_t n = 0; n < input->dim(0); ++n) {
    ir::NodeSpec spec;
    spec.def = &npu_ir::Resize::def();
    spec.operands = {{image(input, n)}, {}};
    const OutputStage stage;
    spec.types = {{op.output()->dtype(), {out[1], out[2], input->dim(3)}}};
    spec.attributes.emplace_back(stage.multipliers);
    spec.attributes.emplace_back(stage.shifts);
    spec.attributes.emplace_back(static_cast<int64_t>(stage.rounding));
    spec.attributes.emplace_back(int64_t{0});
    spec.attributes.emplace_back(ir::Ints{});
    spec.attributes.emplace_back(static_cast<int64_t>(npu_ir::TableKind::NONE));
    spec.attributes.emplace_back(
        static_cast<int64_t>(nearest ? npu_ir::ResizeMode::NEAREST : npu_ir::ResizeMode::BILINEAR));
    spec.attributes.emplace_back(scale);
    spec.attributes.emplace_back(offset);
    ir::Node* resize = builder_.create(std::move(spec));
    parts.push_back(resize->result());
    operations.push_back(resize);
  }
  define(op.output(), images(parts), std::move(operations));
  return {};
}

Status Legalizer::resizeNearest(const tosa::Resize& node) {
  CARINA_TRY(ir::Value * input, get(node.input()));
  const Shape& out = node.output()->shape();
  const auto runs = [&](size_t i) {
    const Axis axis = axisOf(node, i);
    return runsOf(
        axis,
        [&axis](int64_t o) {
          const Axis::Sample s = axis.sample(o);
          return 2 * s.fraction >= axis.numerator ? s.high : s.low;
        },
        [](int64_t, int64_t) { return true; });
  };
  const auto ys = runs(0), xs = runs(1);
  const int64_t copies = static_cast<int64_t>(ys.size() * xs.size()) * input->dim(0);
  if (copies > kMaxOperations)
    return fail(Code::HardwareLimit, "RESIZE takes {} copies, more than {}", copies, kMaxOperations)
        .withRemedy("use an integer scale factor");
  const Shape in = rowMajorStrides(input->shape()), to = rowMajorStrides(out);
  std::vector<Piece> pieces;
  for (int64_t n = 0; n < input->dim(0); ++n) {
    for (const PhaseRun& y : ys) {
      for (const PhaseRun& x : xs) {
        for (Piece& piece : emitCopies(builder_, {input,
                                                  {y.count, x.count, input->dim(3)},
                                                  n * in[0] + y.source * in[1] + x.source * in[2],
                                                  {y.sourceStep * in[1], x.sourceStep * in[2], 1},
                                                  n * to[0] + y.first * to[1] + x.first * to[2],
                                                  {y.step * to[1], x.step * to[2], 1}})) {
          pieces.push_back(std::move(piece));
        }
      }
    }
  }
  define(node.output(), npu_ir::createJoin(builder_, pieces, {node.output()->dtype(), out}));
  return {};
}

Status Legalizer::resizeBilinear(const tosa::Resize& node) {
  CARINA_TRY(ir::Value * input, get(node.input()));
  const std::array<Axis, 2> axes{axisOf(node, 0), axisOf(node, 1)};
  const DType type = node.output()->dtype();
  const int64_t most = std::max(axes[0].numerator, axes[1].numerator);
  // 8-bit rows weighted by up to 255 are still 16-bit values, which the other axis then reads. 16-bit ones
  // have no such headroom: their 24-bit sums are split. Larger weights are applied along both axes at once,
  // by two convolutions since a product of weights has two bytes; so are those whose product has one byte, if
  // that is faster.
  const bool both = !axes[0].identity() && !axes[1].identity();
  const bool wide = dtypeSize(input->dtype()) == 2;
  const bool apart = both && wide && most <= kMaxWeight && axes[0].numerator * axes[1].numerator > kMaxWeight;
  const bool together = both && !apart && (wide || most > kMaxWeight || savesStep(axes, input->dim(3)));
  const int64_t weights = together ? axes[0].numerator * axes[1].numerator : most;
  if (weights > 0xffff) {
    return fail(Code::HardwareLimit, "bilinear RESIZE has weights up to {}, more than 65535", weights)
        .withRemedy("use a simpler ratio, or nearest-neighbour resizing");
  }
  const bool twoBytes = weights > kMaxWeight;
  const bool sums = apart || twoBytes;  // the results are 32-bit sums
  std::vector<ir::Node*> operations;
  int64_t count = 0;
  // One step along either or both axes: [H, W, C] to [outputs of y, outputs of x, C]. byte: which byte of the
  // weights, -1: all.
  const auto step = [&](ir::Value* map, const Axis& vertical, const Axis& horizontal, int byte,
                        DType result) -> Result<ir::Value*> {
    const int64_t depth = map->dim(2);
    const Shape out{vertical.outputs, horizontal.outputs, depth}, strides = rowMajorStrides(out);
    const auto ys = weightedRuns(vertical), xs = weightedRuns(horizontal);
    count += static_cast<int64_t>(ys.size() * xs.size());
    if (count > kMaxOperations) {
      return fail(Code::HardwareLimit, "RESIZE takes more than {} convolutions", kMaxOperations)
          .withRemedy("use an integer scale factor");
    }
    operations.clear();
    std::vector<Piece> pieces;
    for (const PhaseRun& y : ys) {
      for (const PhaseRun& x : xs) {
        const ir::Ints rows = vertical.taps(y.first), columns = horizontal.taps(x.first);
        const auto kh = static_cast<int64_t>(rows.size()), kw = static_cast<int64_t>(columns.size());
        Convolution conv;
        conv.depthwise = true;
        conv.type = result;
        conv.ifm = npu_ir::createSlice(
            builder_, map, {y.source, x.source, 0},
            {(y.count - 1) * y.sourceStep + kh, (x.count - 1) * x.sourceStep + kw, depth});
        conv.window.kernel = {kh, kw};
        conv.window.stride = {std::max<int64_t>(y.sourceStep, 1), std::max<int64_t>(x.sourceStep, 1)};
        conv.weightZeroPoint = -128;  // so that int8 holds weights up to 255
        conv.weight = weightsOf(rows, columns, depth, byte);
        conv.bias = Tensor::zeros(DType::Int32, {depth});
        CARINA_TRY(ir::Value * part, convolve(std::move(conv), operations));
        pieces.push_back({part,
                          y.first * strides[0] + x.first * strides[1],
                          {y.step * strides[0], x.step * strides[1], 1}});
      }
    }
    if (pieces.size() == 1) return pieces[0].value;
    return npu_ir::createJoin(builder_, pieces, {result, out});
  };
  const auto shifted = [&](ir::Value* map, int64_t shift, DType result) {
    OutputStage stage;
    stage.multipliers = {1};
    stage.shifts = {shift};
    return npu_ir::createElementwise(builder_, ElementwiseMode::MUL, {map}, {scalarConstant(DType::Int32, 1)},
                                     npu_ir::Rounding::NATURAL, stage, result);
  };
  const auto times256 = [&](ir::Value* map) {
    return elementwise(ElementwiseMode::MUL, map, scalarConstant(DType::Int32, 256), DType::Int32);
  };
  std::vector<ir::Value*> parts;
  std::vector<ir::Node*> last;
  for (int64_t n = 0; n < input->dim(0); ++n) {
    ir::Value* map = image(input, n);
    const Axis rows = Axis::unchanged(map->dim(0)), columns = Axis::unchanged(map->dim(1));
    if (apart) {
      // sum = 256 * high + low, each 16 bits, however `high` is rounded.
      CARINA_TRY(ir::Value * sum, step(map, axes[0], columns, -1, DType::Int32));
      ir::Value* high = shifted(sum, 8, DType::Int32);
      CARINA_TRY(ir::Value * low, times256(high));
      CARINA_TRY(low, elementwise(ElementwiseMode::SUB, sum, low, DType::Int32));
      const Axis unchanged = Axis::unchanged(sum->dim(0));
      CARINA_TRY(high, step(shifted(high, 0, DType::Int16), unchanged, axes[1], -1, DType::Int32));
      CARINA_TRY(low, step(shifted(low, 0, DType::Int16), unchanged, axes[1], -1, DType::Int32));
      CARINA_TRY(high, times256(high));
      CARINA_TRY(map, elementwise(ElementwiseMode::ADD, high, low, DType::Int32));
    } else if (twoBytes) {
      const Axis &y = axes[0].identity() ? rows : axes[0], &x = axes[1].identity() ? columns : axes[1];
      CARINA_TRY(ir::Value * low, step(map, y, x, 0, DType::Int32));
      CARINA_TRY(ir::Value * high, step(map, y, x, 1, DType::Int32));
      CARINA_TRY(high, times256(high));
      CARINA_TRY(map, elementwise(ElementwiseMode::ADD, high, low, DType::Int32));
    } else if (together) {
      CARINA_TRY(map, step(map, axes[0], axes[1], -1, type));
    } else {
      if (!axes[0].identity()) {
        CARINA_TRY(map, step(map, axes[0], columns, -1, axes[1].identity() ? type : DType::Int16));
      }
      if (!axes[1].identity() || axes[0].identity()) {
        CARINA_TRY(map, step(map, Axis::unchanged(map->dim(0)), axes[1], -1, type));
      }
    }
    parts.push_back(map);
    if (!sums) last.insert(last.end(), operations.begin(), operations.end());
  }
  ir::Value* result = images(parts);
  if (!sums || type == DType::Int32) {
    define(node.output(), result, std::move(last));
    return {};
  }
  return rescaleSums(node.output(), result);
}

Status Legalizer::rescaleSums(const ir::Value* output, ir::Value* sums) {
  // The sums fit 32 bits although their type has 48.
  const auto rescale = consumingRescale(output);
  if (!rescale || rescale->inputZeroPoint != 0) {
    return fail(Code::NoIntegerForm, "the 48-bit result of RESIZE is not rescaled immediately")
        .withRemedy("make a single RESCALE the only use of its result");
  }
  const ir::Value* rescaled = output->uses().front().node->result();
  CARINA_TRY(ir::Value * result, scale32(sums, *rescale, rescaled->shape()));
  define(rescaled, result);
  return {};
}

}  // namespace carina::compiler
