// SPDX-License-Identifier: Apache-2.0
// Kernels, windows and axes at the hardware's limits and beyond: computed in pieces, with bit-exact results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/program_runner.hpp"
#include "compiler/tosa_graphs.hpp"

namespace carina::test {
namespace {

const char* const kTargetsWithLimits[] = {"ethos-u55-128", "ethos-u65-512", "ethos-u85-256"};

void expectExact(const ir::Graph& graph, const std::string& what) {
  const auto inputs = randomInputs(graph, 7);
  for (const char* target : kTargetsWithLimits)
    EXPECT_EQ(differences(graph, target, "", inputs), "") << what << " " << target;
}

/// pad: top, bottom, left, right.
struct KernelCase {
  Shape input;
  ir::Ints kernel, stride{1, 1}, pad{0, 0, 0, 0}, dilation{1, 1};
};

ir::Graph convolution(const KernelCase& c, DType type, bool depthwise) {
  TosaBuilder b(3);
  ir::Value* x = b.input(type, c.input);
  const bool wide = type == DType::Int16;
  const int64_t zero = wide ? 0 : 5;
  ir::Value* y = depthwise ? b.depthwise(x, c.kernel, c.stride, c.pad, zero, 1, c.dilation)
                           : b.conv(x, 5, c.kernel, c.stride, c.pad, zero, c.dilation);
  return b.finish({wide ? b.rescale48(y, type, 20011, 34) : b.rescalePerChannel(y, type, 42, 3)});
}

TEST(Limits, KernelsOfAnySize) {
  const std::vector<KernelCase> cases{
      {{1, 66, 5, 3}, {64, 3}},
      {{1, 66, 5, 3}, {65, 3}},
      {{1, 70, 5, 20}, {65, 3}, {1, 1}, {32, 32, 1, 1}},
      {{1, 150, 6, 3}, {80, 2}, {3, 2}, {40, 37, 0, 0}},
      {{1, 140, 4, 2}, {129, 3}, {2, 1}, {64, 63, 1, 1}},
      // The hardware counts the rows between the taps of a dilated kernel.
      {{1, 90, 4, 3}, {40, 2}, {1, 1}, {20, 3, 1, 0}, {2, 1}},
      {{1, 200, 4, 2}, {66, 2}, {1, 1}, {60, 60, 1, 1}, {3, 2}},
      {{1, 66, 67, 2}, {64, 65}},
      {{1, 20, 20, 2}, {41, 100}, {1, 1}, {20, 20, 50, 49}},
      {{1, 1, 4200, 2}, {1, 4097}},
      {{1, 90, 4, 3}, {65, 3}, {5, 1}, {32, 33, 1, 1}},
  };
  for (const KernelCase& c : cases) {
    for (const DType type : {DType::Int8, DType::Int16}) {
      for (const bool depthwise : {false, true}) {
        expectExact(convolution(c, type, depthwise),
                    shapeText(c.kernel) + (depthwise ? " depthwise " : " ") + std::string(dtypeName(type)));
      }
    }
  }
}

TEST(Limits, ColumnsBecomeRows) {
  // Along the width, a window may cover 4096 positions; no copy is needed.
  const KernelCase column{{1, 300, 1, 8}, {80, 1}, {1, 1}, {40, 39, 0, 0}};
  for (const char* target : kTargetsWithLimits)
    EXPECT_EQ(operations(convolution(column, DType::Int8, false), target).size(), 1u) << target;
  expectExact(convolution(column, DType::Int8, false), "column");
  expectExact(convolution(column, DType::Int8, true), "depthwise column");
}

TEST(Limits, PaddingBeyondTheRegisters) {
  for (const int64_t pad : {127, 128, 129, 200}) {
    expectExact(convolution({{1, 3, 60, 4}, {2, 260}, {1, 1}, {1, 0, pad, pad}}, DType::Int8, false),
                "padding");
  }
}

TEST(Limits, LongAxes) {
  for (const int64_t size : {65536, 65537, 90001}) {
    const std::string what = std::to_string(size);
    {
      TosaBuilder b(5);
      ir::Value* x = b.input(DType::Int8, {1, 1, size, 1});
      expectExact(
          b.finish({b.rescalePerChannel(b.conv(x, 2, {1, 3}, {1, 1}, {0, 0, 1, 1}, 4), DType::Int8, 40, 0)}),
          "wide map " + what);
    }
    {
      TosaBuilder b(5);
      ir::Value* x = b.input(DType::Int8, {1, 1, 2, size});
      expectExact(
          b.finish({b.rescalePerChannel(b.conv(x, 2, {1, 1}, {1, 1}, {0, 0, 0, 0}, 4), DType::Int8, 46, 0)}),
          "deep map " + what);
    }
    {
      TosaBuilder b(5);
      ir::Value* x = b.input(DType::Int8, {1, 1, 1, 2});
      expectExact(b.finish({b.rescalePerChannel(b.conv(x, size, {1, 1}, {1, 1}, {0, 0, 0, 0}, 4), DType::Int8,
                                                37, 0)}),
                  "many channels " + what);
    }
    {
      TosaBuilder b(5);
      ir::Value* x = b.input(DType::Int16, {size});
      ir::Value* y = b.input(DType::Int16, {size});
      ir::Value* sum =
          b.make<tosa::Add>(b.rescale(x, DType::Int32, 1 << 30, 30), b.rescale(y, DType::Int32, 1 << 30, 30));
      expectExact(b.finish({b.rescale(sum, DType::Int16, 1 << 29, 30)}), "sum " + what);
    }
    {
      TosaBuilder b(5);
      ir::Value* x = b.input(DType::Int8, {size, 3});
      ir::Value* y = b.input(DType::Int8, {1, 3});
      expectExact(b.finish({b.make<tosa::Sub>(b.rescale(x, DType::Int32, 1 << 30, 30),
                                              b.rescale(y, DType::Int32, 1 << 30, 30))}),
                  "broadcast " + what);
    }
    {
      TosaBuilder b(5);
      ir::Value* x = b.input(DType::Int8, {1, size});
      expectExact(b.finish({b.table(x), b.clamp(x, -5, 90), b.rescale(x, DType::Int8, 1 << 29, 30, 3, 1)}),
                  "elements " + what);
    }
  }
}

TEST(Limits, ReductionsOverLongAxes) {
  for (const auto& [shape, axis] : std::vector<std::pair<Shape, int64_t>>{
           {{3, 65537}, 1}, {{65537, 3}, 0}, {{65537, 3}, 1}, {{90001}, 0}, {{2, 65537, 2}, 1}}) {
    for (const DType type : {DType::Int8, DType::Int16, DType::Int32}) {
      TosaBuilder b(5);
      ir::Value* x = b.input(type, shape);
      ir::Value* wide = type == DType::Int32 ? x : b.rescale(x, DType::Int32, 1 << 30, 30);
      std::vector<ir::Value*> outputs{b.make<tosa::ReduceSum>(wide, axis),
                                      b.make<tosa::ReduceMax>(x, axis, tosa::NanMode::PROPAGATE),
                                      b.make<tosa::ReduceMin>(x, axis, tosa::NanMode::PROPAGATE)};
      expectExact(b.finish(outputs), shapeText(shape) + std::string(dtypeName(type)));
    }
  }
}

TEST(Limits, ArgmaxOverLongAxes) {
  for (const int64_t size : {32768, 32769, 65537}) {
    for (const DType type : {DType::Int8, DType::Int16}) {
      for (const Shape& shape : {Shape{2, size}, Shape{size, 3}}) {
        TosaBuilder b(5);
        ir::Value* x = b.input(type, shape);
        const int64_t axis = shape[0] == size ? 0 : 1;
        expectExact(b.finish({b.make<tosa::Argmax>(x, axis, tosa::NanMode::PROPAGATE)}),
                    std::to_string(size));
      }
    }
  }
}

TEST(Limits, PoolsOfAnySize) {
  const std::vector<KernelCase> cases{
      {{1, 256, 5, 3}, {256, 3}},
      {{1, 258, 5, 3}, {257, 3}},
      {{1, 263, 5, 18}, {257, 2}, {2, 3}},
      {{1, 275, 5, 2}, {257, 2}, {6, 1}},
      {{1, 40, 6, 3}, {300, 3}, {2, 1}, {150, 150, 1, 1}},
      {{1, 258, 260, 1}, {256, 257}},
      {{1, 1, 65540, 2}, {1, 65537}},
      {{1, 1, 65538, 1}, {1, 2}, {1, 2}},
      {{1, 66001, 1, 2}, {3, 1}, {2, 1}},
      // as two pools, which is faster
      {{2, 9, 11, 5}, {5, 5}, {1, 1}, {2, 2, 2, 2}},
      {{1, 23, 8, 17}, {9, 7}, {3, 1}, {4, 0, 3, 6}},
  };
  for (const KernelCase& c : cases) {
    for (const DType type : {DType::Int8, DType::Int16}) {
      const bool wide = type == DType::Int16;
      const bool summable = !wide || c.kernel[0] * c.kernel[1] <= 65536;
      TosaBuilder b(5);
      ir::Value* x = b.input(type, c.input);
      std::vector<ir::Value*> outputs{b.maxPool(x, c.kernel, c.stride, c.pad)};
      if (summable) outputs.push_back(b.averagePool(x, c.kernel, c.stride, c.pad, wide ? 0 : 3));
      expectExact(b.finish(outputs), shapeText(c.kernel) + std::string(dtypeName(type)));
    }
  }
}

TEST(Limits, ReversalsAndRepetitionsInRuns) {
  for (const int64_t size : {64, 65, 127, 4097}) {
    for (const DType type : {DType::Int8, DType::Int32}) {
      TosaBuilder b(5);
      ir::Value* x = b.input(type, {2, size, 3});
      ir::Value* y = b.input(type, {2, 3});
      expectExact(b.finish({b.make<tosa::Reverse>(x, int64_t{1}), b.tile(y, {2, size})}),
                  std::to_string(size));
    }
  }
}

TEST(Limits, MatrixProductsWithLongAxes) {
  for (const Shape& shape : {Shape{2, 65537, 3}, Shape{65537, 3, 2}, Shape{2, 3, 65537}}) {
    TosaBuilder b(5);
    ir::Value* x = b.input(DType::Int8, {1, shape[0], shape[1]});
    ir::Value* y = b.input(DType::Int8, {1, shape[1], shape[2]});
    ir::Value* product = b.make<tosa::Matmul>(x, y, b.scalar(DType::Int8, 3), b.scalar(DType::Int8, -2));
    expectExact(b.finish({product}), shapeText(shape));
  }
}

}  // namespace
}  // namespace carina::test
