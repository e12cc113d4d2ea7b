// SPDX-License-Identifier: Apache-2.0
// Which operations are fused, checked by the operations of the npu graph.
#include "compiler/legalize/legalize.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/dialect/npu_ir.hpp"
#include "compiler/legalize/constant_codes.hpp"
#include "compiler/tosa_graphs.hpp"
#include "ir/printer.hpp"
#include "support/require.hpp"

namespace carina::test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::SizeIs;

TEST(Legalize, RescaleClampAndTableJoinTheConvolution) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 8, 8, 4});
  ir::Value* y = b.table(b.clamp(b.rescalePerChannel(b.conv(x, 8, {3, 3}), DType::Int8, 40, 3), -100, 100));
  const ir::Graph graph = b.finish({y});
  EXPECT_THAT(operations(graph, "ethos-u55-128"), ElementsAre("npu.CONV"));
  EXPECT_THAT(operations(graph, "ethos-u85-256"), ElementsAre("npu.CONV"));
}

TEST(Legalize, AValueWithOtherReadersIsNotFusedAway) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 8, 8, 4});
  ir::Value* acc = b.conv(x, 8, {3, 3});
  const ir::Graph graph = b.finish({b.rescale(acc, DType::Int8, 1 << 30, 40), acc});
  EXPECT_THAT(operations(graph, "ethos-u55-128"), ElementsAre("npu.CONV", "npu.ELEMENTWISE"));
}

TEST(Legalize, LargeMaxPoolWindowsAreTwoPools) {
  const auto pool = [](int64_t kernel, int64_t stride) {
    TosaBuilder b;
    const int64_t pad = kernel / 2;
    return b.finish({b.maxPool(b.input(DType::Int8, {1, 8 * stride + kernel - 2 * pad, 9, 16}),
                               {kernel, kernel}, {stride, 1}, {pad, pad, pad, pad})});
  };
  EXPECT_THAT(operations(pool(5, 1), "ethos-u85-256"), ElementsAre("npu.POOL", "npu.POOL"));
  EXPECT_THAT(operations(pool(3, 1), "ethos-u85-256"), ElementsAre("npu.POOL"));
  EXPECT_THAT(operations(pool(5, 3), "ethos-u85-256"), ElementsAre("npu.POOL"));
}

TEST(Legalize, MaximaOverTheLastAxisCompareHalves) {
  const auto reduced = [](const Shape& shape, int64_t axis) {
    TosaBuilder b;
    return b.finish({b.make<tosa::ReduceMax>(b.input(DType::Int8, shape), axis, tosa::NanMode::PROPAGATE)});
  };
  EXPECT_THAT(operations(reduced({64, 65}, 1), "ethos-u85-256"),
              AllOf(SizeIs(7), Each("npu.ELEMENTWISE")));  // 33, 17, 9, 5, 3, 2, 1
  EXPECT_THAT(operations(reduced({64, 65}, 1), "ethos-u55-128"), Each("npu.ELEMENTWISE"));
  // Its pool is not slowed down by idle lanes.
  EXPECT_THAT(operations(reduced({64, 65}, 1), "ethos-u55-32"), ElementsAre("npu.POOL"));
  EXPECT_THAT(operations(reduced({65, 64}, 0), "ethos-u85-256"), ElementsAre("npu.POOL"));
}

TEST(Legalize, SaturationIsNotFusedAway) {
  // The largest result of NEGATE is 32767, whatever scale follows it.
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int16, {1, 8, 8, 4});
  ir::Value* none = b.scalar(DType::Int16, 0);
  ir::Value* y = b.make<tosa::Negate>(x, none, none);
  const ir::Graph graph = b.finish({b.rescale(y, DType::Int16, 1518500250, 32)});
  EXPECT_THAT(operations(graph, "ethos-u55-128"), ElementsAre("npu.ELEMENTWISE", "npu.POOL"));
  EXPECT_THAT(operations(graph, "ethos-u85-256"), ElementsAre("npu.ELEMENTWISE", "npu.POOL"));
}

TEST(Legalize, ShiftedProductsAreSaturatedInPlace) {
  const auto narrowed = [](int64_t multiplier, DType type) {
    TosaBuilder b;
    ir::Value* product = b.mul(b.input(DType::Int32, {1, 8, 8, 4}), b.input(DType::Int32, {1, 8, 8, 4}), 20);
    return b.finish({b.rescale(product, type, multiplier, 30)});
  };
  for (const char* target : {"ethos-u55-128", "ethos-u85-256"}) {
    EXPECT_THAT(operations(narrowed(1 << 30, DType::Int8), target), ElementsAre("npu.ELEMENTWISE"));
    EXPECT_THAT(operations(narrowed(1 << 30, DType::Int16), target), ElementsAre("npu.ELEMENTWISE"));
    // The product is already rounded: another factor rounds it again.
    EXPECT_THAT(operations(narrowed(1 << 29, DType::Int16), target), SizeIs(2));
  }
}

TEST(Legalize, QuantizedAddIsOneOperation) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 8, 8, 4});
  ir::Value* a = b.rescale(x, DType::Int32, 1518500250, 12, -17);
  ir::Value* c = b.rescale(x, DType::Int32, 1 << 30, 11, 5);
  const ir::Graph graph = b.finish({b.rescale(b.make<tosa::Add>(a, c), DType::Int8, 1431655728, 50, 0, -32)});
  EXPECT_THAT(operations(graph, "ethos-u55-128"), ElementsAre("npu.ELEMENTWISE"));
  EXPECT_THAT(operations(graph, "ethos-u85-256"), ElementsAre("npu.ELEMENTWISE"));
}

TEST(Legalize, AddingAScalarIsOneOperation) {
  for (const DType type : {DType::Int8, DType::Int16}) {
    for (const int64_t number : {1 << 20, -12345}) {
      TosaBuilder b;
      ir::Value* x = b.input(type, {1, 8, 8, 4});
      const int64_t factor = type == DType::Int8 ? 19 : 14;  // log2 of the scale that U55 gives one operand
      ir::Value* sum =
          b.make<tosa::Add>(b.rescale(x, DType::Int32, 1 << 30, 30 - factor),
                            b.constant(Tensor::from<int32_t>({1, 1, 1, 1}, {static_cast<int32_t>(number)})));
      const ir::Graph graph = b.finish({b.rescale(sum, type, 1 << 30, 30 + factor)});
      EXPECT_THAT(operations(graph, "ethos-u55-128"), ElementsAre("npu.ELEMENTWISE")) << number;
      EXPECT_THAT(operations(graph, "ethos-u85-256"), ElementsAre("npu.ELEMENTWISE")) << number;
    }
  }
}

/// The result of RESCALE by multiplier and shift for `count` values of (code - zero) from `lowest` on.
Tensor foldedRescale(const Shape& shape, int64_t lowest, int64_t multiplier, int64_t shift,
                     int64_t count = 256) {
  Tensor numbers = Tensor::zeros(DType::Int32, shape);
  for (int64_t n = 0; n < numbers.numElements(); ++n) {
    const int64_t steps = lowest + n * 6037 % count;
    numbers.setIntegerAt(n, (steps * multiplier + (int64_t{1} << (shift - 1))) >> shift);
  }
  return numbers;
}

TEST(Legalize, AddingAFoldedRescaleIsOneOperation) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 8, 8, 4});
  ir::Value* sum = b.make<tosa::Add>(b.rescale(x, DType::Int32, 1 << 30, 11, -17),
                                     b.constant(foldedRescale({1, 8, 8, 4}, -140, 1518500250, 13)));
  const ir::Graph graph = b.finish({b.rescale(sum, DType::Int8, 1431655728, 50, 0, -32)});
  EXPECT_THAT(operations(graph, "ethos-u55-128"), ElementsAre("npu.ELEMENTWISE"));
  EXPECT_THAT(operations(graph, "ethos-u85-256"), ElementsAre("npu.ELEMENTWISE"));
}

TEST(Legalize, AddingAFoldedRescaleOfSixteenBitsIsOneOperation) {
  // The scale of the constant is the smaller and the larger of the two.
  for (const auto& [scaled, constant] : {std::pair{16, 18}, {17, 16}}) {
    TosaBuilder b;
    ir::Value* x = b.input(DType::Int16, {1, 8, 8, 4});
    const int64_t multiplier = constant == 16 ? 1 << 30 : 1518500250;
    ir::Value* sum =
        b.make<tosa::Add>(b.rescale(x, DType::Int32, scaled == 16 ? 1 << 30 : 1518500250, scaled),
                          b.constant(foldedRescale({1, 8, 8, 4}, -9000, multiplier, constant, 20000)));
    const ir::Graph graph = b.finish({b.rescale(sum, DType::Int16, 1431655728, 45)});
    EXPECT_THAT(operations(graph, "ethos-u55-128"), ElementsAre("npu.ELEMENTWISE"));
    EXPECT_THAT(operations(graph, "ethos-u85-256"), ElementsAre("npu.ELEMENTWISE"));
  }
}

void expectCodesOf(const Tensor& numbers, DType type) {
  const auto found = compiler::codesOfNumbers(numbers, type);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->codes.dtype(), type);
  const int64_t half = found->shift > 0 ? int64_t{1} << (found->shift - 1) : 0;
  for (int64_t n = 0; n < numbers.numElements(); ++n) {
    const int64_t steps = found->codes.integerAt(n) - found->zeroPoint;
    ASSERT_EQ((steps * found->multiplier + half) >> found->shift, numbers.integerAt(n));
  }
}

TEST(ConstantCodes, ReproduceTheResultsOfARescale) {
  for (const int64_t shift : {12, 20, 33}) {
    for (const int64_t multiplier : {1518500250, 2147483647, 1 << 30}) {
      SCOPED_TRACE(std::to_string(shift) + " " + std::to_string(multiplier));
      expectCodesOf(foldedRescale({3, 40}, -200, multiplier, shift), DType::Int8);
      if (shift > 12) expectCodesOf(foldedRescale({30, 40}, -32767, multiplier, shift, 65535), DType::Int16);
    }
  }
}

TEST(ConstantCodes, AreNotFoundForOtherValues) {
  for (const DType type : {DType::Int8, DType::Int16}) {
    EXPECT_FALSE(compiler::codesOfNumbers(Tensor::zeros(DType::Int32, {4, 4}), type));
    EXPECT_FALSE(compiler::codesOfNumbers(Tensor::from<int32_t>({3}, {100000, 100001, 100000000}), type));
    Tensor squares = Tensor::zeros(DType::Int32, {300});
    for (int64_t n = 0; n < 300; ++n) squares.setIntegerAt(n, 1009 * n * n);
    EXPECT_FALSE(compiler::codesOfNumbers(squares, type));
  }
}

/// The first iteration of a recurrence: 16-bit gates of an input and of a state, and a product with a cell
/// state.
ir::Graph firstIteration(int64_t state, int64_t bias, int64_t cell) {
  TosaBuilder b;
  const auto filled = [&](DType type, const Shape& shape, int64_t number) {
    Tensor tensor = Tensor::zeros(type, shape);
    for (int64_t n = 0; n < tensor.numElements(); ++n) tensor.setIntegerAt(n, number);
    return b.constant(std::move(tensor));
  };
  const auto conv = [&](ir::Value* input) {
    const ir::Ints none{0, 0, 0, 0}, one{1, 1};
    return b.make<tosa::Conv2d>(input, b.random(DType::Int8, {16, 1, 1, 8}), filled(DType::Int32, {16}, bias),
                                b.scalar(DType::Int8, -3), b.scalar(DType::Int8, 0), none, one, one, false,
                                DType::Int32);
  };
  const auto gates = [&](ir::Value* input) {
    ir::Value* narrow = b.rescale(conv(input), DType::Int16, 1518500250, 38);
    return b.rescale(narrow, DType::Int32, 1 << 30, 30);
  };
  ir::Value* x = b.input(DType::Int8, {1, 1, 1, 8});
  ir::Value* sum = b.make<tosa::Add>(gates(x), gates(filled(DType::Int8, {1, 1, 1, 8}, state)));
  ir::Value* gate = b.rescale(b.rescale(sum, DType::Int16, 1 << 30, 30), DType::Int32, 1 << 30, 30);
  ir::Value* kept = b.mul(gate, filled(DType::Int32, {1, 1, 1, 16}, cell));
  return b.finish({b.rescale(b.make<tosa::Add>(kept, gate), DType::Int16, 1 << 30, 34)});
}

TEST(Legalize, ZeroInitialStatesCostNothing) {
  for (const char* target : {"ethos-u55-128", "ethos-u85-256"}) {
    const size_t all = operations(firstIteration(5, 0, 7), target).size();
    // Saves the convolution of the state and the addition that reads it.
    EXPECT_LE(operations(firstIteration(-3, 0, 7), target).size() + 2, all) << target;
    EXPECT_LT(operations(firstIteration(5, 0, 0), target).size(), all) << target;
    // With a bias, the convolution of the state is not zero.
    EXPECT_EQ(operations(firstIteration(-3, 9, 7), target).size(), all) << target;
  }
}

TEST(Legalize, OperandScalesThatU55LacksAreAppliedIn32Bits) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int16, {1, 8, 8, 4});
  ir::Value* a = b.rescale(x, DType::Int32, 1518500250, 20, 0);
  ir::Value* c = b.rescale(x, DType::Int32, 1 << 30, 19, 0);
  const ir::Graph graph = b.finish({b.rescale(b.make<tosa::Add>(a, c), DType::Int16, 1431655728, 43, 0, 0)});
  // Widening each operand, which is enough for a factor of two, scaling one, the sum, and its scaling.
  EXPECT_EQ(operations(graph, "ethos-u55-128").size(), 5u);
  EXPECT_THAT(operations(graph, "ethos-u85-256"), ElementsAre("npu.ELEMENTWISE"));
}

TEST(Legalize, ReshapeSliceAndConcatCostNothing) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 8, 8, 4});
  ir::Value* a = b.clamp(b.slice(x, {0, 0, 0, 0}, {1, 4, 8, 4}), -5, 5);
  ir::Value* c = b.clamp(b.slice(x, {0, 4, 0, 0}, {1, 4, 8, 4}), -7, 7);
  const ir::Graph graph = b.finish({b.concat({b.reshape(a, {1, 4, 8, 4}), c}, 1)});
  EXPECT_EQ(operations(graph, "ethos-u55-128").size(), 2u);
}

TEST(Legalize, AveragePoolKeepsZeroPointsAndFusesNoScale) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 8, 8, 4});
  const ir::Graph graph = b.finish(
      {b.rescale(b.averagePool(x, {2, 2}, {2, 2}, {0, 0, 0, 0}, 9), DType::Int8, 1518500250, 31, 9, 3)});
  EXPECT_THAT(operations(graph, "ethos-u55-128"), ElementsAre("npu.POOL", "npu.POOL"));
}

TEST(Legalize, LargeWindowSumsAtOneScaleArePools) {
  const auto built = [](const ir::Ints& kernel, DType type, bool twice) {
    TosaBuilder b;
    ir::Value* sums = b.sums(b.input(DType::Int8, {1, 8, 8, 4}), kernel, kernel, 9);
    std::vector<ir::Value*> results{b.rescale(sums, type, 1518500250, 36, 0, type == DType::Int8 ? 3 : 0)};
    if (twice) results.push_back(sums);
    return b.finish(results);
  };
  for (const char* target : {"ethos-u55-128", "ethos-u85-256"}) {
    EXPECT_THAT(operations(built({8, 8}, DType::Int8, false), target), ElementsAre("npu.POOL"));
    // Small windows, 32-bit results, and sums with other readers use weights.
    EXPECT_THAT(operations(built({2, 2}, DType::Int8, false), target), ElementsAre("npu.DEPTHWISE"));
    EXPECT_THAT(operations(built({8, 8}, DType::Int32, false), target), ElementsAre("npu.DEPTHWISE"));
    EXPECT_EQ(operations(built({8, 8}, DType::Int8, true), target).front(), "npu.DEPTHWISE");
  }
}

/// The first node of an operator.
template <typename Op>
Op find(const ir::Graph& graph) {
  for (ir::Node* node : graph.nodes()) {
    if (const auto op = ir::dynCast<Op>(node)) return op;
  }
  ADD_FAILURE() << "no " << Op::def().name << " in\n" << ir::print(graph);
  std::abort();
}

ir::Graph legalized(const ir::Graph& tosa, const char* target) {
  auto machine = npu::makeMachine(target, "", "");
  return require(compiler::legalize(tosa, *machine->target));
}

ir::Graph transposition(const Shape& shape, const ir::Ints& perms, DType type = DType::Int8) {
  TosaBuilder b;
  return b.finish({b.transpose(b.input(type, shape), perms)});
}

TEST(Interleave, FewPlanesBecomeOneConvolution) {
  // [3, 40] to [40, 3]: runs of 8 elements, a kernel over the planes, 24 channels out.
  for (const char* target : {"ethos-u55-128", "ethos-u85-256"}) {
    const ir::Graph graph = legalized(transposition({1, 3, 5, 8}, {0, 2, 3, 1}), target);
    const auto conv = find<npu_ir::Conv>(graph);
    EXPECT_EQ(conv.ifm()->shape(), (Shape{3, 5, 8}));
    EXPECT_EQ(conv.weight()->shape(), (Shape{24, 3, 1, 8}));
    EXPECT_EQ(conv.ofm()->shape(), (Shape{1, 5, 24}));
    // Channel 3 * i + p takes element i of plane p.
    const Tensor& weight = conv.weight()->constant();
    for (int64_t out = 0; out < 24; ++out) {
      for (int64_t plane = 0; plane < 3; ++plane) {
        for (int64_t in = 0; in < 8; ++in) {
          EXPECT_EQ(weight.integerAt((out * 3 + plane) * 8 + in), out == 3 * in + plane ? 1 : 0);
        }
      }
    }
    EXPECT_EQ(operations(transposition({1, 3, 5, 8}, {0, 2, 3, 1}), target).size(), 1u);
  }
}

TEST(Interleave, OtherTranspositionsAreCopies) {
  const auto kinds = [](const ir::Graph& tosa) { return operations(tosa, "ethos-u55-128"); };
  using testing::Each;
  // Too many planes, runs that are no multiple of 8, 16-bit elements.
  EXPECT_THAT(kinds(transposition({1, 17, 5, 8}, {0, 2, 3, 1})), Each("npu.POOL"));
  EXPECT_THAT(kinds(transposition({1, 3, 5, 7}, {0, 2, 3, 1})), Each("npu.POOL"));
  EXPECT_THAT(kinds(transposition({1, 3, 5, 8}, {0, 2, 3, 1}, DType::Int16)), Each("npu.POOL"));
  EXPECT_THAT(kinds(transposition({1, 5, 7, 3}, {0, 3, 1, 2})), Each("npu.POOL"));
}

TEST(Transpose, OnU85WholeRowsAndWideElementsAreCopied) {
  const auto permutes = [](const ir::Graph& tosa) {
    return find<npu_ir::Pool>(legalized(tosa, "ethos-u85-256")).transpose() != ir::Ints{0, 1, 2};
  };
  const auto count = [](const ir::Graph& tosa) { return operations(tosa, "ethos-u85-256").size(); };
  EXPECT_TRUE(permutes(transposition({17, 9, 12}, {2, 0, 1})));
  EXPECT_FALSE(permutes(transposition({17, 9, 12}, {1, 0, 2})));
  EXPECT_EQ(count(transposition({17, 9, 12}, {1, 0, 2})), 1u);
  EXPECT_FALSE(permutes(transposition({17, 12}, {1, 0}, DType::Int16)));
  EXPECT_EQ(count(transposition({17, 12}, {1, 0}, DType::Int16)), 1u);
  // One copy for each index of the shortest axis, if these are few.
  EXPECT_EQ(count(transposition({17, 3, 12}, {2, 1, 0}, DType::Int16)), 3u);
  EXPECT_TRUE(permutes(transposition({17, 9, 12}, {2, 1, 0}, DType::Int16)));
}

TEST(Interleave, TheInverseIsOneConvolutionPerPlane) {
  // [40, 3] to [3, 40]: each plane takes 8 of 24 adjacent elements.
  for (const char* target : {"ethos-u55-128", "ethos-u85-256"}) {
    const ir::Graph tosa = transposition({1, 5, 8, 3}, {0, 3, 1, 2});
    const ir::Graph graph = legalized(tosa, target);
    const auto conv = find<npu_ir::Conv>(graph);
    EXPECT_EQ(conv.ifm()->shape(), (Shape{1, 5, 24}));
    EXPECT_EQ(conv.ofm()->shape(), (Shape{1, 5, 8}));
    const Tensor& weight = conv.weight()->constant();
    for (int64_t i = 0; i < 8; ++i) {
      for (int64_t in = 0; in < 24; ++in) EXPECT_EQ(weight.integerAt(i * 24 + in), in == 3 * i ? 1 : 0);
    }
    EXPECT_EQ(operations(tosa, target).size(), 3u);
  }
}

struct Columns {
  int64_t width, depth, kernel, left, right;
};

npu_ir::Conv pairedConvolution(const Columns& c, ir::Graph& keep) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 9, c.width, c.depth});
  keep = legalized(b.finish({b.conv(x, 16, {3, c.kernel}, {1, 2}, {1, 1, c.left, c.right}, 5)}),
                   "ethos-u55-128");
  return find<npu_ir::Conv>(keep);
}

TEST(PairedColumns, AStrideOfTwoOverFewChannelsBecomesOne) {
  ir::Graph graph;
  // Pad 1: a column of padding completes the first pair, so the kernel of 3 covers two pairs.
  const auto conv = pairedConvolution({16, 3, 3, 1, 0}, graph);
  EXPECT_EQ(conv.ifm()->shape(), (Shape{9, 8, 6}));
  EXPECT_EQ(conv.weight()->shape(), (Shape{16, 3, 2, 6}));
  EXPECT_EQ(conv.stride(), (ir::Ints{1, 1}));
  EXPECT_EQ(conv.pad(), (ir::Ints{1, 1, 1, 0}));
  EXPECT_EQ(conv.ofm()->shape(), (Shape{9, 8, 16}));
  // The first half of the first pair is where the padding was: its weights are the zero point.
  const Tensor& weight = conv.weight()->constant();
  for (int64_t c = 0; c < 3; ++c) EXPECT_EQ(weight.integerAt(c), 0);
}

TEST(PairedColumns, OnlyWhereItPays) {
  const auto width = [](const Columns& c) {
    ir::Graph graph;
    return pairedConvolution(c, graph).ifm()->dim(1);
  };
  EXPECT_EQ(width({16, 4, 3, 1, 0}), 8);
  EXPECT_EQ(width({16, 5, 3, 1, 0}), 16);  // two columns are more than 8 channels
  EXPECT_EQ(width({17, 3, 3, 1, 1}), 17);  // an odd column remains
  EXPECT_EQ(width({15, 3, 1, 0, 0}), 15);  // a kernel of one column skips the other columns
}

}  // namespace
}  // namespace carina::test