// SPDX-License-Identifier: Apache-2.0
// int8 kernels compared with their definitions, reimplemented in int64.
#include <cmath>

#include "runtime/kernels/cases.hpp"

namespace carina::rt::test {
namespace {

/// value * multiplier / 2^31 * 2^shift: the product is rounded half up, the division by a power of two half
/// away from zero.
int64_t rescaled(int64_t value, int64_t multiplier, int64_t shift) {
  const auto up = static_cast<int32_t>(static_cast<uint32_t>(value) << std::max<int64_t>(shift, 0));
  const int64_t product = int64_t{up} * multiplier + (int64_t{1} << 30);
  const int64_t high = product >> 31;
  const int64_t down = std::max<int64_t>(-shift, 0);
  if (down == 0) return high;
  const int64_t magnitude = (std::abs(high) + (int64_t{1} << (down - 1))) >> down;
  return high < 0 ? -magnitude : magnitude;
}

struct Scale {
  int64_t multiplier, shift;
  explicit Scale(Random& random, int64_t low = -9, int64_t high = -3)
      : multiplier(random.range(1 << 30, INT32_MAX)), shift(random.range(low, high)) {}
};

carina::Tensor codes(Random& random, const Shape& shape) {
  return random.tensor(DType::Int8, shape, -128, 127);
}
int8_t cut(int64_t value, int64_t low = -128, int64_t high = 127) {
  return static_cast<int8_t>(std::clamp(value, low, high));
}
/// The element of `tensor` that is broadcast to element i of `shape`.
int64_t broadcastAt(const carina::Tensor& tensor, const Shape& shape, int64_t i) {
  int64_t at = 0, step = 1;
  for (size_t back = 1; back <= shape.size(); ++back) {
    const int64_t size = shape[shape.size() - back], index = i % size;
    i /= size;
    if (back > tensor.shape().size()) continue;
    const int64_t own = tensor.shape()[tensor.shape().size() - back];
    at += (own == 1 ? 0 : index) * step;
    step *= own;
  }
  return tensor.integerAt(at);
}

KernelCase started(const std::string& kernel) {
  KernelCase result;
  result.kernel = result.text = kernel;
  return result;
}

KernelCase addCase(const std::string& kernel, Random& random) {
  KernelCase result = started(kernel);
  const Shape shape = random.shape();
  const carina::Tensor a = codes(random, shape), b = codes(random, random.narrower(shape));
  const Scale first(random, -4, 0), second(random, -4, 0), out(random, -22, -17);
  const int64_t za = random.range(-128, 127), zb = random.range(-128, 127), zo = random.range(-128, 127),
                low = -100, high = 120;
  result.call.tensor(a).integer(za).integer(first.multiplier).integer(first.shift);
  result.call.tensor(b).integer(zb).integer(second.multiplier).integer(second.shift);
  result.call.integer(zo)
      .integer(out.multiplier)
      .integer(out.shift)
      .integer(low)
      .integer(high)
      .output(DType::Int8, shape);
  carina::Tensor expected = carina::Tensor::zeros(DType::Int8, shape);
  for (int64_t i = 0; i < expected.numElements(); ++i) {
    const int64_t x = rescaled((a.integerAt(i) - za) << 20, first.multiplier, first.shift);
    const int64_t y = rescaled((broadcastAt(b, shape, i) - zb) << 20, second.multiplier, second.shift);
    expected.setIntegerAt(i, cut(rescaled(x + y, out.multiplier, out.shift) + zo, low, high));
  }
  result.expected = {expected};
  return result;
}

KernelCase mulCase(const std::string& kernel, Random& random) {
  KernelCase result = started(kernel);
  const Shape shape = random.shape();
  const carina::Tensor a = codes(random, shape), b = codes(random, random.narrower(shape));
  const Scale out(random);
  const int64_t za = random.range(-128, 127), zb = random.range(-128, 127), zo = random.range(-128, 127);
  result.call.tensor(a)
      .integer(za)
      .tensor(b)
      .integer(zb)
      .integer(zo)
      .integer(out.multiplier)
      .integer(out.shift);
  result.call.output(DType::Int8, shape);
  carina::Tensor expected = carina::Tensor::zeros(DType::Int8, shape);
  for (int64_t i = 0; i < expected.numElements(); ++i) {
    const int64_t product = (a.integerAt(i) - za) * (broadcastAt(b, shape, i) - zb);
    expected.setIntegerAt(i, cut(rescaled(product, out.multiplier, out.shift) + zo));
  }
  result.expected = {expected};
  return result;
}

KernelCase tableCase(const std::string& kernel, Random& random) {
  KernelCase result = started(kernel);
  const Shape shape = random.shape();
  const carina::Tensor in = codes(random, shape), table = codes(random, {256});
  result.call.tensor(in).tensor(table).output(DType::Int8, shape);
  carina::Tensor expected = carina::Tensor::zeros(DType::Int8, shape);
  for (int64_t i = 0; i < expected.numElements(); ++i)
    expected.setIntegerAt(i, table.integerAt(in.integerAt(i) + 128));
  result.expected = {expected};
  return result;
}

KernelCase padCase(const std::string& kernel, Random& random) {
  const Shape shape = random.shape(1, 4, 5, false);
  std::vector<int64_t> before(4), after(4), pads;
  for (size_t back = 1; back <= shape.size(); ++back) {
    before[4 - back] = random.range(0, 3);
    after[4 - back] = random.range(0, 3);
    pads.push_back(before[4 - back]);
    pads.push_back(after[4 - back]);
  }
  const carina::Tensor in = codes(random, shape);
  KernelCase result = started(kernel);
  result.expected = {
      aten::test::run("aten.constant_pad_nd.default", {in}, {{"pad", textOf(pads)}, {"value", "-7"}})};
  result.call.tensor(in).integers(before).integers(after).integer(-7).output(DType::Int8,
                                                                             result.expected[0].shape());
  return result;
}

/// Within one code of the exact softmax: the kernel's exponential has 12 bits.
KernelCase softmaxCase(const std::string& kernel, Random& random) {
  KernelCase result = started(kernel);
  const Shape shape = random.shape(1);
  const carina::Tensor in = codes(random, shape);
  const double scale = 0.05;
  // input scale * 2^26 = multiplier / 2^31 * 2^shift
  int shift = 0;
  const double mantissa = std::frexp(scale * (1 << 26), &shift);
  result.call.tensor(in).integer(-1).integer(3).integer(-128);
  result.call.integer(std::llround(mantissa * 2147483648.0))
      .integer(shift)
      .integer(-500)
      .output(DType::Int8, shape);
  carina::Tensor expected = carina::Tensor::zeros(DType::Int8, shape);
  const int64_t length = shape.back();
  for (int64_t start = 0; start < in.numElements(); start += length) {
    double sum = 0;
    for (int64_t i = 0; i < length; ++i)
      sum += std::exp(scale * static_cast<double>(in.integerAt(start + i)));
    for (int64_t i = 0; i < length; ++i) {
      const double part = std::exp(scale * static_cast<double>(in.integerAt(start + i))) / sum;
      expected.setIntegerAt(start + i, cut(std::llround(part * 256) - 128));
    }
  }
  result.expected = {expected};
  result.tolerance = 1;
  return result;
}

carina::Tensor words(Random& random, int64_t count, int64_t low, int64_t high) {
  return random.tensor(DType::Int32, {count}, static_cast<double>(low), static_cast<double>(high));
}

KernelCase linearCase(const std::string& kernel, Random& random) {
  KernelCase result = started(kernel);
  const int64_t depth = random.range(1, 40), columns = random.range(1, 6);
  Shape shape = random.shape(0, 2, 4);
  const int64_t rows = numElements(shape);
  shape.push_back(depth);
  const carina::Tensor in = codes(random, shape), weights = codes(random, {columns, depth}),
                       bias = words(random, columns, -9000, 9000);
  const bool biased = random.coin();
  const Scale scale(random);
  const int64_t inOffset = random.range(-127, 128), weightOffset = random.coin() ? 0 : random.range(-5, 5);
  result.call.tensor(in).tensor(weights);
  if (biased) {
    result.call.tensor(bias);
  } else {
    result.call.null();
  }
  result.call.null().integer(inOffset).integer(weightOffset).integer(3);
  shape.back() = columns;
  result.call.integers({scale.multiplier})
      .integers({scale.shift})
      .integer(110)
      .integer(-120)
      .output(DType::Int8, shape);
  carina::Tensor expected = carina::Tensor::zeros(DType::Int8, shape);
  for (int64_t i = 0; i < rows * columns; ++i) {
    int64_t sum = biased ? bias.integerAt(i % columns) : 0;
    for (int64_t k = 0; k < depth; ++k)
      sum += (in.integerAt(i / columns * depth + k) + inOffset) *
             (weights.integerAt(i % columns * depth + k) + weightOffset);
    expected.setIntegerAt(i, cut(rescaled(sum, scale.multiplier, scale.shift) + 3, -120, 110));
  }
  result.expected = {expected};
  return result;
}

KernelCase batchMatmulCase(const std::string& kernel, Random& random) {
  KernelCase result = started(kernel);
  const int64_t batches = random.range(1, 3), rows = random.range(1, 4), columns = random.range(1, 4),
                depth = random.range(1, 20);
  const carina::Tensor a = codes(random, {batches, rows, depth}),
                       b = codes(random, {batches, columns, depth});
  const Scale scale(random);
  result.call.tensor(a)
      .integer(-9)
      .tensor(b)
      .integer(5)
      .integer(1)
      .integer(scale.multiplier)
      .integer(scale.shift);
  result.call.tensor(codes(random, {0})).output(DType::Int8, {batches, rows, columns});
  carina::Tensor expected = carina::Tensor::zeros(DType::Int8, {batches, rows, columns});
  for (int64_t i = 0; i < expected.numElements(); ++i) {
    const int64_t column = i % columns, row = i / columns;
    int64_t sum = 0;
    for (int64_t k = 0; k < depth; ++k)
      sum +=
          (a.integerAt(row * depth + k) + 9) * (b.integerAt((row / rows * columns + column) * depth + k) - 5);
    expected.setIntegerAt(i, cut(rescaled(sum, scale.multiplier, scale.shift) + 1));
  }
  result.expected = {expected};
  return result;
}

struct Plane {
  Shape in;  // [N, C, H, W]
  std::vector<int64_t> kernel, stride, padding, dilation, out;
  explicit Plane(Random& random, int64_t count, int64_t channels)
      : in{count, channels, random.range(5, 8), random.range(5, 8)} {
    for (size_t d = 0; d < 2; ++d) {
      kernel.push_back(random.range(1, 3));
      stride.push_back(random.range(1, 2));
      dilation.push_back(random.range(1, 2));
      padding.push_back(random.range(0, kernel[d] / 2));
      out.push_back((in[2 + d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1);
    }
  }
  /// Calls f(index in a plane, kernel index) for the kernel elements of output (y, x) that are inside the
  /// input.
  template <typename F>
  void taps(int64_t y, int64_t x, F f) const {
    for (int64_t ky = 0; ky < kernel[0]; ++ky) {
      for (int64_t kx = 0; kx < kernel[1]; ++kx) {
        const int64_t iy = y * stride[0] - padding[0] + ky * dilation[0],
                      ix = x * stride[1] - padding[1] + kx * dilation[1];
        if (iy >= 0 && iy < in[2] && ix >= 0 && ix < in[3]) f(iy * in[3] + ix, ky * kernel[1] + kx);
      }
    }
  }
  int64_t plane() const { return in[2] * in[3]; }
};

const std::vector<uint8_t> kChannelsLast = {0, 2, 3, 1};

KernelCase convCase(const std::string& kernel, Random& random) {
  KernelCase result = started(kernel);
  const bool depthwise = kernel.find("depthwise") != std::string::npos;
  const int64_t groups = random.range(1, 2), channels = groups * random.range(1, 9),
                times = random.range(1, 2);
  const int64_t outs = depthwise ? channels * times : groups * random.range(1, 3),
                perGroup = depthwise ? 1 : channels / groups;
  const Plane plane(random, random.range(1, 2), channels);
  const carina::Tensor in = codes(random, plane.in), bias = words(random, outs, -9000, 9000);
  const int64_t window = plane.kernel[0] * plane.kernel[1];
  const carina::Tensor weight =
      codes(random, depthwise ? Shape{1, plane.kernel[0], plane.kernel[1], outs}
                              : Shape{outs, plane.kernel[0], plane.kernel[1], perGroup});
  const carina::Tensor multipliers = words(random, outs, 1 << 30, INT32_MAX),
                       shifts = words(random, outs, -10, -4);
  const int64_t offset = random.range(-127, 128);
  const std::vector<uint8_t> order = random.coin(4) ? std::vector<uint8_t>{} : kChannelsLast;
  result.call.tensor(in, order).tensor(weight).tensor(bias).integers(plane.stride).integers(plane.padding);
  result.call.integers(plane.dilation);
  if (depthwise) result.call.integer(times);
  const Shape shape = {plane.in[0], outs, plane.out[0], plane.out[1]};
  result.call.integer(offset).integer(-2).tensor(multipliers).tensor(shifts).integer(-128).integer(127);
  result.call.tensor(codes(random, {0})).output(DType::Int8, shape, order);
  carina::Tensor expected = carina::Tensor::zeros(DType::Int8, shape);
  for (int64_t i = 0; i < expected.numElements(); ++i) {
    const int64_t x = i % shape[3], y = i / shape[3] % shape[2], c = i / (shape[3] * shape[2]) % outs,
                  n = i / (shape[3] * shape[2] * outs);
    int64_t sum = bias.integerAt(c);
    plane.taps(y, x, [&](int64_t at, int64_t k) {
      for (int64_t d = 0; d < perGroup; ++d) {
        const int64_t from = depthwise ? c / times : c / (outs / groups) * perGroup + d;
        const int64_t w =
            depthwise ? weight.integerAt(k * outs + c) : weight.integerAt((c * window + k) * perGroup + d);
        sum += (in.integerAt((n * channels + from) * plane.plane() + at) + offset) * w;
      }
    });
    expected.setIntegerAt(i, cut(rescaled(sum, multipliers.integerAt(c), shifts.integerAt(c)) - 2));
  }
  result.expected = {expected};
  return result;
}

KernelCase poolCase(const std::string& kernel, Random& random) {
  KernelCase result = started(kernel);
  const bool largest = kernel.find("max") != std::string::npos;
  Plane plane(random, random.range(1, 2), random.range(1, 5));
  if (!largest) {
    plane.dilation = {1, 1};
    for (size_t d = 0; d < 2; ++d)
      plane.out[d] = (plane.in[2 + d] + 2 * plane.padding[d] - plane.kernel[d]) / plane.stride[d] + 1;
  }
  const carina::Tensor in = codes(random, plane.in);
  result.call.tensor(in, kChannelsLast).integers(plane.kernel).integers(plane.stride).integers(plane.padding);
  const Shape shape = {plane.in[0], plane.in[1], plane.out[0], plane.out[1]};
  if (largest) {
    result.call.integers(plane.dilation).boolean(false).integer(4).integer(4).integer(-100).integer(100);
  } else {
    result.call.boolean(false).integer(4).integer(1).integer(0).tensor(codes(random, {0}));
  }
  result.call.output(DType::Int8, shape, kChannelsLast);
  carina::Tensor expected = carina::Tensor::zeros(DType::Int8, shape);
  for (int64_t i = 0; i < expected.numElements(); ++i) {
    const int64_t x = i % shape[3], y = i / shape[3] % shape[2], image = i / (shape[3] * shape[2]);
    int64_t sum = 0, count = 0, best = -128;
    plane.taps(y, x, [&](int64_t at, int64_t) {
      const int64_t value = in.integerAt(image * plane.plane() + at);
      sum += value;
      ++count;
      best = std::max(best, value);
    });
    expected.setIntegerAt(
        i, largest ? cut(best, -100, 100)
                   : static_cast<int64_t>(std::round(static_cast<double>(sum) / static_cast<double>(count))));
  }
  result.expected = {expected};
  return result;
}

}  // namespace

void addInt8(Generators& g) {
  g["cortex_m::quantized_add.out"] = addCase;
  g["cortex_m::quantized_mul.out"] = mulCase;
  g["cortex_m::quantized_activation.out"] = tableCase;
  g["cortex_m::pad.out"] = padCase;
  g["cortex_m::softmax.out"] = softmaxCase;
  g["cortex_m::quantized_linear.out"] = linearCase;
  g["cortex_m::quantized_batch_matmul.out"] = batchMatmulCase;
  g["cortex_m::quantized_conv2d.out"] = g["cortex_m::quantized_depthwise_conv2d.out"] = convCase;
  g["cortex_m::quantized_avg_pool2d.out"] = g["cortex_m::quantized_max_pool2d.out"] = poolCase;
  for (const char* name : {"minimum", "maximum"}) {
    g["cortex_m::" + std::string(name) + ".out"] = [](const std::string& kernel, Random& random) {
      const Shape shape = random.shape();
      return fromAten(kernel, {{codes(random, shape)}, {codes(random, random.narrower(shape))}}, {},
                      random.layouts());
    };
  }
  g["cortex_m::transpose.out"] = [](const std::string& kernel, Random& random) {
    const Shape shape = random.shape(1);
    std::vector<int64_t> dims;
    for (size_t d = 0; d < shape.size(); ++d) dims.push_back(static_cast<int64_t>(d));
    std::shuffle(dims.begin(), dims.end(), random.engine);
    KernelCase result = started(kernel);
    const carina::Tensor in = codes(random, shape);
    result.expected = {aten::test::run("aten.permute.default", {in}, {{"dims", textOf(dims)}})};
    result.call.tensor(in).integers(dims).output(DType::Int8, result.expected[0].shape());
    return result;
  };
}

}  // namespace carina::rt::test
