// SPDX-License-Identifier: Apache-2.0
// Dilations beyond the hardware's limit, exactly and without a copy. The taps of one output position are a
// multiple of the dilation apart, so they only see one residue class of the input positions: a convolution
// over every n-th position of the input computes every m-th position of the result. Strides in the feature
// maps do the rest.
#include <algorithm>
#include <array>
#include <numeric>

#include "compiler/legalize/legalizer.hpp"

namespace carina::compiler {

using npu_ir::Window;

namespace {

constexpr size_t kMaxConvolutions = 4096;

/// Output positions of one axis that see the same residue class.
struct Phase {
  int64_t output = 0, outputs = 0;  // the first one, and their number
  int64_t input = 0, inputs = 0;    // of the input positions they see
  int64_t before = 0, after = 0;    // padding
};

struct Phases {
  int64_t inputStep = 1, outputStep = 1;  // between the positions of a phase
  int64_t stride = 1, dilation = 1;       // of the convolution over a phase
  std::vector<Phase> phases;              // in the order of their first output positions

  bool complete() const {
    return std::all_of(phases.begin(), phases.end(), [](const Phase& phase) { return phase.inputs > 0; });
  }
};

int64_t floorDiv(int64_t a, int64_t b) {
  return a >= 0 ? a / b : -((b - 1 - a) / b);
}

/// Phases of an axis with `size` input positions. Output position y sees y * stride - pad + tap * dilation:
/// of output positions outputStep apart, those are inputStep apart, and inputStep divides the dilation.
Phases phasesOf(const Window& w, size_t axis, int64_t size, int64_t outputs, int64_t inputStep) {
  const int64_t stride = w.stride[axis], pad = w.pad[axis];
  const int64_t common = std::gcd(inputStep, stride);
  Phases result{inputStep, inputStep / common, stride / common, w.dilation[axis] / inputStep, {}};
  for (int64_t r = 0; r < std::min(result.outputStep, outputs); ++r) {
    Phase phase;
    phase.output = r;
    phase.outputs = ceilDiv(outputs - r, result.outputStep);
    const int64_t start =
        floorDiv(r * stride - pad, inputStep);  // of the first tap, in positions of the class
    const int64_t first = r * stride - pad - start * inputStep;
    const int64_t end =
        start + (phase.outputs - 1) * result.stride + (w.kernel[axis] - 1) * result.dilation + 1;
    const int64_t all = first < size ? ceilDiv(size - first, inputStep) : 0;
    phase.before = std::max<int64_t>(-start, 0);
    phase.after = std::max<int64_t>(end - all, 0);
    phase.input = first + std::max<int64_t>(start, 0) * inputStep;
    phase.inputs = std::min(end, all) - std::max<int64_t>(start, 0);
    result.phases.push_back(phase);
  }
  return result;
}

/// Taps [first, first + count) of a kernel along one axis; weights OHWI or, depthwise, HWC.
Tensor takeTaps(const Tensor& weight, size_t dimension, int64_t first, int64_t count) {
  Shape shape = weight.shape();
  const int64_t size = shape[dimension];
  const int64_t inner = std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(dimension) + 1,
                                        shape.end(), int64_t{1}, std::multiplies<>());
  shape[dimension] = count;
  Tensor result = Tensor::zeros(weight.dtype(), shape);
  for (int64_t i = 0; i < result.numElements(); ++i) {
    const int64_t outer = i / (count * inner), tap = i / inner % count;
    result.setIntegerAt(i, weight.integerAt((outer * size + first + tap) * inner + i % inner));
  }
  return result;
}

}  // namespace

int64_t Legalizer::outputPositions(const Window& w, size_t axis, int64_t size) {
  return (size + w.pad[axis] + w.pad[axis + 2] - (w.kernel[axis] - 1) * w.dilation[axis] - 1) /
             w.stride[axis] +
         1;
}

int64_t Legalizer::phaseStep(const Window& w, size_t axis, bool line) {
  const int64_t dilation = w.dilation[axis];
  ir::Ints left{1, 1};
  for (size_t a = 0; a < 2; ++a) left[a] = w.dilation[a] % kMaxDilation == 0 ? kMaxDilation : 1;
  // The hardware's own dilation halves the number of phases if the wider kernel fits its window.
  const bool halves = left[axis] == kMaxDilation && fitsWindow(w.kernel, left);
  return halves && (!line || dilation <= kMaxDilation) ? dilation / kMaxDilation : dilation;
}

void Legalizer::cutIdleTaps(Convolution& conv) {
  Window& w = conv.window;
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t size = conv.ifm->dim(static_cast<int64_t>(axis)), dilation = w.dilation[axis];
    const int64_t reach = (outputPositions(w, axis, size) - 1) * w.stride[axis];
    int64_t first = 0, count = w.kernel[axis];
    for (; count > 1 && w.pad[axis] > reach && w.pad[axis] >= dilation; --count, ++first) {
      w.pad[axis] -= dilation;
    }
    for (; count > 1 && (count - 1) * dilation - w.pad[axis] >= size && w.pad[axis + 2] >= dilation;
         --count) {
      w.pad[axis + 2] -= dilation;
    }
    if (count < w.kernel[axis]) {
      conv.weight = takeTaps(conv.weight, conv.depthwise ? axis : axis + 1, first, count);
    }
    w.kernel[axis] = count;
    if (count == 1) w.dilation[axis] = 1;
  }
}

Result<ir::Value*> Legalizer::dilated(Convolution conv, std::vector<ir::Node*>& operations) {
  Window& w = conv.window;
  const int64_t depth = conv.ifm->dim(2), channels = conv.bias.numElements();
  const Shape size = conv.ifm->shape();
  const Shape out{outputPositions(w, 0, size[0]), outputPositions(w, 1, size[1]), channels};
  // A line of positions is folded: each phase becomes a column of a map, and one convolution along its height
  // computes all phases with equal padding at once.
  const auto isLine = [&](size_t axis) {
    const size_t other = 1 - axis;
    return size[other] == 1 && w.kernel[other] == 1 && w.pad[other] == 0 && w.pad[other + 2] == 0 &&
           w.kernel[axis] <= kMaxKernelHeight;
  };
  const size_t along = isLine(1) ? 1 : 0;
  const bool line = isLine(along);
  const auto lanesAlong = [&](size_t axis) {
    return phasesOf(w, axis, size[axis], out[axis], phaseStep(w, axis, line));
  };
  Phases rows = lanesAlong(0), columns = lanesAlong(1);
  if (!rows.complete() || !columns.complete()) {
    // Positions that only see padding need some of it in memory.
    CARINA_TRY(conv.ifm, padded(conv.ifm, {w.pad[0], w.pad[2], w.pad[1], w.pad[3], 0, 0}, w.ifmZeroPoint));
    w.pad = {0, 0, 0, 0};
    return dilated(std::move(conv), operations);
  }
  if (rows.phases.size() * columns.phases.size() > kMaxConvolutions) {
    return fail(Code::HardwareLimit, "dilation {}x{} takes {} convolutions, more than {}", w.dilation[0],
                w.dilation[1], rows.phases.size() * columns.phases.size(), kMaxConvolutions)
        .withRemedy("use a smaller dilation");
  }
  std::vector<npu_ir::Piece> pieces;
  /// Adds one convolution over a part of the input. `to`, `strides`: where its result goes, in positions.
  const auto add = [&](const Shape& box, int64_t from, const ir::Ints& steps, const Window& window,
                       int64_t to, const ir::Ints& strides) -> Status {
    Convolution part = conv;
    part.ifm = npu_ir::createView(builder_, conv.ifm, conv.ifm->dtype(), {box[0], box[1], depth},
                                  from * depth, {steps[0] * depth, steps[1] * depth, 1});
    part.window = window;
    part.weight = conv.depthwise
                      ? conv.weight.reshaped({window.kernel[0], window.kernel[1], channels})
                      : conv.weight.reshaped({channels, window.kernel[0], window.kernel[1], depth});
    CARINA_TRY(ir::Value * result, convolve(std::move(part), operations));
    pieces.push_back({result, to * channels, {strides[0] * channels, strides[1] * channels, 1}});
    return {};
  };
  Window part = w;
  if (line) {
    const Phases& phases = along == 0 ? rows : columns;
    part.kernel = {w.kernel[along], 1};
    part.stride = {phases.stride, 1};
    part.dilation = {phases.dilation, 1};
    for (size_t r = 0; r < phases.phases.size();) {
      const Phase& phase = phases.phases[r];
      size_t end = r + 1;
      const auto alike = [&](const Phase& other) {
        return other.outputs == phase.outputs && other.inputs == phase.inputs &&
               other.before == phase.before && other.after == phase.after &&
               other.input == phase.input + static_cast<int64_t>(end - r) * w.stride[along];
      };
      while (end < phases.phases.size() && alike(phases.phases[end])) ++end;
      part.pad = {phase.before, 0, phase.after, 0};
      CARINA_RETURN_IF_ERROR(add({phase.inputs, static_cast<int64_t>(end - r)}, phase.input,
                                 {phases.inputStep, w.stride[along]}, part, phase.output,
                                 {phases.outputStep, 1}));
      r = end;
    }
  } else {
    part.stride = {rows.stride, columns.stride};
    part.dilation = {rows.dilation, columns.dilation};
    for (const Phase& y : rows.phases) {
      for (const Phase& x : columns.phases) {
        part.pad = {y.before, x.before, y.after, x.after};
        CARINA_RETURN_IF_ERROR(add(
            {y.inputs, x.inputs}, y.input * size[1] + x.input, {rows.inputStep * size[1], columns.inputStep},
            part, y.output * out[1] + x.output, {rows.outputStep * out[1], columns.outputStep}));
      }
    }
  }
  return npu_ir::createJoin(builder_, pieces, {conv.type, out});
}

}  // namespace carina::compiler
