// SPDX-License-Identifier: Apache-2.0
// Float convolutions and matrix products, which oneDNN computes, against double-precision sums by the
// formulas of the specification.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ir/op_view.hpp"
#include "tosa/interpreter.hpp"
#include "tosa/tosa.hpp"

namespace carina::tosa {
namespace {

constexpr DType kTypes[] = {DType::Float32, DType::Float16, DType::BFloat16};

Tensor randoms(DType dtype, const Shape& shape, uint64_t seed) {
  Tensor tensor = Tensor::uninitialized(DType::Float32, shape);
  std::mt19937_64 random(seed);
  std::normal_distribution<float> values;
  for (float& value : tensor.mutableAs<float>()) value = values(random);
  return dtype == DType::Float32 ? tensor : convert(tensor, dtype);
}

/// Sum of products, which is the result, and sum of their magnitudes, which scales the allowed error.
struct Sum {
  double value = 0, magnitude = 0;
  void add(double a, double b) {
    value += a * b;
    magnitude += std::abs(a * b);
  }
};

/// Allows for float32 accumulation of `terms` terms, and for rounding to the result's type.
void expectNear(const Tensor& result, int64_t index, const Sum& sum, int64_t terms) {
  const double unit = result.dtype() == DType::Float32   ? 0x1p-24
                      : result.dtype() == DType::Float16 ? 0x1p-11
                                                         : 0x1p-8;
  const double allowed =
      2 * unit * std::abs(sum.value) + static_cast<double>(terms) * 0x1p-24 * sum.magnitude + 1e-7;
  EXPECT_NEAR(result.realAt(index), sum.value, allowed) << "element " << index;
}

struct Window {
  Shape input;    // [N, H, W, C]
  Shape weights;  // in the layout of the operator
  ir::Ints pad, stride, dilation;
};

int64_t at(const Shape& shape, int64_t n, int64_t y, int64_t x, int64_t c) {
  return ((n * shape[1] + y) * shape[2] + x) * shape[3] + c;
}

class Graph {
 public:
  explicit Graph(DType dtype) : graph("products"), builder(graph), dtype_(dtype) {}
  ir::Value* zero() { return builder.constant(Tensor::zeros(dtype_, {1})); }
  Tensor run(ir::Value* output, const Tensor& input) {
    graph.setOutputs({output});
    auto results = interpret(graph, std::vector<Tensor>{input});
    EXPECT_TRUE(results.ok()) << results.error().str();
    return results.ok() ? (*results)[0] : Tensor();
  }
  ir::Graph graph;
  ir::Builder builder;

 private:
  DType dtype_;
};

TEST(TosaFloatProducts, ConvolutionsAreTheSumsOfTheirWindows) {
  const Window cases[] = {{{2, 9, 7, 5}, {6, 3, 3, 5}, {1, 1, 1, 1}, {1, 1}, {1, 1}},
                          {{1, 11, 10, 3}, {4, 5, 2, 3}, {2, 0, 0, 1}, {2, 3}, {1, 1}},
                          {{1, 11, 11, 4}, {3, 3, 3, 4}, {2, 2, 3, 1}, {1, 1}, {2, 3}},
                          {{3, 4, 4, 16}, {8, 1, 1, 16}, {0, 0, 0, 0}, {1, 1}, {1, 1}},
                          {{1, 2, 2, 3}, {2, 3, 3, 3}, {2, 2, 2, 2}, {1, 1}, {1, 1}}};
  for (const DType dtype : kTypes) {
    for (const Window& w : cases) {
      Graph g(dtype);
      const Tensor input = randoms(dtype, w.input, 1), weights = randoms(dtype, w.weights, 2);
      ir::Value* x = g.graph.addInput({dtype, w.input}, "x");
      ir::Value* bias = g.builder.constant(Tensor::zeros(dtype, {w.weights[0]}));
      const Tensor result = g.run(Conv2d::create(g.builder, x, g.builder.constant(weights), bias, g.zero(),
                                                 g.zero(), w.pad, w.stride, w.dilation, false, DType::Float32)
                                      .output(),
                                  input);
      const Shape& out = result.shape();
      for (int64_t i = 0; i < result.numElements(); ++i) {
        const int64_t oc = i % out[3], ox = i / out[3] % out[2], oy = i / (out[3] * out[2]) % out[1],
                      n = i / (out[3] * out[2] * out[1]);
        Sum sum;
        for (int64_t ky = 0; ky < w.weights[1]; ++ky) {
          for (int64_t kx = 0; kx < w.weights[2]; ++kx) {
            const int64_t y = oy * w.stride[0] - w.pad[0] + ky * w.dilation[0],
                          column = ox * w.stride[1] - w.pad[2] + kx * w.dilation[1];
            if (y < 0 || y >= w.input[1] || column < 0 || column >= w.input[2]) continue;
            for (int64_t c = 0; c < w.input[3]; ++c)
              sum.add(input.realAt(at(w.input, n, y, column, c)),
                      weights.realAt(at(w.weights, oc, ky, kx, c)));
          }
        }
        expectNear(result, i, sum, w.weights[1] * w.weights[2] * w.input[3]);
      }
    }
  }
}

TEST(TosaFloatProducts, DepthwiseConvolutionsKeepChannelsApart) {
  const Shape in{1, 8, 9, 6}, filter{3, 2, 6, 2};  // [KH, KW, C, M]
  for (const DType dtype : kTypes) {
    Graph g(dtype);
    const Tensor input = randoms(dtype, in, 3), weights = randoms(dtype, filter, 4);
    ir::Value* x = g.graph.addInput({dtype, in}, "x");
    ir::Value* bias = g.builder.constant(Tensor::zeros(dtype, {12}));
    const Tensor result = g.run(
        DepthwiseConv2d::create(g.builder, x, g.builder.constant(weights), bias, g.zero(), g.zero(),
                                ir::Ints{1, 0, 0, 1}, ir::Ints{1, 2}, ir::Ints{1, 1}, false, DType::Float32)
            .output(),
        input);
    const Shape& out = result.shape();
    for (int64_t i = 0; i < result.numElements(); ++i) {
      const int64_t oc = i % out[3], ox = i / out[3] % out[2], oy = i / (out[3] * out[2]);
      Sum sum;
      for (int64_t ky = 0; ky < 3; ++ky) {
        for (int64_t kx = 0; kx < 2; ++kx) {
          const int64_t y = oy - 1 + ky, column = ox * 2 + kx;
          if (y < 0 || y >= in[1] || column >= in[2]) continue;
          sum.add(input.realAt(at(in, 0, y, column, oc / 2)),
                  weights.realAt(at(filter, ky, kx, oc / 2, oc % 2)));
        }
      }
      expectNear(result, i, sum, 6);
    }
  }
}

TEST(TosaFloatProducts, TransposedConvolutionsScatterTheirInputs) {
  const Shape in{2, 5, 4, 3}, filter{4, 3, 2, 3};  // [OC, KH, KW, C]
  for (const ir::Ints& pad : {ir::Ints{0, 0, 0, 0}, ir::Ints{-1, 0, 1, -1}}) {
    Graph g(DType::Float32);
    const Tensor input = randoms(DType::Float32, in, 5), weights = randoms(DType::Float32, filter, 6);
    ir::Value* x = g.graph.addInput({DType::Float32, in}, "x");
    ir::Value* bias = g.builder.constant(Tensor::zeros(DType::Float32, {4}));
    const Tensor result =
        g.run(TransposeConv2d::create(g.builder, x, g.builder.constant(weights), bias, g.zero(), g.zero(),
                                      pad, ir::Ints{2, 3}, false, DType::Float32)
                  .output(),
              input);
    const Shape& out = result.shape();
    std::vector<Sum> sums(static_cast<size_t>(result.numElements()));
    for (int64_t n = 0; n < in[0]; ++n) {
      for (int64_t i = 0; i < in[1] * in[2] * filter[0] * filter[1] * filter[2]; ++i) {
        const int64_t kx = i % 2, ky = i / 2 % 3, oc = i / 6 % 4, ix = i / 24 % in[2], iy = i / 24 / in[2];
        const int64_t oy = iy * 2 + pad[0] + ky, ox = ix * 3 + pad[2] + kx;
        if (oy < 0 || oy >= out[1] || ox < 0 || ox >= out[2]) continue;
        for (int64_t c = 0; c < in[3]; ++c)
          sums[static_cast<size_t>(at(out, n, oy, ox, oc))].add(input.realAt(at(in, n, iy, ix, c)),
                                                                weights.realAt(at(filter, oc, ky, kx, c)));
      }
    }
    for (int64_t i = 0; i < result.numElements(); ++i)
      expectNear(result, i, sums[static_cast<size_t>(i)], 18);
  }
}

TEST(TosaFloatProducts, MatricesAreMultipliedBatchByBatch) {
  const Shape left{3, 130, 17}, right{3, 17, 9};
  for (const DType dtype : kTypes) {
    Graph g(dtype);
    const Tensor a = randoms(dtype, left, 7), b = randoms(dtype, right, 8);
    ir::Value* x = g.graph.addInput({dtype, left}, "a");
    const Tensor result =
        g.run(Matmul::create(g.builder, x, g.builder.constant(b), g.zero(), g.zero()).output(), a);
    for (int64_t i = 0; i < result.numElements(); ++i) {
      const int64_t w = i % 9, h = i / 9 % 130, n = i / (9 * 130);
      Sum sum;
      for (int64_t c = 0; c < 17; ++c)
        sum.add(a.realAt((n * 130 + h) * 17 + c), b.realAt((n * 17 + c) * 9 + w));
      expectNear(result, i, sum, 17);
    }
  }
}

}  // namespace
}  // namespace carina::tosa
