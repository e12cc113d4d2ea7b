// SPDX-License-Identifier: Apache-2.0
// cortex_m:: linear, batch matrix product, convolutions and pools on int8, with CMSIS-NN's arithmetic: exact
// int32 sums, then one rescaling per output. Images are [N, C, H, W] in any dimension order (ExecuTorch
// writes channels last).
#include "carina/kernels.hpp"
#include "int8_call.hpp"
#include "stream.hpp"
#include "window.hpp"

namespace carina::rt::kernels {
namespace {

bool isInt32Vector(const Tensor* tensor, int64_t count) {
  return tensor == nullptr ||
         (tensor->type == ScalarType::Int32 && tensor->rank == 1 && tensor->sizes[0] == count);
}

}  // namespace

/// (input [..., in], weights [out, in], bias, kernel_sum, input offset, weight offset, output offset,
/// multipliers, shifts, max, min, out). kernel_sum only helps other implementations.
Status quantizedLinear(KernelContext& context) {
  Call call(context, 12);
  const Tensor* input = call.tensor(0);
  const Tensor* weights = call.tensor(1);
  const Tensor* bias = call.optionalTensor(2);
  const int32_t inputOffset = int8Offset(call, 4), weightOffset = int8Offset(call, 5);
  const IntegerList multipliers = call.integers(7), shifts = call.integers(8);
  call.require(!call.ok() || (multipliers.count == 1 && shifts.count == 1), outOfRange(7));
  const Requantize requantize{checkedRescale(call, multipliers.items[0], shifts.items[0], 7),
                              int8Offset(call, 6), int8Zero(call, 10), int8Zero(call, 9)};
  Tensor* output = call.output(11);
  if (!call.ok()) return call.status();
  if (!isInt8(*input) || !isInt8(*weights) || !isInt8(*output)) return typesDiffer();
  if (input->rank == 0 || weights->rank != 2 || output->rank != input->rank) return shapesDiffer();
  const uint32_t last = input->rank - 1u;
  for (uint32_t d = 0; d < last; ++d) {
    if (input->sizes[d] != output->sizes[d]) return shapesDiffer();
  }
  if (input->sizes[last] != weights->sizes[1] || output->sizes[last] != weights->sizes[0] ||
      !isInt32Vector(bias, weights->sizes[0]))
    return shapesDiffer();
  if (!isRowMajor(*input) || !isRowMajor(*weights) || !isRowMajor(*output))
    return failure(Code::Unsupported, "linear takes row-major tensors");
  if (output->bytes == 0) return Status{};
  const size_t depth = static_cast<size_t>(weights->sizes[1]),
               columns = static_cast<size_t>(weights->sizes[0]);
  for (size_t row = 0; row < output->bytes / columns; ++row) {
    const int8_t* in = input->as<const int8_t>() + row * depth;
    for (size_t c = 0; c < columns; ++c) {
      const int8_t* kernel = weights->as<const int8_t>() + c * depth;
      uint32_t sum = bias == nullptr ? 0 : static_cast<uint32_t>(bias->as<const int32_t>()[c]);
      if (weightOffset != 0) {  // (a + i)(w + o) = (a + i) w + a o + i o
        for (size_t k = 0; k < depth; ++k) sum += static_cast<uint32_t>((in[k] + inputOffset) * weightOffset);
      }
      output->as<int8_t>()[row * columns + c] =
          requantize(dotInt8(in, kernel, depth, inputOffset, static_cast<int32_t>(sum)));
    }
  }
  return Status{};
}

/// (lhs [N, rows, depth], zero, rhs transposed [N, columns, depth], zero, output zero, multiplier, shift,
/// scratch, out)
Status quantizedBatchMatmul(KernelContext& context) {
  Call call(context, 9);
  const Tensor* a = call.tensor(0);
  const int32_t firstZero = int8Zero(call, 1);
  const Tensor* b = call.tensor(2);
  const int32_t secondZero = int8Zero(call, 3);
  const Requantize requantize{rescaleOf(call, 5), int8Zero(call, 4)};
  Tensor* output = call.output(8);
  if (!call.ok()) return call.status();
  if (!isInt8(*a) || !isInt8(*b) || !isInt8(*output)) return typesDiffer();
  if (a->rank != 3 || b->rank != 3 || output->rank != 3 || a->sizes[0] != b->sizes[0] ||
      a->sizes[0] != output->sizes[0] || a->sizes[2] != b->sizes[2] || output->sizes[1] != a->sizes[1] ||
      output->sizes[2] != b->sizes[1])
    return shapesDiffer();
  if (!isRowMajor(*a) || !isRowMajor(*b) || !isRowMajor(*output))
    return failure(Code::Unsupported, "the kernel takes row-major tensors");
  if (output->bytes == 0) return Status{};
  const size_t rows = static_cast<size_t>(a->sizes[1]), columns = static_cast<size_t>(b->sizes[1]),
               depth = static_cast<size_t>(a->sizes[2]);
  int8_t* out = output->as<int8_t>();
  for (size_t line = 0; line < output->bytes / columns; ++line) {
    const int8_t* x = a->as<const int8_t>() + line * depth;
    uint32_t zeros = 0;
    for (size_t k = 0; k < depth; ++k) zeros -= static_cast<uint32_t>((x[k] - firstZero) * secondZero);
    for (size_t c = 0; c < columns; ++c) {
      const int8_t* y = b->as<const int8_t>() + (line / rows * columns + c) * depth;
      *out++ = requantize(dotInt8(x, y, depth, -firstZero, static_cast<int32_t>(zeros)));
    }
  }
  return Status{};
}

namespace {

/// An image with the steps of its dimensions.
struct Image {
  const int8_t* data = nullptr;
  int64_t count = 0, channels = 0, sizes[2] = {};
  size_t steps[4] = {};

  bool read(const Tensor& tensor) {
    if (tensor.rank != 4) return false;
    size_t all[kMaxRank] = {};
    strides(tensor, all);
    for (uint32_t d = 0; d < 4; ++d) steps[d] = all[d];
    data = tensor.as<const int8_t>();
    count = tensor.sizes[0];
    channels = tensor.sizes[1];
    sizes[0] = tensor.sizes[2];
    sizes[1] = tensor.sizes[3];
    return true;
  }
  size_t at(int64_t n, int64_t c, int64_t y, int64_t x) const {
    return static_cast<size_t>(n) * steps[0] + static_cast<size_t>(c) * steps[1] +
           static_cast<size_t>(y) * steps[2] + static_cast<size_t>(x) * steps[3];
  }
};

/// Reads stride, padding and dilation lists of two from argument i on; sizes and kernel must be set.
Status readWindows(Call& call, uint32_t i, Window* windows, bool dilated, bool ceil,
                   const IntegerList* strides) {
  const IntegerList stride = strides != nullptr ? *strides : call.integers(i), padding = call.integers(i + 1);
  IntegerList dilation{{1}, 1, true};
  if (dilated) dilation = call.integers(i + 2);
  if (!call.ok()) return call.status();
  if (stride.count != 2 || padding.count != 2 || dilation.count < 1 || dilation.count > 2)
    return outOfRange(i);
  for (uint32_t k = 0; k < 2; ++k) {
    windows[k].stride = stride.items[k];
    windows[k].padding = padding.items[k];
    windows[k].dilation = dilation.each(k);
    if (!windows[k].sane() || windows[k].kernel > 1 << 24) return outOfRange(i);
    if (windows[k].output != windows[k].outputs(ceil)) return shapesDiffer();
  }
  return Status{};
}

struct Int8Convolution {
  Image in, out;
  const Tensor* weight;
  const Tensor* bias;
  const Tensor* multipliers;
  const Tensor* shifts;
  Window windows[2];
  int32_t inputOffset;
  Requantize requantize;  // `rescale` is set per channel

  Status open(const Tensor& input, const Tensor& output, uint32_t firstKernelSize) {
    if (!isInt8(input) || !isInt8(*weight) || !isInt8(output)) return typesDiffer();
    if (!in.read(input) || !out.read(output) || weight->rank != 4 || !isRowMajor(*weight) ||
        in.count != out.count)
      return shapesDiffer();
    if (!isInt32Vector(bias, out.channels) || !isInt32Vector(multipliers, out.channels) ||
        !isInt32Vector(shifts, out.channels))
      return shapesDiffer();
    for (uint32_t k = 0; k < 2; ++k) {
      windows[k].size = in.sizes[k];
      windows[k].output = out.sizes[k];
      windows[k].kernel = weight->sizes[firstKernelSize + k];
    }
    return Status{};
  }
  /// Computes each output by `taps(sum, c, n, iy, ix, tap)` at every kernel element inside the input.
  template <typename F>
  Status run(const Tensor& output, F taps) {
    if (output.bytes == 0) return Status{};
    for (int64_t c = 0; c < out.channels; ++c) {
      requantize.rescale = channelRescale(static_cast<size_t>(c));
      if (!requantize.rescale.sane()) return outOfRange(8);
      each([&](int64_t n, int64_t y, int64_t x) {
        int32_t sum = bias == nullptr ? 0 : bias->as<const int32_t>()[c];
        for (int64_t ky = 0; ky < windows[0].kernel; ++ky) {
          const int64_t iy = windows[0].tap(y, ky);
          if (iy < 0) continue;
          for (int64_t kx = 0; kx < windows[1].kernel; ++kx) {
            const int64_t ix = windows[1].tap(x, kx);
            if (ix >= 0) sum = taps(sum, c, n, iy, ix, ky * windows[1].kernel + kx);
          }
        }
        output.as<int8_t>()[out.at(n, c, y, x)] = requantize(sum);
      });
    }
    return Status{};
  }

  /// Depthwise with one output per input channel; the channels of a pixel are contiguous.
  Status runByChannels(const Tensor& output) {
    if (output.bytes == 0) return Status{};
    const size_t channels = static_cast<size_t>(out.channels);
    for (size_t c = 0; c < channels; ++c) {
      if (!channelRescale(c).sane()) return outOfRange(8);
    }
    for (size_t c = 0; c < channels; c += kChunk) {
      const size_t count = channels - c < kChunk ? channels - c : kChunk;
      each([&](int64_t n, int64_t y, int64_t x) {
        int32_t sums[kChunk];
        for (size_t i = 0; i < count; ++i) sums[i] = bias == nullptr ? 0 : bias->as<const int32_t>()[c + i];
        const Taps rows(windows[0], y), columns(windows[1], x);
        for (int64_t ky = rows.first; ky < rows.last; ++ky) {
          for (int64_t kx = columns.first; kx < columns.last; ++kx) {
            const size_t tap = static_cast<size_t>(ky * windows[1].kernel + kx);
            macInt8(in.data + in.at(n, 0, windows[0].tap(y, ky), windows[1].tap(x, kx)) + c,
                    weight->as<const int8_t>() + tap * channels + c, sums, count, inputOffset);
          }
        }
        int8_t* to = output.as<int8_t>() + out.at(n, 0, y, x) + c;
        for (size_t i = 0; i < count; ++i) {
          requantize.rescale = saneRescale(c + i);
          to[i] = requantize(sums[i]);
        }
      });
    }
    return Status{};
  }
  Rescale channelRescale(size_t c) const {
    return {multipliers->as<const int32_t>()[c], shifts->as<const int32_t>()[c]};
  }
  /// Keeps the rescaling defined if the output overlaps the multipliers and has overwritten them.
  Rescale saneRescale(size_t c) const {
    const Rescale rescale = channelRescale(c);
    return rescale.sane() ? rescale : Rescale{};
  }
  /// Calls f(n, y, x) for the pixels of the output.
  template <typename F>
  void each(F f) const {
    for (int64_t n = 0; n < out.count; ++n) {
      for (int64_t y = 0; y < out.sizes[0]; ++y) {
        for (int64_t x = 0; x < out.sizes[1]; ++x) f(n, y, x);
      }
    }
  }
};

}  // namespace

/// (input, weight [out, kh, kw, in / groups], bias, stride, padding, dilation, input offset, output offset,
/// multipliers, shifts, min, max, scratch, out)
Status quantizedConv2d(KernelContext& context) {
  Call call(context, 14);
  const Tensor* input = call.tensor(0);
  Int8Convolution conv{{}, {}, call.tensor(1), call.optionalTensor(2), call.tensor(8), call.tensor(9), {},
                       0,  {}};
  conv.inputOffset = int8Offset(call, 6);
  conv.requantize = {{}, int8Offset(call, 7), int8Zero(call, 10), int8Zero(call, 11)};
  Tensor* output = call.output(13);
  if (!call.ok()) return call.status();
  CARINA_RT_TRY(conv.open(*input, *output, 1));
  CARINA_RT_TRY(readWindows(call, 3, conv.windows, true, false, nullptr));
  const int64_t perGroup = conv.weight->sizes[3];
  if (conv.weight->sizes[0] != conv.out.channels || perGroup == 0 || conv.in.channels % perGroup != 0)
    return shapesDiffer();
  const int64_t groups = conv.in.channels / perGroup;
  if (groups == 0 || conv.out.channels % groups != 0) return shapesDiffer();
  const size_t depth = static_cast<size_t>(perGroup);
  const size_t filter = depth * static_cast<size_t>(conv.windows[0].kernel * conv.windows[1].kernel);
  const int64_t outPerGroup = conv.out.channels / groups;
  return conv.run(*output, [&](int32_t sum, int64_t c, int64_t n, int64_t y, int64_t x, int64_t tap) {
    const int8_t* kernel =
        conv.weight->as<const int8_t>() + static_cast<size_t>(c) * filter + static_cast<size_t>(tap) * depth;
    const int8_t* in = conv.in.data + conv.in.at(n, c / outPerGroup * perGroup, y, x);
    const size_t step = conv.in.steps[1];
    if (step == 1) return dotInt8(in, kernel, depth, conv.inputOffset, sum);
    for (size_t k = 0; k < depth; ++k) sum = wrappedSum(sum, (in[k * step] + conv.inputOffset) * kernel[k]);
    return sum;
  });
}

/// (input, weight [1, kh, kw, out], bias, stride, padding, dilation, depth multiplier, input offset, output
/// offset, multipliers, shifts, min, max, scratch, out)
Status quantizedDepthwiseConv2d(KernelContext& context) {
  Call call(context, 15);
  const Tensor* input = call.tensor(0);
  Int8Convolution conv{{}, {}, call.tensor(1), call.optionalTensor(2), call.tensor(9), call.tensor(10), {},
                       0,  {}};
  const int64_t multiplier = call.integer(6);
  conv.inputOffset = int8Offset(call, 7);
  conv.requantize = {{}, int8Offset(call, 8), int8Zero(call, 11), int8Zero(call, 12)};
  Tensor* output = call.output(14);
  if (!call.ok()) return call.status();
  CARINA_RT_TRY(conv.open(*input, *output, 1));
  CARINA_RT_TRY(readWindows(call, 3, conv.windows, true, false, nullptr));
  if (multiplier < 1 || multiplier > INT32_MAX || conv.weight->sizes[0] != 1 ||
      conv.weight->sizes[3] != conv.out.channels || conv.in.channels * multiplier != conv.out.channels)
    return shapesDiffer();
  if (multiplier == 1 && conv.in.steps[1] == 1 && conv.out.steps[1] == 1) return conv.runByChannels(*output);
  const size_t channels = static_cast<size_t>(conv.out.channels);
  return conv.run(*output, [&](int32_t sum, int64_t c, int64_t n, int64_t y, int64_t x, int64_t tap) {
    const int32_t weight =
        conv.weight->as<const int8_t>()[static_cast<size_t>(tap) * channels + static_cast<size_t>(c)];
    return wrappedSum(sum, (conv.in.data[conv.in.at(n, c / multiplier, y, x)] + conv.inputOffset) * weight);
  });
}

namespace {

/// For each output pixel and chunk of channels, calls start(count), each(values, count) for every input pixel
/// within the window, and finish(to, step, count).
template <typename Start, typename Each, typename Finish>
Status poolInt8(const Tensor& input, const Tensor& output, const Window* windows, Start start, Each each,
                Finish finish) {
  Image in, out;
  if (!in.read(input) || !out.read(output) || in.count != out.count || in.channels != out.channels)
    return shapesDiffer();
  if (output.bytes == 0) return Status{};
  const int64_t chunk = static_cast<int64_t>(kChunk);
  for (int64_t n = 0; n < out.count; ++n) {
    for (int64_t y = 0; y < out.sizes[0]; ++y) {
      for (int64_t x = 0; x < out.sizes[1]; ++x) {
        const Taps rows(windows[0], y), columns(windows[1], x);
        for (int64_t c = 0; c < out.channels; c += chunk) {
          const size_t count = static_cast<size_t>(out.channels - c < chunk ? out.channels - c : chunk);
          start(count);
          for (int64_t ky = rows.first; ky < rows.last; ++ky) {
            const int64_t iy = windows[0].tap(y, ky);
            for (int64_t kx = columns.first; kx < columns.last; ++kx) {
              const int8_t* from = in.data + in.at(n, c, iy, windows[1].tap(x, kx));
              int8_t buffer[kChunk];
              const size_t step = in.steps[1];
              for (size_t i = 0; step != 1 && i < count; ++i) buffer[i] = from[i * step];
              each(step == 1 ? from : buffer, count);
            }
          }
          finish(output.as<int8_t>() + out.at(n, c, y, x), out.steps[1], count);
        }
      }
    }
  }
  return Status{};
}

/// Kernel sizes (argument 1), stride, padding and, for max pools, dilation.
Status poolWindows(Call& call, const Tensor& input, const Tensor& output, Window* windows, bool dilated,
                   bool ceil) {
  if (!isInt8(input) || !isInt8(output)) return typesDiffer();
  if (input.rank != 4 || output.rank != 4) return shapesDiffer();
  const IntegerList kernel = call.integers(1);
  IntegerList stride = call.integers(2);
  if (!call.ok()) return call.status();
  if (kernel.count != 2) return outOfRange(1);
  if (stride.count == 0) stride = kernel;
  for (uint32_t k = 0; k < 2; ++k) {
    windows[k].size = input.sizes[2 + k];
    windows[k].output = output.sizes[2 + k];
    windows[k].kernel = kernel.items[k];
  }
  CARINA_RT_TRY(readWindows(call, 2, windows, dilated, ceil, &stride));
  // Then every window has an element of the input, and no more kernel elements are visited than the padded
  // input has.
  for (uint32_t k = 0; k < 2; ++k) {
    if (windows[k].padding > windows[k].kernel / 2) return outOfRange(3);
  }
  return Status{};
}

}  // namespace

/// (input, kernel, stride, padding, ceil_mode, zero, multiplier, shift, scratch, out): averages of the
/// elements within the input, halves away from zero.
Status quantizedAvgPool2d(KernelContext& context) {
  Call call(context, 10);
  const Tensor* input = call.tensor(0);
  const bool ceil = call.boolean(4);
  Tensor* output = call.output(9);
  if (!call.ok()) return call.status();
  Window windows[2];
  CARINA_RT_TRY(poolWindows(call, *input, *output, windows, false, ceil));
  int32_t sums[kChunk];
  int32_t pixels = 0;
  return poolInt8(
      *input, *output, windows,
      [&](size_t count) {
        pixels = 0;
        for (size_t i = 0; i < count; ++i) sums[i] = 0;
      },
      [&](const int8_t* values, size_t count) {
        addToInt8(values, sums, count);
        ++pixels;
      },
      [&](int8_t* to, size_t step, size_t count) {
        for (size_t i = 0; i < count; ++i) {
          const int64_t sum = sums[i], half = pixels / 2;
          to[i * step] = static_cast<int8_t>(pixels == 0 ? 0 : (sum > 0 ? sum + half : sum - half) / pixels);
        }
      });
}

/// (input, kernel, stride, padding, dilation, ceil_mode, input zero, output zero, min, max, out)
Status quantizedMaxPool2d(KernelContext& context) {
  Call call(context, 11);
  const Tensor* input = call.tensor(0);
  const bool ceil = call.boolean(5);
  const int32_t low = int8Zero(call, 8), high = int8Zero(call, 9);
  Tensor* output = call.output(10);
  call.require(!call.ok() || call.integer(6) == call.integer(7), outOfRange(7));
  if (!call.ok()) return call.status();
  Window windows[2];
  CARINA_RT_TRY(poolWindows(call, *input, *output, windows, true, ceil));
  int8_t best[kChunk];
  return poolInt8(
      *input, *output, windows,
      [&](size_t count) {
        for (size_t i = 0; i < count; ++i) best[i] = -128;
      },
      [&](const int8_t* values, size_t count) { maxInt8(values, best, count); },
      [&](int8_t* to, size_t step, size_t count) {
        for (size_t i = 0; i < count; ++i) to[i * step] = static_cast<int8_t>(clampTo(best[i], low, high));
      });
}

}  // namespace carina::rt::kernels
