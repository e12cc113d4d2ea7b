// SPDX-License-Identifier: Apache-2.0
// Convolutions of random geometry against the defining sums, written out naively.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "aten/compare.hpp"
#include "aten/one_op.hpp"

namespace carina::aten::test {
namespace {

struct Case {
  int64_t batch, groups, inPerGroup, outPerGroup, size, kernel, stride, padding, dilation, outputPadding;
};

Tensor randomTensor(const Shape& shape) {
  Tensor tensor = Tensor::uninitialized(DType::Float32, shape);
  for (float& value : tensor.mutableAs<float>())
    value = static_cast<float>(*rc::gen::inRange(-100, 100)) / 50.0f;
  return tensor;
}
float at(const Tensor& t, int64_t a, int64_t b, int64_t c, int64_t d) {
  return t.as<float>()[static_cast<size_t>(((a * t.dim(1) + b) * t.dim(2) + c) * t.dim(3) + d)];
}

/// out[n, o, y, x] = b + sum in[n, c, y*s - p + ky*d, x*s - p + kx*d] * w[o, c, ky, kx]
Tensor direct(const Case& k, const Tensor& in, const Tensor& w, const Tensor& b, const Shape& shape) {
  Tensor out = Tensor::zeros(DType::Float32, shape);
  float* to = out.mutableAs<float>().data();
  for (int64_t n = 0; n < shape[0]; ++n)
    for (int64_t o = 0; o < shape[1]; ++o)
      for (int64_t y = 0; y < shape[2]; ++y)
        for (int64_t x = 0; x < shape[3]; ++x, ++to) {
          double sum = static_cast<double>(b.as<float>()[static_cast<size_t>(o)]);
          for (int64_t c = 0; c < k.inPerGroup; ++c)
            for (int64_t ky = 0; ky < k.kernel; ++ky)
              for (int64_t kx = 0; kx < k.kernel; ++kx) {
                const int64_t iy = y * k.stride - k.padding + ky * k.dilation,
                              ix = x * k.stride - k.padding + kx * k.dilation;
                if (iy < 0 || ix < 0 || iy >= k.size || ix >= k.size) continue;
                sum += static_cast<double>(at(in, n, o / k.outPerGroup * k.inPerGroup + c, iy, ix)) *
                       static_cast<double>(at(w, o, c, ky, kx));
              }
          *to = static_cast<float>(sum);
        }
  return out;
}

/// out[n, o, y*s - p + ky*d, ...] += in[n, c, y, x] * w[c, o, ky, kx], then the bias
Tensor transposed(const Case& k, const Tensor& in, const Tensor& w, const Tensor& b, const Shape& shape) {
  Tensor out = Tensor::zeros(DType::Float32, shape);
  float* to = out.mutableAs<float>().data();
  const auto place = [&](int64_t n, int64_t o, int64_t y, int64_t x) -> float& {
    return to[((n * shape[1] + o) * shape[2] + y) * shape[3] + x];
  };
  for (int64_t n = 0; n < shape[0]; ++n) {
    for (int64_t o = 0; o < shape[1]; ++o)
      for (int64_t i = 0; i < shape[2] * shape[3]; ++i)
        (&place(n, o, 0, 0))[i] = b.as<float>()[static_cast<size_t>(o)];
    for (int64_t c = 0; c < k.groups * k.inPerGroup; ++c)
      for (int64_t y = 0; y < k.size; ++y)
        for (int64_t x = 0; x < k.size; ++x)
          for (int64_t o = 0; o < k.outPerGroup; ++o)
            for (int64_t ky = 0; ky < k.kernel; ++ky)
              for (int64_t kx = 0; kx < k.kernel; ++kx) {
                const int64_t oy = y * k.stride - k.padding + ky * k.dilation,
                              ox = x * k.stride - k.padding + kx * k.dilation;
                if (oy < 0 || ox < 0 || oy >= shape[2] || ox >= shape[3]) continue;
                place(n, c / k.inPerGroup * k.outPerGroup + o, oy, ox) +=
                    at(in, n, c, y, x) * at(w, c, o, ky, kx);
              }
  }
  return out;
}

Case anyCase() {
  Case k{*rc::gen::inRange(1, 3), *rc::gen::inRange(1, 4),
         *rc::gen::inRange(1, 3), *rc::gen::inRange(1, 4),
         *rc::gen::inRange(4, 9), *rc::gen::inRange(1, 4),
         *rc::gen::inRange(1, 4), *rc::gen::inRange(0, 2),
         *rc::gen::inRange(1, 3), 0};
  if (k.padding > k.dilation * (k.kernel - 1)) k.padding = 0;
  if (k.dilation * (k.kernel - 1) + 1 > k.size + 2 * k.padding) k.dilation = 1;
  k.outputPadding = *rc::gen::inRange<int64_t>(0, std::max(k.stride, k.dilation));
  return k;
}
std::string text(int64_t value) {
  return "[" + std::to_string(value) + "]";
}

RC_GTEST_PROP(AtenConvolution, EqualsItsDefinition, ()) {
  const Case k = anyCase();
  const Tensor in = randomTensor({k.batch, k.groups * k.inPerGroup, k.size, k.size});
  const Tensor w = randomTensor({k.groups * k.outPerGroup, k.inPerGroup, k.kernel, k.kernel});
  const Tensor b = randomTensor({k.groups * k.outPerGroup});
  const Tensor out = run("aten.conv2d.default", {in, w, b},
                         {{"stride", text(k.stride)},
                          {"padding", text(k.padding)},
                          {"dilation", text(k.dilation)},
                          {"groups", std::to_string(k.groups)}});
  RC_ASSERT(close(out, direct(k, in, w, b, out.shape())));
}

/// For any vector width, products are rounded before they are added.
TEST(AtenConvolution, DepthwiseSumsMatchScalarFloatArithmetic) {
  constexpr int64_t kChannels = 3, kHeight = 4;
  for (int64_t width = 3; width < 42; ++width) {
    for (const int64_t stride : {1, 2, 3}) {
      for (const int64_t dilation : {1, 2}) {
        Tensor in = Tensor::uninitialized(DType::Float32, {1, kChannels, kHeight, width}),
               w = Tensor::uninitialized(DType::Float32, {kChannels, 1, 3, 3});
        float next = 0.37f;
        for (Tensor* tensor : {&in, &w}) {
          for (float& value : tensor->mutableAs<float>()) value = next = 3.9f * next * (1 - next);
        }
        const Tensor b = Tensor::from(Shape{kChannels}, std::vector<float>{0.1f, -0.2f, 0.3f});
        const Tensor out = run("aten.conv2d.default", {in, w, b},
                               {{"stride", text(stride)},
                                {"padding", text(dilation)},
                                {"dilation", text(dilation)},
                                {"groups", std::to_string(kChannels)}});
        const float* found = out.as<float>().data();
        for (int64_t c = 0; c < kChannels; ++c) {
          for (int64_t y = 0; y < out.dim(2); ++y) {
            for (int64_t x = 0; x < out.dim(3); ++x) {
              float sum = b.as<float>()[static_cast<size_t>(c)];
              for (int64_t tap = 0; tap < 9; ++tap) {
                const int64_t iy = y * stride + (tap / 3 - 1) * dilation,
                              ix = x * stride + (tap % 3 - 1) * dilation;
                if (iy < 0 || ix < 0 || iy >= kHeight || ix >= width) continue;
                sum += at(in, 0, c, iy, ix) * at(w, c, 0, tap / 3, tap % 3);
              }
              ASSERT_EQ(*found++, sum) << "width " << width << ", stride " << stride << ", dilation "
                                       << dilation << " at " << c << "," << y << "," << x;
            }
          }
        }
      }
    }
  }
}

RC_GTEST_PROP(AtenConvolution, TransposedEqualsItsDefinition, ()) {
  const Case k = anyCase();
  const int64_t size =
      (k.size - 1) * k.stride - 2 * k.padding + k.dilation * (k.kernel - 1) + k.outputPadding + 1;
  RC_PRE(size > 0);
  const Tensor in = randomTensor({k.batch, k.groups * k.inPerGroup, k.size, k.size});
  const Tensor w = randomTensor({k.groups * k.inPerGroup, k.outPerGroup, k.kernel, k.kernel});
  const Tensor b = randomTensor({k.groups * k.outPerGroup});
  const Tensor out = run("aten.conv_transpose2d.input", {in, w, b},
                         {{"stride", text(k.stride)},
                          {"padding", text(k.padding)},
                          {"output_padding", text(k.outputPadding)},
                          {"groups", std::to_string(k.groups)},
                          {"dilation", text(k.dilation)}});
  RC_ASSERT(out.shape() == (Shape{k.batch, k.groups * k.outPerGroup, size, size}));
  RC_ASSERT(close(out, transposed(k, in, w, b, out.shape())));
}

TEST(AtenConvolution, SamePaddingPutsTheOddElementAtTheEnd) {
  const Tensor in = Tensor::from<float>({1, 1, 4}, {1, 2, 3, 4}),
               w = Tensor::from<float>({1, 1, 4}, {1, 1, 1, 1});
  const Tensor out = run("aten.conv1d.padding", {in, w}, {{"padding", "\"same\""}});
  EXPECT_EQ(values<float>(out), (std::vector<float>{6, 10, 9, 7}));
}

TEST(AtenConvolution, RefusesShapesThatDoNotFit) {
  const Tensor in = Tensor::zeros(DType::Float32, {1, 3, 4, 4}),
               w = Tensor::zeros(DType::Float32, {2, 2, 3, 3});
  EXPECT_FALSE(runGroups("aten.conv2d.default", {{in}, {w}}).ok());
}

}  // namespace
}  // namespace carina::aten::test
