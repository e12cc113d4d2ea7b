// SPDX-License-Identifier: Apache-2.0
// Operators in random shapes: sizes of 1 and odd sizes, batches, ranks 1 to 6, large strides and dilations,
// uneven padding, long kernels, groups. Each one is quantized, lowered and compiled for one target of each
// family, runs wholly on the NPU, and model, npu interpreter and TOSA interpreter agree bit for bit.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <numeric>

#include "aten/ops.hpp"
#include "compiler/program_runner.hpp"
#include "fake_quant.hpp"
#include "ir/printer.hpp"
#include "support/graph_maker.hpp"
#include "support/require.hpp"

namespace carina::test {
namespace {

using ir::Ints;
using ir::Value;

class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 99) {}
  int64_t roll(int64_t low, int64_t high) {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return low + static_cast<int64_t>((state_ >> 33) % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int64_t of) { return roll(1, of) == 1; }
  int64_t of(std::initializer_list<int64_t> choices) {
    return choices.begin()[roll(0, static_cast<int64_t>(choices.size()) - 1)];
  }

 private:
  uint64_t state_;
};

struct Network : GraphMaker {
  Dice dice;
  uint32_t seed;

  explicit Network(uint64_t s) : dice(s), seed(static_cast<uint32_t>(s) * 100) {}

  Value* weight(const Shape& shape, float deviation = 0.3f) {
    return graph.addConstant(lower::test::randomFloats(shape, ++seed, deviation));
  }
  int64_t channels() { return dice.of({1, 2, 3, 5, 8, 16, 17, 33, 129}); }
  Shape shape(int64_t least, int64_t most, int64_t limit = 2500) {
    Shape shape;
    for (int64_t d = dice.roll(least, most), left = limit; d > 0; --d) {
      const int64_t size = std::min(dice.of({1, 1, 2, 3, 4, 5, 7, 9, 16, 31}), left);
      shape.push_back(size);
      left = std::max<int64_t>(left / size, 1);
    }
    return shape;
  }
  /// A shape that broadcasts against the given one: some sizes are 1, leading dimensions may be absent.
  Shape spread(const Shape& whole) {
    Shape shape = whole;
    for (int64_t& size : shape) size = dice.chance(3) ? 1 : size;
    if (!shape.empty() && dice.chance(3)) shape.erase(shape.begin());
    return shape;
  }
  Value* oneOf(std::initializer_list<std::function<Value*()>> ways) {
    return ways.begin()[dice.roll(0, static_cast<int64_t>(ways.size()) - 1)]();
  }
  int64_t dim(const Shape& shape) { return dice.roll(0, static_cast<int64_t>(shape.size()) - 1); }
};

struct Window {
  int64_t size, kernel, stride, dilation, pad;
  int64_t outputs() const { return (size + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1; }
};

Window windowOf(Dice& dice, int64_t mostKernel, bool dilated, bool halfPadding) {
  while (true) {
    Window w{dice.of({1, 2, 3, 5, 8, 13, 20}), dice.of({1, 1, 2, 3, 3, 5, mostKernel}),
             dice.of({1, 1, 2, 3, 4, 7}), dilated ? dice.of({1, 1, 1, 2, 3, 5}) : 1, 0};
    w.pad = dice.roll(0, halfPadding ? w.kernel / 2 : w.kernel + 1);
    if (w.size + 2 * w.pad >= (w.kernel - 1) * w.dilation + 1) return w;
  }
}

Value* convolution(Network& n) {
  const Window y = windowOf(n.dice, 9, true, false), x = windowOf(n.dice, 9, true, false);
  const int64_t groups = n.dice.of({1, 1, 1, 2, 3, 5}),
                in = groups * (groups == 1 ? n.channels() : n.dice.roll(1, 4)),
                out = groups * (groups == 1 ? n.channels() : n.dice.roll(1, 3));
  return n.make<aten::Conv2d>(n.input({n.dice.of({1, 1, 2, 3}), in, y.size, x.size}),
                              n.weight({out, in / groups, y.kernel, x.kernel}),
                              n.dice.chance(3) ? nullptr : n.weight({out}), Ints{y.stride, x.stride},
                              Ints{y.pad, x.pad}, Ints{y.dilation, x.dilation}, groups);
}

Value* depthwise(Network& n) {
  const Window y = windowOf(n.dice, 7, true, false), x = windowOf(n.dice, 7, true, false);
  const int64_t channels = n.channels(), multiple = n.dice.of({1, 1, 2, 3});
  return n.make<aten::Conv2d>(n.input({n.dice.of({1, 2}), channels, y.size, x.size}),
                              n.weight({channels * multiple, 1, y.kernel, x.kernel}),
                              n.weight({channels * multiple}), Ints{y.stride, x.stride}, Ints{y.pad, x.pad},
                              Ints{y.dilation, x.dilation}, channels);
}

Value* convolutionInOneDimension(Network& n) {
  const Window x = windowOf(n.dice, 15, true, false);
  const int64_t in = n.channels(), out = n.channels();
  return n.make<aten::Conv1d>(n.input({n.dice.of({1, 2}), in, x.size}), n.weight({out, in, x.kernel}),
                              n.weight({out}), Ints{x.stride}, Ints{x.pad}, Ints{x.dilation}, 1);
}

Value* convolutionInThreeDimensions(Network& n) {
  const Window z = windowOf(n.dice, 3, true, true), y = windowOf(n.dice, 4, true, false),
               x = windowOf(n.dice, 3, true, false);
  const int64_t in = n.dice.roll(1, 5), out = n.dice.roll(1, 9);
  return n.make<aten::Conv3d>(n.input({n.dice.of({1, 2}), in, std::min<int64_t>(z.size, 8), y.size, x.size}),
                              n.weight({out, in, std::min<int64_t>(z.kernel, 8), y.kernel, x.kernel}),
                              n.weight({out}), Ints{z.stride, y.stride, x.stride},
                              Ints{std::max(z.pad, z.kernel * z.dilation / 2), y.pad, x.pad},
                              Ints{z.dilation, y.dilation, x.dilation}, 1);
}

Value* depthwiseInThreeDimensions(Network& n) {
  const Window z = windowOf(n.dice, 4, true, false), y = windowOf(n.dice, 5, true, false),
               x = windowOf(n.dice, 3, true, false);
  const int64_t channels = n.dice.roll(2, 9), multiple = n.dice.of({1, 1, 2});
  return n.make<aten::Conv3d>(n.input({n.dice.of({1, 2}), channels, z.size, y.size, x.size}),
                              n.weight({channels * multiple, 1, z.kernel, y.kernel, x.kernel}),
                              n.dice.chance(3) ? nullptr : n.weight({channels * multiple}),
                              Ints{z.stride, y.stride, x.stride}, Ints{z.pad, y.pad, x.pad},
                              Ints{z.dilation, y.dilation, x.dilation}, channels);
}

Value* transposedConvolution(Network& n) {
  const auto axis = [&] {
    Window w{n.dice.of({1, 2, 3, 6}), n.dice.of({1, 2, 3, 4, 5}), n.dice.of({1, 2, 2, 3, 4}),
             n.dice.of({1, 1, 2}), 0};
    w.pad = n.dice.roll(0, (w.kernel - 1) * w.dilation / 2);
    return w;
  };
  const Window y = axis(), x = axis();
  const auto extra = [&](const Window& w) { return n.dice.roll(0, std::max(w.stride, w.dilation) - 1); };
  const int64_t groups = n.dice.of({1, 1, 2}), in = groups * n.dice.of({1, 3, 8}),
                out = n.dice.of({1, 2, 5, 16});
  return n.make<aten::ConvTranspose2dInput>(n.input({n.dice.of({1, 2}), in, y.size, x.size}),
                                            n.weight({in, out, y.kernel, x.kernel}), n.weight({groups * out}),
                                            Ints{y.stride, x.stride}, Ints{y.pad, x.pad},
                                            Ints{extra(y), extra(x)}, groups, Ints{y.dilation, x.dilation});
}

Value* pooling(Network& n) {
  const bool largest = n.dice.chance(2);
  const Window y = windowOf(n.dice, 9, false, true), x = windowOf(n.dice, 9, false, true);
  Value* input = n.input({n.dice.of({1, 2}), n.channels(), y.size, x.size});
  const Ints kernel{y.kernel, x.kernel}, stride{y.stride, x.stride}, pad{y.pad, x.pad};
  const bool ceil = n.dice.chance(3);
  if (largest) return n.make<aten::MaxPool2d>(input, kernel, stride, pad, Ints{1, 1}, ceil);
  return n.make<aten::AvgPool2d>(input, kernel, stride, pad, ceil, n.dice.chance(2), std::nullopt);
}

Value* adaptivePooling(Network& n) {
  const Shape shape{n.dice.of({1, 2}), n.channels(), n.dice.of({1, 3, 7, 12}), n.dice.of({1, 2, 9, 16})};
  return n.make<aten::AdaptiveAvgPool2d>(n.input(shape),
                                         Ints{n.dice.roll(1, shape[2]), n.dice.roll(1, shape[3])});
}

Value* linear(Network& n) {
  Shape shape = n.shape(1, 4);
  shape.back() = n.channels();
  const int64_t out = n.channels();
  return n.make<aten::Linear>(n.input(shape), n.weight({out, shape.back()}),
                              n.dice.chance(2) ? n.weight({out}) : nullptr);
}

Value* arithmetic(Network& n) {
  const Shape shape = n.shape(0, 6);
  Value *x = n.input(n.spread(shape)), *y = n.input(shape);
  if (n.dice.chance(2)) std::swap(x, y);
  return n.oneOf({[&] { return n.make<aten::AddTensor>(x, y, int64_t{1}); },
                  [&] { return n.make<aten::SubTensor>(x, y, 2.5); },
                  [&] { return n.make<aten::MulTensor>(x, y); }, [&] { return n.make<aten::Maximum>(x, y); },
                  [&] { return n.make<aten::Minimum>(x, y); }});
}

Value* comparison(Network& n) {
  const Shape shape = n.shape(0, 6);
  Value *x = n.input(n.spread(shape)), *y = n.input(shape);
  if (n.dice.chance(2)) std::swap(x, y);
  Value* mask =
      n.oneOf({[&] { return n.make<aten::GtTensor>(x, y); }, [&] { return n.make<aten::GeTensor>(x, y); },
               [&] { return n.make<aten::LtTensor>(x, y); }, [&] { return n.make<aten::LeTensor>(x, y); },
               [&] { return n.make<aten::EqTensor>(x, y); }, [&] { return n.make<aten::NeTensor>(x, y); }});
  if (n.dice.chance(2)) return mask;
  return n.make<aten::WhereSelf>(mask, n.input(n.spread(shape)), n.input(n.spread(shape)));
}

Value* function(Network& n) {
  Value* x = n.input(n.shape(0, 6));
  return n.oneOf({[&] { return n.make<aten::Relu>(x); }, [&] { return n.make<aten::Sigmoid>(x); },
                  [&] { return n.make<aten::Gelu>(x, "none"); }, [&] { return n.make<aten::Exp>(x); },
                  [&] { return n.make<aten::Silu>(x); }, [&] { return n.make<aten::Abs>(x); },
                  [&] { return n.make<aten::Neg>(x); }, [&] { return n.make<aten::LeakyRelu>(x, 0.1); },
                  [&] { return n.make<aten::Clamp>(x, -0.5, 0.75); },
                  [&] { return n.make<aten::Hardswish>(x); }});
}

Value* reduction(Network& n) {
  const Shape shape = n.shape(1, 6);
  Ints dims;
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
    if (n.dice.chance(2)) dims.push_back(n.dice.chance(2) ? d : d - static_cast<int64_t>(shape.size()));
  }
  if (dims.empty()) dims.push_back(n.dim(shape));
  Value* x = n.input(shape);
  const bool keep = n.dice.chance(2);
  return n.oneOf({[&] { return n.make<aten::MeanDim>(x, dims, keep, std::nullopt); },
                  [&] { return n.make<aten::SumDimIntList>(x, dims, keep, std::nullopt); },
                  [&] { return n.make<aten::Amax>(x, dims, keep); },
                  [&] { return n.make<aten::Amin>(x, dims, keep); },
                  [&] { return n.make<aten::Argmax>(x, dims.front(), keep); },
                  [&] { return n.make<aten::Cumsum>(x, dims.front(), std::nullopt); }});
}

Value* normalization(Network& n) {
  const Shape shape = n.shape(1, 5);
  const int64_t kind = n.dice.roll(0, 3);
  Value* x = kind < 3 ? n.input(shape) : nullptr;
  switch (kind) {
    case 0:
      return n.make<aten::SoftmaxInt>(x, n.dim(shape), std::nullopt);
    case 1:
      return n.make<aten::LogSoftmaxInt>(x, n.dim(shape), std::nullopt);
    case 2: {
      const Shape last(shape.end() - n.dice.roll(1, static_cast<int64_t>(std::min<size_t>(shape.size(), 2))),
                       shape.end());
      return n.make<aten::LayerNorm>(x, n.weight(last), n.weight(last), last, 1e-5, false);
    }
    default: {
      const int64_t groups = n.dice.roll(1, 3), channels = groups * n.dice.roll(1, 5);
      Value* image = n.input({n.dice.of({1, 2}), channels, n.dice.roll(1, 6), n.dice.roll(2, 6)});
      return n.make<aten::GroupNorm>(image, n.weight({channels}), n.weight({channels}), groups, 1e-5, false);
    }
  }
}

Value* movement(Network& n) {
  const Shape shape = n.shape(1, 6);
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t d = n.dim(shape), size = shape[static_cast<size_t>(d)], kind = n.dice.roll(0, 9);
  Value* x = kind == 3 ? nullptr : n.input(shape);
  switch (kind) {
    case 0: {
      Ints order(static_cast<size_t>(rank));
      std::iota(order.begin(), order.end(), 0);
      for (size_t i = order.size(); i > 1; --i)
        std::swap(order[i - 1], order[static_cast<size_t>(n.dice.roll(0, static_cast<int64_t>(i) - 1))]);
      return n.make<aten::Permute>(x, order);
    }
    case 1: {
      Shape other = shape;
      other[static_cast<size_t>(d)] = n.dice.roll(1, 5);
      const std::vector<Value*> parts{x, n.input(other)};
      return n.make<aten::Cat>(parts, d);
    }
    case 2: {
      const int64_t start = n.dice.roll(0, size - 1);
      return n.make<aten::SliceTensor>(x, d, start, n.dice.roll(start + 1, size), n.dice.roll(1, 3));
    }
    case 3: {
      Shape wide = shape;
      Shape narrow = shape;
      narrow[static_cast<size_t>(d)] = 1;
      wide[static_cast<size_t>(d)] = n.dice.roll(1, 6);
      if (rank < 6) wide.insert(wide.begin(), n.dice.roll(1, 3));
      return n.make<aten::Expand>(n.input(narrow), wide, false);
    }
    case 4: {
      Ints times(shape.size(), 1);
      times[static_cast<size_t>(d)] = n.dice.roll(1, 3);
      if (rank < 6 && n.dice.chance(2)) times.insert(times.begin(), 2);
      return n.make<aten::Repeat>(x, times);
    }
    case 5:
      return n.make<aten::Flip>(x, Ints{d});
    case 6:
      return n.make<aten::Roll>(x, Ints{n.dice.roll(-4, 4)}, Ints{d});
    case 7: {
      const Ints pad{n.dice.roll(0, 3), n.dice.roll(0, 3)};
      return n.make<aten::ConstantPadNd>(x, pad, 0.25);
    }
    case 8:
      return n.make<aten::View>(n.make<aten::Relu>(x), Ints{x->numElements(), 1});
    default:
      return n.make<aten::SelectInt>(x, d, n.dice.roll(-size, size - 1));
  }
}

Value* product(Network& n) {
  const int64_t rows = n.dice.of({1, 3, 8, 17}), depth = n.dice.of({1, 2, 16, 31, 65}),
                columns = n.dice.of({1, 4, 9, 33});
  Shape batch = n.shape(0, 2, 6);
  Shape left = n.spread(batch), right = batch;
  if (n.dice.chance(2)) std::swap(left, right);
  left.insert(left.end(), {rows, depth});
  right.insert(right.end(), {depth, columns});
  return n.make<aten::Matmul>(n.input(left), n.dice.chance(3) ? n.weight(right) : n.input(right));
}

Value* attention(Network& n) {
  const int64_t heads = n.dice.roll(1, 3), length = n.dice.of({1, 5, 16}), size = n.dice.of({1, 8, 12});
  const Shape shape{n.dice.roll(1, 2), heads, length, size};
  return n.make<aten::ScaledDotProductAttention>(n.input(shape), n.input(shape), n.input(shape), nullptr, 0.0,
                                                 n.dice.chance(2), std::nullopt, false);
}

Value* resizing(Network& n) {
  const Shape shape{n.dice.of({1, 2}), n.dice.of({1, 3, 8, 17}), n.dice.of({1, 2, 5, 8}),
                    n.dice.of({1, 3, 4, 7})};
  const Ints size{n.dice.roll(1, 17), n.dice.roll(1, 17)};
  if (n.dice.chance(2)) return n.make<aten::UpsampleNearest2dVec>(n.input(shape), size, std::nullopt);
  const bool aligned = n.dice.chance(2) && size[0] > 1 && size[1] > 1;
  return n.make<aten::UpsampleBilinear2dVec>(n.input(shape), size, aligned, std::nullopt);
}

Value* picking(Network& n) {
  Shape shape = n.shape(1, 4, 500);
  const int64_t d = n.dim(shape), rows = shape[static_cast<size_t>(d)];
  Tensor index = Tensor::zeros(DType::Int64, {n.dice.roll(1, 20)});
  for (int64_t i = 0; i < index.numElements(); ++i) index.setIntegerAt(i, n.dice.roll(0, rows - 1));
  return n.make<aten::IndexSelect>(n.input(shape), n.graph.addConstant(index), d);
}

/// Windows over one dimension, with and without a batch.
Value* windowsInOneDimension(Network& n) {
  const int64_t channels = n.channels();
  const Window x = windowOf(n.dice, 11, false, true);
  Value* input = n.input({n.dice.of({1, 2}), channels, x.size});
  switch (n.dice.roll(0, 2)) {
    case 0:
      return n.make<aten::MaxPool1d>(input, Ints{x.kernel}, Ints{x.stride}, Ints{x.pad}, Ints{1},
                                     n.dice.chance(2));
    case 1:
      return n.make<aten::AvgPool1d>(input, Ints{x.kernel}, Ints{x.stride}, Ints{x.pad}, n.dice.chance(2),
                                     n.dice.chance(2));
    default: {
      const int64_t out = n.dice.of({1, 3, 8});
      return n.make<aten::ConvTranspose1d>(input, n.weight({channels, out, x.kernel}), n.weight({out}),
                                           Ints{x.stride}, Ints{0}, Ints{x.stride - 1}, 1, Ints{1});
    }
  }
}

Value* integers(Network& n) {
  const Shape shape = n.shape(0, 5);
  Value *x = n.input(n.spread(shape), DType::Int32), *y = n.input(shape, DType::Int32);
  return n.oneOf(
      {[&] { return n.make<aten::BitwiseAndTensor>(x, y); },
       [&] { return n.make<aten::BitwiseOrTensor>(y, x); },
       [&] { return n.make<aten::BitwiseXorTensor>(x, y); },
       [&] { return n.make<aten::LogicalAnd>(n.make<aten::GtTensor>(x, y), n.make<aten::NeTensor>(y, x)); },
       [&] { return n.make<aten::MulTensor>(x, y); }, [&] { return n.make<aten::Maximum>(x, y); }});
}

/// Rows whose indices are computed.
Value* lookup(Network& n) {
  if (n.dice.chance(2)) {
    const int64_t rows = n.dice.roll(10, 200);
    return n.make<aten::Embedding>(n.weight({rows, n.channels()}), n.input(n.shape(1, 3, 40), DType::Int64),
                                   int64_t{-1}, false, false);
  }
  Shape shape = n.shape(1, 3, 200);
  const int64_t d = n.dim(shape);
  shape[static_cast<size_t>(d)] = n.dice.roll(10, 20);
  Shape picked = shape;
  picked[static_cast<size_t>(d)] = n.dice.roll(1, 12);
  return n.make<aten::Gather>(n.input(shape), n.input(picked, DType::Int64), d, false);
}

/// An operator between two convolutions, which sees channels-last data.
Value* between(Network& n) {
  const int64_t channels = 4 * n.dice.of({1, 2, 3, 8}), height = n.dice.of({1, 4, 7}),
                width = n.dice.of({2, 5, 8});
  const auto convolve = [&](Value* x, int64_t out, int64_t kernel) {
    return n.make<aten::Conv2d>(x, n.weight({out, x->dim(1), kernel, kernel}), n.weight({out}), Ints{1, 1},
                                Ints{kernel / 2, kernel / 2}, Ints{1, 1}, 1);
  };
  Value* x = convolve(n.input({n.dice.of({1, 2}), 3, height, width}), channels, 3);
  const int64_t d = n.dice.roll(1, 3);
  x = n.oneOf(
      {[&] { return n.make<aten::SoftmaxInt>(x, d, std::nullopt); },
       [&] {
         return n.make<aten::Cat>(std::vector<Value*>{x, n.make<aten::Sigmoid>(x)}, d);
       },
       [&] { return n.make<aten::SliceTensor>(x, d, x->dim(d) / 2, x->dim(d), int64_t{1}); },
       [&] {
         return n.make<aten::UpsampleNearest2dVec>(x, Ints{2 * height, width + 3}, std::nullopt);
       },
       [&] {
         return n.make<aten::UpsampleBilinear2dVec>(x, Ints{height + 1, 2 * width}, false, std::nullopt);
       },
       [&] { return n.make<aten::MulTensor>(x, n.make<aten::MeanDim>(x, Ints{d}, true, std::nullopt)); },
       [&] { return n.make<aten::PixelShuffle>(x, int64_t{2}); },
       [&] { return n.make<aten::Flip>(x, Ints{d}); },
       [&] {
         return n.make<aten::ConstantPadNd>(x, Ints{1, 2, 0, 1}, 0.5);
       },
       [&] {
         return n.make<aten::WhereSelf>(n.make<aten::GtTensor>(x, n.weight({1, channels, 1, 1})), x,
                                        n.weight({1, 1, 1, 1}));
       },
       [&] {
         return n.make<aten::View>(x, Ints{x->dim(0), channels / 2, height * 2, width});
       },
       [&] {
         return n.make<aten::Permute>(x, Ints{0, 3, 1, 2});
       }});
  return convolve(x, n.dice.of({1, 6, 16}), n.dice.of({1, 3}));
}

using Build = Value* (*)(Network&);
/// The precisions in which codes are within one of the simulation's. Tables of 16 bits interpolate, which it
/// does not, and chains of operators may amplify a difference of one.
enum class Simulated { Both, Int8, Neither };

struct Family {
  const char* name;
  Build build;
  Simulated simulated = Simulated::Both;
};
void PrintTo(const Family& family, std::ostream* out) {
  *out << family.name;
}
constexpr Family kFamilies[] = {{"convolution", convolution},
                                {"depthwise", depthwise},
                                {"conv1d", convolutionInOneDimension},
                                {"conv3d", convolutionInThreeDimensions},
                                {"depthwise3d", depthwiseInThreeDimensions},
                                {"conv_transpose", transposedConvolution},
                                {"pooling", pooling},
                                {"adaptive_pooling", adaptivePooling},
                                {"linear", linear},
                                {"arithmetic", arithmetic},
                                {"comparison", comparison},
                                {"function", function, Simulated::Int8},
                                {"reduction", reduction},
                                {"normalization", normalization, Simulated::Neither},
                                {"movement", movement},
                                {"product", product},
                                {"attention", attention, Simulated::Neither},
                                {"resizing", resizing},
                                {"picking", picking},
                                {"windows1d", windowsInOneDimension},
                                {"integers", integers},
                                {"lookup", lookup},
                                {"between", between, Simulated::Neither}};

class Shapes : public testing::TestWithParam<Family> {};

/// One network for all targets and both precisions.
void check(const Family& family, uint64_t seed) {
  for (const auto precision : {quantize::Precision::Int8, quantize::Precision::Int16x8}) {
    for (const char* name : {"ethos-u55-128", "ethos-u65-256", "ethos-u85-256"}) {
      Network network(seed);
      Value* output = family.build(network);
      network.graph.setOutputs({output});
      const std::string text = ir::print(network.graph);
      auto machine = require(npu::makeMachine(name, "", ""));
      quantize::Options options;
      options.precision = precision;
      partition::Options partitioning;
      partitioning.supports = [&](const ir::Node& op) { return compiler::supports(op, *machine.target); };
      auto program = lower::test::quantizeAndPartition(std::move(network.graph), options, partitioning);
      const std::string what = fmt::format("{} seed {} {} {}\n{}", family.name, seed, name,
                                           precision == quantize::Precision::Int8 ? "int8" : "16x8", text);
      if (!program.ok()) {
        ADD_FAILURE() << what << program.error().str();
        return;
      }
      for (const auto& refusal : program->refusals)
        ADD_FAILURE() << what << refusal.op << ": " << refusal.reason;
      const auto comparison = lower::test::compareDelegates(*program, 1);
      if (!comparison.ok()) {
        ADD_FAILURE() << what << comparison.error().str();
        continue;
      }
      if (family.simulated == Simulated::Both ||
          (family.simulated == Simulated::Int8 && precision == quantize::Precision::Int8)) {
        EXPECT_LE(comparison->largest, 1) << what;
      }
      for (const partition::Delegate& delegate : program->delegates) {
        std::vector<Tensor> inputs;
        for (const ir::Value* input : delegate.tosa.inputs())
          inputs.push_back(lower::test::randomCodes(input->type, static_cast<uint32_t>(inputs.size()) + 5));
        EXPECT_EQ(differences(delegate.tosa, name, "", inputs).substr(0, 1500), "") << what;
      }
    }
  }
}

TEST_P(Shapes, RunOnTheNpu) {
  const char* more = std::getenv("CARINA_SHAPES");
  const uint64_t count = more ? std::strtoull(more, nullptr, 10) : 6;
  for (uint64_t seed = 1; seed <= count; ++seed) check(GetParam(), seed);
}

INSTANTIATE_TEST_SUITE_P(All, Shapes, testing::ValuesIn(kFamilies),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace carina::test
