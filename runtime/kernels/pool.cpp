// SPDX-License-Identifier: Apache-2.0
// Pools over the last two dimensions of a tensor of rank 3 or 4, in any dimension order.
#include <initializer_list>

#include "carina/kernels.hpp"
#include "stream.hpp"
#include "window.hpp"

namespace carina::rt::kernels {
namespace {

/// Planes of a tensor: [n][c][y][x] with steps, n of size 1 at rank 3.
struct Planes {
  int64_t outer = 1, channels = 0, height = 0, width = 0;
  size_t steps[4] = {};

  bool read(const Tensor& tensor) {
    if (tensor.rank != 3 && tensor.rank != 4) return false;
    size_t all[kMaxRank];
    strides(tensor, all);
    const uint32_t first = tensor.rank - 3;
    if (first == 1) {
      outer = tensor.sizes[0];
      steps[0] = all[0];
    }
    channels = tensor.sizes[first];
    height = tensor.sizes[first + 1];
    width = tensor.sizes[first + 2];
    for (uint32_t i = 0; i < 3; ++i) steps[i + 1] = all[first + i];
    return true;
  }
  size_t at(int64_t n, int64_t c, int64_t y, int64_t x) const {
    return static_cast<size_t>(n) * steps[0] + static_cast<size_t>(c) * steps[1] +
           static_cast<size_t>(y) * steps[2] + static_cast<size_t>(x) * steps[3];
  }
};

struct Pool {
  const Tensor* input;
  const Tensor* output;
  Planes in, out;
  Window windows[2];

  Status open() {
    if (!in.read(*input) || !out.read(*output) || input->rank != output->rank || in.outer != out.outer ||
        in.channels != out.channels)
      return shapesDiffer();
    windows[0].size = in.height;
    windows[1].size = in.width;
    windows[0].output = out.height;
    windows[1].output = out.width;
    return Status{};
  }
  /// Reads (kernel, stride, padding[, dilation]) from argument 1 on; the stride defaults to the kernel.
  Status readWindows(Call& call, const IntegerList& dilation, bool ceil) {
    const IntegerList kernel = call.integers(1), stride = call.integers(2), padding = call.integers(3);
    if (!call.ok()) return call.status();
    for (const IntegerList* list : {&kernel, &padding, &dilation}) {
      if (list->count != 1 && list->count != 2) return outOfRange(1);
    }
    if (stride.count > 2) return outOfRange(2);
    for (uint32_t i = 0; i < 2; ++i) {
      Window& window = windows[i];
      window.kernel = kernel.each(i);
      window.stride = stride.count == 0 ? kernel.each(i) : stride.each(i);
      window.padding = padding.each(i);
      window.dilation = dilation.each(i);
      if (!window.sane() || window.kernel > 1 << 24 || window.padding > window.kernel / 2)
        return outOfRange(1);
      if (window.output != window.outputs(ceil)) return shapesDiffer();
    }
    return Status{};
  }
  /// Calls f(n, c, y, x) for every output element.
  template <typename F>
  void each(F f) const {
    if (output->elements() == 0) return;
    for (int64_t n = 0; n < out.outer; ++n) {
      for (int64_t c = 0; c < out.channels; ++c) {
        for (int64_t y = 0; y < out.height; ++y) {
          for (int64_t x = 0; x < out.width; ++x) f(n, c, y, x);
        }
      }
    }
  }
};

constexpr IntegerList kUndilated{{1}, 1, true};

}  // namespace

/// (self, kernel, stride, padding, dilation, ceil_mode, out, indices): indices are y * width + x within a
/// plane.
Status maxPool2dWithIndices(KernelContext& context) {
  Call call(context, 8);
  Pool pool{call.tensor(0), call.output(6), {}, {}, {}};
  const IntegerList dilation = call.integers(4);
  const bool ceil = call.boolean(5);
  Tensor* indices = call.output(7);
  if (!call.ok()) return call.status();
  if (pool.input->type != pool.output->type || indices->type != ScalarType::Int64) return typesDiffer();
  CARINA_RT_TRY(pool.open());
  CARINA_RT_TRY(pool.readWindows(call, dilation, ceil));
  Planes places;
  if (!places.read(*indices) || !sameShape(*pool.output, *indices)) return shapesDiffer();
  const bool real = isReal(pool.input->type);
  pool.each([&](int64_t n, int64_t c, int64_t oy, int64_t ox) {
    float best = 0;
    int64_t bestInteger = 0, index = -1;
    const Window& wy = pool.windows[0];
    const Window& wx = pool.windows[1];
    const Taps rows(wy, oy), columns(wx, ox);
    for (int64_t ky = rows.first; ky < rows.last; ++ky) {
      const int64_t y = oy * wy.stride - wy.padding + ky * wy.dilation;
      for (int64_t kx = columns.first; kx < columns.last; ++kx) {
        const int64_t x = ox * wx.stride - wx.padding + kx * wx.dilation;
        const size_t at = pool.in.at(n, c, y, x);
        bool wins = index < 0;
        if (real) {
          const float value = pool.input->as<const float>()[at];
          wins = wins || value > best || value != value;
          if (wins) best = value;
        } else {
          int64_t value = 0;
          loadIntegers(*pool.input, at, 1, 1, &value);
          wins = wins || value > bestInteger;
          if (wins) bestInteger = value;
        }
        if (wins) index = y * pool.in.width + x;
      }
    }
    const size_t to = pool.out.at(n, c, oy, ox);
    if (real)
      storeReals(*pool.output, to, 1, 1, &best);
    else
      storeIntegers(*pool.output, to, 1, 1, &bestInteger);
    indices->as<int64_t>()[places.at(n, c, oy, ox)] = index;
  });
  return Status{};
}

/// (self, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override, out)
Status avgPool2d(KernelContext& context) {
  Call call(context, 8);
  Pool pool{call.tensor(0), call.output(7), {}, {}, {}};
  const bool ceil = call.boolean(4), countPadding = call.boolean(5);
  const int64_t divisor = call.integer(6, 0);
  call.require(!call.ok() || call.isNull(6) || divisor != 0, outOfRange(6));
  if (!call.ok()) return call.status();
  if (!isReal(pool.input->type) || !isReal(pool.output->type)) return typesDiffer();
  CARINA_RT_TRY(pool.open());
  CARINA_RT_TRY(pool.readWindows(call, kUndilated, ceil));
  pool.each([&](int64_t n, int64_t c, int64_t oy, int64_t ox) {
    const Window& wy = pool.windows[0];
    const Window& wx = pool.windows[1];
    const Taps rows(wy, oy), columns(wx, ox);
    const int64_t top = oy * wy.stride - wy.padding, left = ox * wx.stride - wx.padding;
    float sum = 0;
    for (int64_t ky = rows.first; ky < rows.last; ++ky) {
      for (int64_t kx = columns.first; kx < columns.last; ++kx)
        sum += pool.input->as<const float>()[pool.in.at(n, c, top + ky, left + kx)];
    }
    int64_t count = divisor;
    if (count == 0 && countPadding) {
      const auto within = [](const Window& w, int64_t start) {
        const int64_t end = start + w.kernel, most = w.size + w.padding;
        return (end < most ? end : most) - start;
      };
      count = within(wy, top) * within(wx, left);
    } else if (count == 0) {
      count = (rows.last - rows.first) * (columns.last - columns.first);
    }
    pool.output->as<float>()[pool.out.at(n, c, oy, ox)] = sum / static_cast<float>(count);
  });
  return Status{};
}

/// (self, output_size, out): output index o averages inputs floor(o * in / out) to ceil((o + 1) * in / out).
Status adaptiveAvgPool2d(KernelContext& context) {
  Call call(context, 3);
  Pool pool{call.tensor(0), call.output(2), {}, {}, {}};
  const IntegerList size = call.integers(1);
  if (!call.ok()) return call.status();
  if (!isReal(pool.input->type) || !isReal(pool.output->type)) return typesDiffer();
  CARINA_RT_TRY(pool.open());
  if (size.count != 2 || size.items[0] != pool.out.height || size.items[1] != pool.out.width)
    return outOfRange(1);
  pool.each([&](int64_t n, int64_t c, int64_t oy, int64_t ox) {
    const auto edge = [](int64_t o, int64_t in, int64_t out) { return (o * in + out - 1) / out; };
    const int64_t top = oy * pool.in.height / pool.out.height, left = ox * pool.in.width / pool.out.width;
    const int64_t bottom = edge(oy + 1, pool.in.height, pool.out.height),
                  right = edge(ox + 1, pool.in.width, pool.out.width);
    float sum = 0;
    for (int64_t y = top; y < bottom; ++y) {
      for (int64_t x = left; x < right; ++x) sum += pool.input->as<const float>()[pool.in.at(n, c, y, x)];
    }
    pool.output->as<float>()[pool.out.at(n, c, oy, ox)] =
        sum / static_cast<float>((bottom - top) * (right - left));
  });
  return Status{};
}

}  // namespace carina::rt::kernels
