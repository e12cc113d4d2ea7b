// SPDX-License-Identifier: Apache-2.0
// End to end: TOSA graph -> program -> NPU model, compared with the TOSA interpreter, for all targets and
// memory modes.
#include <gtest/gtest.h>

#include "compiler/program_runner.hpp"
#include "compiler/tosa_graphs.hpp"

namespace carina::test {
namespace {

const char* const kTargets[] = {"ethos-u55-32",  "ethos-u55-64",   "ethos-u55-128", "ethos-u55-256",
                                "ethos-u65-256", "ethos-u65-512",  "ethos-u85-128", "ethos-u85-256",
                                "ethos-u85-512", "ethos-u85-1024", "ethos-u85-2048"};

/// On every target in its default memory mode.
void expectExact(const ir::Graph& graph, uint64_t seed = 7) {
  const auto inputs = randomInputs(graph, seed);
  for (const char* target : kTargets) EXPECT_EQ(differences(graph, target, "", inputs), "");
}

/// On one target of each family.
void expectExactOnFamilies(const ir::Graph& graph, uint64_t seed = 7) {
  const auto inputs = randomInputs(graph, seed);
  for (const char* target : {"ethos-u55-128", "ethos-u65-512", "ethos-u85-256"}) {
    EXPECT_EQ(differences(graph, target, "", inputs), "");
  }
}

TEST(EndToEnd, ConvolutionOnAllTargets) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 9, 11, 5});
  ir::Value* y = b.rescalePerChannel(b.conv(x, 20, {3, 3}, {1, 1}, {1, 1, 1, 1}, 3), DType::Int8, 43, -5);
  expectExact(b.finish({y}));
}

TEST(EndToEnd, ConvolutionInAllMemoryModes) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 8, 8, 40});
  ir::Value* y = b.clamp(
      b.rescalePerChannel(b.conv(x, 130, {3, 3}, {2, 2}, {1, 0, 1, 0}, 3), DType::Int8, 45, -5), -100, 90);
  ir::Value* z = b.rescalePerChannel(b.conv(y, 24, {1, 1}), DType::Int8, 43, 7);
  const ir::Graph graph = b.finish({z});
  const auto inputs = randomInputs(graph, 5);
  for (const char* mode : {"Sram_Only", "Shared_Sram"}) {
    EXPECT_EQ(differences(graph, "ethos-u55-128", mode, inputs, false), "");
  }
  for (const char* target : {"ethos-u65-256", "ethos-u65-512", "ethos-u85-256"}) {
    for (const char* mode : {"Sram_Only", "Shared_Sram", "Dedicated_Sram", "Dedicated_Sram_256KB"}) {
      EXPECT_EQ(differences(graph, target, mode, inputs, false), "");
    }
  }
}

TEST(EndToEnd, Depthwise) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 10, 9, 24});
  ir::Value* y = b.rescalePerChannel(b.depthwise(x, {3, 3}, {2, 2}, {1, 0, 1, 1}, -7), DType::Int8, 40, 4);
  expectExact(b.finish({y}));
}

TEST(EndToEnd, Int16Convolution) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int16, {1, 6, 7, 12});
  ir::Value* y = b.rescale48(b.conv(x, 18, {3, 3}, {1, 1}, {1, 1, 1, 1}), DType::Int16, 20011, 31);
  expectExact(b.finish({y}));
}

TEST(EndToEnd, Int32OutputAndRescale) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 4, 5, 7});
  ir::Value* acc = b.conv(x, 8, {1, 1});
  ir::Value* y = b.rescale(acc, DType::Int8, 1518500250, 42, 0, -3);
  expectExactOnFamilies(b.finish({acc, y}));
}

TEST(EndToEnd, AddOfDifferentScales) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 6, 5, 20});
  ir::Value* y = b.input(DType::Int8, {1, 6, 5, 20});
  ir::Value* a = b.rescale(x, DType::Int32, 1518500250, 12, -17);
  ir::Value* c = b.rescale(y, DType::Int32, 1 << 30, 11, 5);
  expectExact(b.finish({b.rescale(b.make<tosa::Add>(a, c), DType::Int8, 1431655728, 50, 0, -32)}));
}

TEST(EndToEnd, AddOfEqualScales) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 6, 5, 20});
  ir::Value* a = b.rescale(x, DType::Int32, 1 << 30, 11, -17);
  ir::Value* c = b.rescale(x, DType::Int32, 1 << 30, 11, 5);
  expectExact(b.finish({b.rescale(b.make<tosa::Sub>(a, c), DType::Int8, 1431655728, 50, 0, -32)}));
}

TEST(EndToEnd, AddOfAQuantizedConstant) {
  // All 256 codes of a scale, and 16 of them broadcast along the other axes.
  for (const auto& [shape, lowest] :
       {std::pair(Shape{1, 8, 16, 2}, -128), std::pair(Shape{1, 1, 16, 1}, -9)}) {
    TosaBuilder b;
    ir::Value* x = b.input(DType::Int8, {1, 8, 16, 2});
    Tensor numbers = Tensor::zeros(DType::Int32, shape);
    for (int64_t n = 0; n < numbers.numElements(); ++n)
      numbers.setIntegerAt(n, ((lowest + n) * 1518500250 + (1 << 11)) >> 12);
    ir::Value* constant = b.constant(std::move(numbers));
    ir::Value* sum = b.make<tosa::Add>(b.rescale(x, DType::Int32, 1 << 30, 11, 5), constant);
    ir::Value* difference = b.make<tosa::Sub>(constant, b.rescale(x, DType::Int32, 1 << 30, 11, -7));
    expectExact(b.finish({b.rescale(sum, DType::Int8, 1431655728, 50, 0, -32),
                          b.rescale(difference, DType::Int8, 1431655728, 50, 0, 3)}));
  }
}

TEST(EndToEnd, FirstIterationsOfRecurrences) {
  // Initial states equal to their zero point, with output zero points and clamps.
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 4, 5, 8});
  Tensor state = Tensor::zeros(DType::Int8, {1, 4, 5, 8});
  for (int64_t n = 0; n < state.numElements(); ++n) state.setIntegerAt(n, -3);
  ir::Value* begin = b.constant(std::move(state));
  const auto conv = [&](ir::Value* input, const ir::Ints& pad) {
    const ir::Ints one{1, 1};
    return b.make<tosa::Conv2d>(input, b.random(DType::Int8, {16, 3, 3, 8}),
                                b.constant(Tensor::zeros(DType::Int32, {16})), b.scalar(DType::Int8, -3),
                                b.scalar(DType::Int8, 0), pad, one, one, false, DType::Int32);
  };
  const ir::Ints around{1, 1, 1, 1};
  ir::Value* fresh = b.rescale(conv(x, around), DType::Int8, 1518500250, 40, 0, 7);
  ir::Value* known = b.clamp(b.rescale(conv(begin, around), DType::Int8, 1518500250, 40, 0, -9), -5, 90);
  ir::Value* sum = b.make<tosa::Add>(b.rescale(fresh, DType::Int32, 1 << 30, 11, 7),
                                     b.rescale(known, DType::Int32, 1518500250, 12, 4));
  ir::Value* cell = b.mul(b.rescale(fresh, DType::Int32, 1 << 30, 30, 7),
                          b.constant(Tensor::zeros(DType::Int32, {1, 4, 5, 16})));
  ir::Value* next = b.make<tosa::Add>(cell, b.rescale(fresh, DType::Int32, 1 << 30, 30));
  expectExact(b.finish({b.rescale(sum, DType::Int8, 1431655728, 50, 0, -32), known,
                        b.rescale(next, DType::Int8, 1 << 30, 31, 0, 2)}));
}

TEST(EndToEnd, AddThatNeedsThirtyTwoBits) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int16, {1, 3, 5, 9});
  ir::Value* y = b.input(DType::Int16, {1, 1, 5, 9});
  ir::Value* a = b.rescale(x, DType::Int32, 1518500250, 20, 0);
  ir::Value* c = b.rescale(y, DType::Int32, 1 << 30, 19, 0);
  expectExactOnFamilies(b.finish({b.rescale(b.make<tosa::Add>(a, c), DType::Int16, 1431655728, 43, 0, 0)}));
}

TEST(EndToEnd, Multiply) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 6, 5, 20});
  ir::Value* y = b.input(DType::Int8, {1, 1, 1, 20});
  ir::Value* product =
      b.mul(b.rescale(x, DType::Int32, 1 << 30, 30, -17), b.rescale(y, DType::Int32, 1 << 30, 30, 9));
  expectExact(b.finish({b.rescale(product, DType::Int8, 1077952569, 37, 0, -100)}));
}

TEST(EndToEnd, PoolsAndGlobalAverage) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 14, 14, 24});
  ir::Value* m = b.maxPool(x, {3, 3}, {2, 2}, {0, 1, 0, 1});
  ir::Value* a = b.averagePool(m, {3, 3}, {1, 1}, {1, 1, 1, 1}, -9);
  ir::Value* g = b.averagePool(a, {7, 7}, {1, 1}, {0, 0, 0, 0}, -9);
  expectExact(b.finish({g, a}));
}

TEST(EndToEnd, SumsOfWindows) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {2, 14, 13, 24});
  ir::Value* whole = b.rescale(b.sums(x, {14, 13}, {14, 13}, -9), DType::Int8, 1518500250, 37, 0, 7);
  ir::Value* some = b.rescale(b.sums(x, {4, 5}, {2, 2}, 11), DType::Int8, 1431655728, 35, 0, -3, true);
  ir::Value* apart = b.rescale(b.sums(x, {4, 4}, {5, 3}, 0), DType::Int8, 1431655728, 34, 0, 1);
  expectExactOnFamilies(b.finish({whole, some, apart}));
}

TEST(EndToEnd, LargeStridesAndWindows) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 24, 24, 3});
  ir::Value* y = b.rescale(b.conv(x, 10, {4, 4}, {4, 4}), DType::Int8, 1518500250, 42, 0, -3);
  ir::Value* z = b.averagePool(x, {13, 13}, {5, 5}, {2, 2, 2, 2}, 4);
  ir::Value* w =
      b.rescale(b.conv(x, 6, {3, 3}, {1, 1}, {3, 3, 3, 3}, 2, {3, 3}), DType::Int8, 1518500250, 42, 0, -3);
  expectExactOnFamilies(b.finish({y, z, w}));
}

TEST(EndToEnd, MovesAndShapes) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 6, 4, 8});
  ir::Value* y = b.clamp(x, -50, 60);
  ir::Value* z = b.concat({y, b.clamp(x, -20, 20), y}, 3);
  ir::Value* t = b.transpose(z, {0, 3, 1, 2});
  ir::Value* s = b.slice(t, {0, 3, 1, 0}, {1, 15, 4, 4});
  ir::Value* r = b.reshape(s, {1, 60, 4});
  ir::Value* p = b.pad(r, {0, 0, 1, 2, 0, 3}, 11);
  ir::Value* k = b.tile(p, {1, 2, 1});
  expectExactOnFamilies(b.finish({k, z, y}));
}

TEST(EndToEnd, TablesOfEightAndSixteenBits) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 5, 7, 9});
  ir::Value* y = b.input(DType::Int16, {1, 5, 7, 9});
  ir::Value* c = b.table(b.clamp(b.table(x), -100, 100));
  ir::Value* w = b.rescale(b.table(y), DType::Int16, 1 << 30, 37, 0, 0);
  ir::Value* wide = b.rescale(b.table(y), DType::Int16, 1 << 30, 38, 0, 0);
  expectExact(b.finish({c, w, wide}));
}

TEST(EndToEnd, BatchesAndFullyConnected) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {3, 5, 4, 6});
  ir::Value* y = b.rescalePerChannel(b.conv(x, 16, {3, 3}, {1, 1}, {1, 1, 1, 1}, 3), DType::Int8, 42, -5);
  ir::Value* f = b.reshape(y, {3, 1, 1, 320});
  ir::Value* z = b.rescalePerChannel(b.conv(f, 10, {1, 1}), DType::Int8, 44, 7);
  expectExactOnFamilies(b.finish({z}));
}

}  // namespace
}  // namespace carina::test
