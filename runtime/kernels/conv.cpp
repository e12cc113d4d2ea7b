// SPDX-License-Identifier: Apache-2.0
// Convolutions of one to three spatial dimensions, transposed or not, in float32: (input, weight, bias,
// stride, padding, dilation, transposed, output_padding, groups, out). Any dimension order.
#include <initializer_list>

#include "carina/kernels.hpp"
#include "window.hpp"

namespace carina::rt::kernels {
namespace {

constexpr uint32_t kSpatial = 3;

/// A tensor as [n][c][z][y][x] with steps; missing spatial dimensions have size 1.
struct Volume {
  const Tensor* tensor = nullptr;
  int64_t sizes[kSpatial] = {1, 1, 1};
  size_t outer = 0, channel = 0, steps[kSpatial] = {};

  explicit Volume(const Tensor& from) : tensor(&from) {
    size_t all[kMaxRank] = {};
    strides(from, all);
    outer = all[0];
    channel = all[1];
    for (uint32_t d = 2; d < from.rank; ++d) {
      const uint32_t k = d + kSpatial - from.rank;
      sizes[k] = from.sizes[d];
      steps[k] = all[d];
    }
  }
};

struct Convolution {
  Volume input, weight, output;
  Window windows[kSpatial];
  bool transposed;
  int64_t groups, inPerGroup, outPerGroup;

  int64_t tap(uint32_t d, int64_t o, int64_t k) const {
    return transposed ? windows[d].transposedTap(o, k) : windows[d].tap(o, k);
  }
  /// One output element; `in` points to its first input channel, `kernel` to its weights.
  float element(const float* in, const float* kernel, const int64_t* o) const {
    // Weights are [out][in / groups] forward, [in][out / groups] transposed.
    const size_t weightStep = transposed ? weight.outer : weight.channel;
    float sum = 0;
    if (inPerGroup == 0) return sum;
    for (int64_t z = 0; z < windows[0].kernel; ++z) {
      const int64_t iz = tap(0, o[0], z);
      if (iz < 0) continue;
      for (int64_t y = 0; y < windows[1].kernel; ++y) {
        const int64_t iy = tap(1, o[1], y);
        if (iy < 0) continue;
        for (int64_t x = 0; x < windows[2].kernel; ++x) {
          const int64_t ix = tap(2, o[2], x);
          if (ix < 0) continue;
          const float* a = in + offset(input, iz, iy, ix);
          const float* b = kernel + offset(weight, z, y, x);
          for (int64_t c = 0; c < inPerGroup; ++c, a += input.channel, b += weightStep) sum += *a * *b;
        }
      }
    }
    return sum;
  }
  static size_t offset(const Volume& volume, int64_t z, int64_t y, int64_t x) {
    return static_cast<size_t>(z) * volume.steps[0] + static_cast<size_t>(y) * volume.steps[1] +
           static_cast<size_t>(x) * volume.steps[2];
  }

  void run(const float* bias) const {
    const size_t perGroup = static_cast<size_t>(outPerGroup);
    for (int64_t n = 0; n < output.tensor->sizes[0]; ++n) {
      for (size_t c = 0; c < static_cast<size_t>(output.tensor->sizes[1]); ++c) {
        const size_t group = c / perGroup, firstIn = group * static_cast<size_t>(inPerGroup);
        const float* in =
            input.tensor->as<const float>() + static_cast<size_t>(n) * input.outer + firstIn * input.channel;
        const float* kernel =
            weight.tensor->as<const float>() +
            (transposed ? firstIn * weight.outer + c % perGroup * weight.channel : c * weight.outer);
        float* out = output.tensor->as<float>() + static_cast<size_t>(n) * output.outer + c * output.channel;
        int64_t o[kSpatial];
        for (o[0] = 0; o[0] < output.sizes[0]; ++o[0]) {
          for (o[1] = 0; o[1] < output.sizes[1]; ++o[1]) {
            for (o[2] = 0; o[2] < output.sizes[2]; ++o[2])
              out[offset(output, o[0], o[1], o[2])] =
                  element(in, kernel, o) + (bias == nullptr ? 0.0f : bias[c]);
          }
        }
      }
    }
  }
};

}  // namespace

Status convolution(KernelContext& context) {
  Call call(context, 10);
  const Tensor* input = call.tensor(0);
  const Tensor* weight = call.tensor(1);
  const Tensor* bias = call.optionalTensor(2);
  const IntegerList stride = call.integers(3), padding = call.integers(4), dilation = call.integers(5);
  const bool transposed = call.boolean(6);
  const IntegerList outputPadding = call.integers(7);
  const int64_t groups = call.integer(8);
  Tensor* output = call.output(9);
  if (!call.ok()) return call.status();
  if (!isReal(input->type) || !isReal(weight->type) || !isReal(output->type) ||
      (bias != nullptr && !isReal(bias->type)))
    return typesDiffer();
  const uint32_t rank = input->rank;
  if (rank < 3 || rank > 2 + kSpatial || weight->rank != rank || output->rank != rank) return shapesDiffer();
  const uint32_t spatial = rank - 2;
  for (const IntegerList* list : {&stride, &padding, &dilation}) {
    if (list->count != 1 && list->count != spatial) return outOfRange(3);
  }
  if (transposed && outputPadding.count != 1 && outputPadding.count != spatial) return outOfRange(7);
  if (groups < 1 || groups > INT32_MAX) return outOfRange(8);

  const int64_t inChannels = input->sizes[1], outChannels = output->sizes[1];
  Convolution conv{Volume(*input), Volume(*weight), Volume(*output),     {},
                   transposed,     groups,          inChannels / groups, outChannels / groups};
  const bool weightFits = transposed ? weight->sizes[0] == inChannels && weight->sizes[1] == conv.outPerGroup
                                     : weight->sizes[0] == outChannels && weight->sizes[1] == conv.inPerGroup;
  if (inChannels % groups != 0 || outChannels % groups != 0 || !weightFits ||
      output->sizes[0] != input->sizes[0])
    return shapesDiffer();
  if (bias != nullptr && (bias->rank != 1 || bias->sizes[0] != outChannels)) return shapesDiffer();
  for (uint32_t i = 0; i < spatial; ++i) {
    const uint32_t d = i + kSpatial - spatial;
    Window& window = conv.windows[d];
    window = {conv.input.sizes[d],
              conv.output.sizes[d],
              conv.weight.sizes[d],
              stride.each(i),
              padding.each(i),
              dilation.each(i),
              transposed ? outputPadding.each(i) : 0};
    if (!window.sane()) return outOfRange(3);
    if (window.output != (transposed ? window.transposedOutputs() : window.outputs(false)))
      return shapesDiffer();
  }
  if (output->elements() != 0) conv.run(bias == nullptr ? nullptr : bias->as<const float>());
  return Status{};
}

}  // namespace carina::rt::kernels
