// SPDX-License-Identifier: Apache-2.0
// Operators beyond the convolutional core, each compared with the TOSA interpreter on the families that
// support it, and the messages for those that a family lacks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/program_runner.hpp"
#include "compiler/tosa_graphs.hpp"
#include "support/require.hpp"

namespace carina::test {
namespace {

const std::vector<std::string> kFamilies = {"ethos-u55-128", "ethos-u65-512", "ethos-u85-256",
                                            "ethos-u85-1024"};

void expectExact(const ir::Graph& graph, const std::vector<std::string>& targets, uint64_t seed = 3) {
  const auto inputs = randomInputs(graph, seed);
  for (const std::string& target : targets) EXPECT_EQ(differences(graph, target, "", inputs), "");
}

ir::Value* widened(TosaBuilder& b, ir::Value* x, int64_t zero = 0) {
  return b.rescale(x, DType::Int32, 1 << 30, 30, zero);
}

TEST(Operators, Matmul) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {2, 5, 12});
  ir::Value* y = b.input(DType::Int8, {2, 12, 7});
  ir::Value* z = b.make<tosa::Matmul>(x, y, b.scalar(DType::Int8, 3), b.scalar(DType::Int8, -4));
  ir::Value* c = b.make<tosa::Matmul>(x, b.random(DType::Int8, {2, 12, 9}), b.scalar(DType::Int8, 3),
                                      b.scalar(DType::Int8, 0));
  expectExact(b.finish({b.rescale(z, DType::Int8, 1518500250, 40, 0, 5),
                        b.rescale(c, DType::Int8, 1518500250, 40, 0, 5)}),
              kFamilies);
}

TEST(Operators, ReduceSum) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 6, 7, 10});
  std::vector<ir::Value*> outputs;
  for (const int64_t axis : {1, 2, 3}) {
    ir::Value* sum = b.make<tosa::ReduceSum>(widened(b, x, 9), axis);
    outputs.push_back(b.rescale(sum, DType::Int8, 1518500250, 36, 0, 3));
  }
  ir::Value* twice = b.make<tosa::ReduceSum>(b.make<tosa::ReduceSum>(widened(b, x, 9), 1), 2);
  outputs.push_back(b.rescale(twice, DType::Int8, 1518500250, 39, 0, 3));
  expectExact(b.finish(outputs), kFamilies);
}

TEST(Operators, ReduceSumOfInt16) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int16, {1, 6, 7, 10});
  std::vector<ir::Value*> outputs;
  for (const int64_t axis : {1, 2, 3}) outputs.push_back(b.make<tosa::ReduceSum>(widened(b, x), axis));
  expectExact(b.finish(outputs), kFamilies);
}

TEST(Operators, ReduceExtremaAndArgmax) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {2, 6, 7, 10});
  ir::Value* y = b.input(DType::Int32, {2, 7, 5});
  std::vector<ir::Value*> outputs;
  for (const int64_t axis : {1, 2, 3}) {
    outputs.push_back(b.make<tosa::ReduceMax>(x, axis, tosa::NanMode::PROPAGATE));
    outputs.push_back(b.make<tosa::ReduceMin>(x, axis, tosa::NanMode::PROPAGATE));
    outputs.push_back(b.make<tosa::Argmax>(x, axis, tosa::NanMode::PROPAGATE));
  }
  outputs.push_back(b.make<tosa::ReduceMax>(y, 1, tosa::NanMode::PROPAGATE));
  outputs.push_back(b.make<tosa::ReduceMin>(y, 2, tosa::NanMode::PROPAGATE));
  expectExact(b.finish(outputs), kFamilies);
}

TEST(Operators, ExtremaOfLongRows) {
  for (const DType type : {DType::Int8, DType::Int16}) {
    TosaBuilder b;
    ir::Value* x = b.input(type, {3, 40, 65});
    std::vector<ir::Value*> outputs;
    for (const int64_t axis : {1, 2}) {
      outputs.push_back(b.make<tosa::ReduceMax>(x, axis, tosa::NanMode::PROPAGATE));
      outputs.push_back(b.make<tosa::ReduceMin>(x, axis, tosa::NanMode::PROPAGATE));
    }
    expectExact(b.finish(outputs), kFamilies);
  }
}

TEST(Operators, ExtremaOfOneElement) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {3, 1, 5});
  expectExact(b.finish({b.make<tosa::ReduceMax>(x, 1, tosa::NanMode::PROPAGATE),
                        b.make<tosa::ReduceMin>(x, 1, tosa::NanMode::PROPAGATE)}),
              kFamilies);
}

TEST(Operators, ScalarsAddedToScaledOperands) {
  for (const DType type : {DType::Int8, DType::Int16}) {
    const int64_t factor = type == DType::Int8 ? 19 : 14;
    TosaBuilder b;
    ir::Value* x = b.input(type, {1, 8, 8, 4});
    std::vector<ir::Value*> outputs;
    for (const int64_t number : {1 << 28, 77, 0, -12345, -(1 << 27)}) {
      for (const int64_t multiplier : {1 << 30, 1234567890}) {
        ir::Value* scaled = b.rescale(x, DType::Int32, multiplier, 30 - factor);
        ir::Value* constant = b.reshape(b.scalar(DType::Int32, number), {1, 1, 1, 1});
        outputs.push_back(b.rescale(b.make<tosa::Add>(scaled, constant), type, 1 << 30, 31 + factor));
        outputs.push_back(b.rescale(b.make<tosa::Sub>(constant, scaled), type, 1 << 30, 31 + factor));
      }
    }
    expectExact(b.finish(outputs), kFamilies);
  }
}

/// An operation has one register for scalars.
TEST(Operators, BothOperandsAreScalars) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int32, {4, 8});
  const auto number = [&](int64_t value) { return b.reshape(b.scalar(DType::Int32, value), {1, 1}); };
  ir::Value *five = number(5), *difference = b.make<tosa::Sub>(five, number(3));
  ir::Value* square = b.make<tosa::Mul>(five, five, b.scalar(DType::Int8, 0));
  expectExact(b.finish({b.make<tosa::Add>(x, difference), b.make<tosa::Sub>(x, square)}), kFamilies);
}

TEST(Operators, MaximumMinimumNegateAbs) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 6, 7, 10});
  ir::Value* y = b.input(DType::Int8, {1, 6, 7, 10});
  std::vector<ir::Value*> outputs;
  ir::Value* m = b.make<tosa::Maximum>(widened(b, x, 4), widened(b, y, 4), tosa::NanMode::PROPAGATE);
  outputs.push_back(b.rescale(m, DType::Int8, 1 << 30, 30, 0, 4));
  ir::Value* n = b.make<tosa::Minimum>(b.rescale(x, DType::Int32, 1518500250, 28, 4), widened(b, y, 4),
                                       tosa::NanMode::PROPAGATE);
  outputs.push_back(b.rescale(n, DType::Int8, 1518500250, 33, 0, 4));
  outputs.push_back(b.make<tosa::Negate>(x, b.scalar(DType::Int8, 7), b.scalar(DType::Int8, -9)));
  outputs.push_back(b.rescale(b.make<tosa::Abs>(widened(b, x, 3)), DType::Int8, 1518500250, 31, 0, -20));
  ir::Value* wide = b.make<tosa::Abs>(b.make<tosa::Sub>(widened(b, x, 3), widened(b, y, 1)));
  outputs.push_back(wide);
  outputs.push_back(b.make<tosa::Clz>(wide));
  expectExact(b.finish(outputs), kFamilies);
}

TEST(Operators, BroadcastsOnBothSides) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int32, {3, 1, 5, 1, 4});
  ir::Value* y = b.input(DType::Int32, {3, 2, 1, 6, 4});
  expectExact(b.finish({b.make<tosa::Add>(x, y), b.make<tosa::Sub>(y, x)}), kFamilies);
}

TEST(Operators, ThirtyTwoBitMultiplyAndShift) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int32, {1, 4, 5, 6});
  ir::Value* y = b.input(DType::Int32, {1, 4, 5, 6});
  ir::Value* p = b.mul(x, y, 20);
  ir::Value* amounts = b.constant([] {
    Tensor t = Tensor::zeros(DType::Int32, {1, 1, 1, 6});
    for (int64_t i = 0; i < 6; ++i) t.setIntegerAt(i, i * 2);
    return t;
  }());
  ir::Value* s = b.make<tosa::ArithmeticRightShift>(x, amounts, true);
  ir::Value* l = b.make<tosa::LogicalLeftShift>(y, amounts);
  ir::Value* r = b.rescalePerChannel(x, DType::Int8, 38, 4);
  ir::Value* narrow = b.rescale(b.mul(x, y, 45), DType::Int8, 1 << 30, 30, 0, 7);
  expectExact(b.finish({p, s, l, r, narrow}), kFamilies);
}

TEST(Operators, TransposedConvolution) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 5, 6, 7});
  std::vector<ir::Value*> outputs;
  for (const auto& [stride, pad] : std::vector<std::pair<ir::Ints, ir::Ints>>{{{2, 2}, {0, 0, 0, 0}},
                                                                              {{2, 2}, {-1, -1, -1, -1}},
                                                                              {{3, 1}, {0, 1, 2, 0}},
                                                                              {{1, 1}, {-2, -1, 0, -2}},
                                                                              {{4, 5}, {0, 0, 0, 0}}}) {
    ir::Value* y = b.make<tosa::TransposeConv2d>(x, b.random(DType::Int8, {9, 3, 3, 7}),
                                                 b.random(DType::Int32, {9}), b.scalar(DType::Int8, 5),
                                                 b.scalar(DType::Int8, 0), pad, stride, false, DType::Int32);
    outputs.push_back(b.rescale(y, DType::Int8, 1518500250, 41, 0, 3));
  }
  expectExact(b.finish(outputs), kFamilies);
}

TEST(Operators, ConvolutionInThreeDimensions) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 4, 6, 6, 3});
  ir::Value* y =
      tosa::Conv3d::create(b.builder(), x, b.random(DType::Int8, {8, 2, 3, 3, 3}),
                           b.random(DType::Int32, {8}), b.scalar(DType::Int8, 5), b.scalar(DType::Int8, 0),
                           {1, 0, 1, 1, 1, 1}, {1, 1, 1}, {1, 1, 1}, false, DType::Int32)
          .output();
  expectExact(b.finish({b.rescale(y, DType::Int8, 1518500250, 41, 0, 3)}), kFamilies);
}

TEST(Operators, DepthMultiplier) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 5, 6, 7});
  expectExact(
      b.finish({b.rescalePerChannel(b.depthwise(x, {3, 3}, {1, 1}, {1, 1, 1, 1}, 2, 3), DType::Int8, 40, 4)}),
      kFamilies);
}

TEST(Operators, ReverseTileAndCasts) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 5, 6, 7});
  std::vector<ir::Value*> outputs;
  for (const int64_t axis : {1, 2, 3}) outputs.push_back(b.make<tosa::Reverse>(x, axis));
  outputs.push_back(b.tile(b.slice(x, {0, 0, 0, 0}, {1, 1, 6, 1}), {1, 5, 1, 9}));
  ir::Value* wide = tosa::Cast::create(b.builder(), x, {{DType::Int32, x->shape()}}).output();
  outputs.push_back(b.make<tosa::Add>(wide, wide));
  outputs.push_back(
      tosa::Cast::create(b.builder(), b.make<tosa::Add>(wide, wide), {{DType::Int8, x->shape()}}).output());
  outputs.push_back(tosa::Cast::create(b.builder(), x, {{DType::Int16, x->shape()}}).output());
  outputs.push_back(b.transpose(wide, {0, 3, 1, 2}));
  expectExact(b.finish(outputs), kFamilies);
}

TEST(Operators, TransposesOfThreeAxes) {
  for (const DType type : {DType::Int8, DType::Int16}) {
    for (const Shape& shape : {Shape{17, 3, 12}, Shape{9, 10, 11}}) {
      TosaBuilder b;
      ir::Value* x = b.input(type, shape);
      std::vector<ir::Value*> outputs;
      ir::Ints perms{0, 1, 2};
      while (std::next_permutation(perms.begin(), perms.end())) outputs.push_back(b.transpose(x, perms));
      expectExact(b.finish(outputs), kFamilies);
    }
  }
}

TEST(Operators, NearestResize) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 5, 6, 7});
  const auto resize = [&](const ir::Ints& scale, const ir::Ints& offset, const ir::Ints& border) {
    return b.make<tosa::Resize>(x, b.shapeValue(scale), b.shapeValue(offset), b.shapeValue(border),
                                tosa::ResizeMode::NEAREST);
  };
  expectExact(b.finish({resize({4, 2, 4, 2}, {-1, -1}, {1, 1}), resize({1, 1, 2, 1}, {0, 0}, {0, 0}),
                        resize({3, 2, 3, 1}, {0, 0}, {0, 0})}),
              kFamilies);
}

TEST(Operators, BilinearResize) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 5, 6, 7});
  ir::Value* y = b.make<tosa::Resize>(x, b.shapeValue({4, 2, 4, 2}), b.shapeValue({-1, -1}),
                                      b.shapeValue({1, 1}), tosa::ResizeMode::BILINEAR);
  expectExact(b.finish({b.rescale(y, DType::Int8, 1 << 30, 34)}), kFamilies);
}

/// A RESIZE that shrinks reads beyond the position of its first block, so it waits for the whole preceding
/// operation.
TEST(Operators, ShrinkingResizeWaitsForWhatItReads) {
  for (const auto mode : {tosa::ResizeMode::BILINEAR, tosa::ResizeMode::NEAREST}) {
    TosaBuilder b;
    ir::Value* x = b.maxPool(b.input(DType::Int8, {1, 12, 10, 1}), {2, 1}, {1, 1}, {0, 0, 0, 0});
    ir::Value* y =
        b.make<tosa::Resize>(x, b.shapeValue({3, 5, 2, 3}), b.shapeValue({0, 0}), b.shapeValue({0, 0}), mode);
    expectExact(b.finish({y}), kFamilies);
  }
}

TEST(Operators, ComparisonsLogicAndSelect) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 5, 6, 7});
  ir::Value* y = b.input(DType::Int8, {1, 5, 1, 7});
  ir::Value* p = b.input(DType::Bool, {1, 5, 6, 7});
  ir::Value* greater = b.make<tosa::Greater>(widened(b, x, 3), b.rescale(y, DType::Int32, 1518500250, 30, 0));
  ir::Value* equal = b.make<tosa::Equal>(widened(b, x), widened(b, y));
  ir::Value* both =
      b.make<tosa::LogicalOr>(b.make<tosa::LogicalAnd>(greater, p), b.make<tosa::LogicalNot>(equal));
  ir::Value* chosen = b.make<tosa::Select>(both, x, b.tile(y, {1, 1, 6, 1}));
  ir::Value* any = b.make<tosa::ReduceAny>(p, 2);
  ir::Value* all = b.make<tosa::ReduceAll>(p, 3);
  ir::Value* bits = b.make<tosa::BitwiseXor>(b.make<tosa::BitwiseAnd>(x, b.tile(y, {1, 1, 6, 1})), x);
  ir::Value* nots = b.make<tosa::BitwiseNot>(x);
  expectExact(b.finish({both, chosen, any, all, bits, nots}), kFamilies);
}

TEST(Operators, GatherAndScatter) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {2, 6, 16});
  Tensor index = Tensor::zeros(DType::Int32, {2, 4});
  for (int64_t i = 0; i < 8; ++i) index.setIntegerAt(i, (i * 5 + i / 4) % 6);
  ir::Value* indices = b.constant(std::move(index));
  ir::Value* picked = b.make<tosa::Gather>(x, indices);
  ir::Value* placed = b.make<tosa::Scatter>(x, indices, picked);
  expectExact(b.finish({b.clamp(picked, -50, 50), placed}), kFamilies);
}

/// The table is read again, a part of a wider one, or also what the rows are taken from.
TEST(Operators, ScatterIntoTablesThatOthersRead) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {2, 6, 32});
  Tensor index = Tensor::zeros(DType::Int32, {2, 2});
  for (int64_t i = 0; i < 4; ++i) index.setIntegerAt(i, 5 - i);
  ir::Value* indices = b.make<tosa::Add>(b.constant(std::move(index)), b.input(DType::Int32, {1, 1}));
  ir::Value* table = b.clamp(x, -100, 100);
  ir::Value* rows = b.slice(b.clamp(x, -20, 20), {0, 0, 0}, {2, 2, 32});
  ir::Value* kept = b.make<tosa::Scatter>(table, indices, rows);
  ir::Value* part = b.make<tosa::Scatter>(b.slice(table, {0, 0, 0}, {2, 6, 16}), indices,
                                          b.slice(rows, {0, 0, 16}, {2, 2, 16}));
  ir::Value* own = b.make<tosa::Scatter>(kept, indices, b.slice(kept, {0, 1, 0}, {2, 2, 32}));
  const ir::Graph graph = b.finish({b.make<tosa::ReduceMax>(table, 1, tosa::NanMode::PROPAGATE), part, own});
  std::vector<Tensor> inputs = randomInputs(graph, 3);
  inputs[1] = Tensor::from({1, 1}, std::vector<int32_t>{0});
  for (const std::string target : {"ethos-u85-256", "ethos-u65-256", "ethos-u55-128"}) {
    for (const std::string mode : {"", "Sram_Only"}) EXPECT_EQ(differences(graph, target, mode, inputs), "");
  }
  EXPECT_EQ(differences(graph, "ethos-u85-512", "Dedicated_Sram", inputs), "");
}

/// Keys times queries as decoders write them: the right matrix is read as it lies, without two transposes.
TEST(Operators, MatmulOfATransposedMatrix) {
  TosaBuilder b;
  ir::Value* queries = b.input(DType::Int8, {2, 3, 16});
  ir::Value* keys = b.clamp(b.input(DType::Int8, {2, 12, 16}), -90, 90);
  ir::Value* y = b.make<tosa::Matmul>(queries, b.transpose(keys, {0, 2, 1}), b.scalar(DType::Int8, 3),
                                      b.scalar(DType::Int8, -4));
  const ir::Graph graph = b.finish({b.rescale(y, DType::Int8, 1518500250, 40, 0, 5)});
  expectExact(graph, kFamilies);
  auto program = require(compiler::compile(graph, require(npu::makeMachine("ethos-u85-256", "", ""))));
  for (const compiler::OperationRecord& record : program.operations) {
    const auto* op = std::get_if<npu::KernelOperation>(&record.operation);
    EXPECT_FALSE(op && op->transpose != npu::Transpose::HWC);
  }
}

/// Ethos-U55 and U65 have no indexed transfers. The number of operations does not grow with rows or columns.
TEST(Operators, ComputedRowsTakeFewOperations) {
  TosaBuilder b;
  ir::Value* table = b.input(DType::Int8, {2, 96, 64});
  ir::Value* many = b.input(DType::Int32, {2, 80});
  ir::Value* one = b.input(DType::Int32, {2, 1});
  ir::Value* row = b.input(DType::Int8, {2, 1, 64});
  const ir::Graph graph =
      b.finish({b.make<tosa::Gather>(table, many), b.make<tosa::Scatter>(table, one, row)});
  std::vector<Tensor> inputs = randomInputs(graph, 3);
  for (const size_t which : {1, 2}) {
    for (int64_t i = 0; i < inputs[which].numElements(); ++i) inputs[which].setIntegerAt(i, i * 37 % 96);
  }
  for (const std::string target : {"ethos-u55-128", "ethos-u65-512"}) {
    EXPECT_EQ(differences(graph, target, "", inputs), "");
    const auto program = require(compiler::compile(graph, require(npu::makeMachine(target, "", ""))));
    EXPECT_LT(program.operations.size(), 120u) << target;
  }
}

TEST(Operators, RefusalsNameLimitAndPlace) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 1, 1, 140000});
  ir::Value* y = b.rescale(b.conv(x, 1, {1, 1}), DType::Int8, 1518500250, 41, 0, 3);
  const ir::Graph graph = b.finish({y});
  auto machine = require(npu::makeMachine("ethos-u55-128", "", ""));
  auto program = compiler::compile(graph, machine);
  ASSERT_FALSE(program.ok());
  EXPECT_THAT(program.error().message(),
              testing::ContainsRegex("the absolute weights sum to [0-9]+, more than 8323072"));
  const auto reason = compiler::supports(*graph.firstNode(), *machine.target);
  ASSERT_TRUE(reason.has_value());
  EXPECT_THAT(reason->message,
              testing::ContainsRegex("the absolute weights sum to [0-9]+, more than 8323072"));
  EXPECT_EQ(reason->remedy, "use a smaller kernel or fewer input channels");
}

TEST(Operators, LargeWindowsOfInt16) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int16, {1, 13, 15, 20});
  ir::Value* y = b.rescale48(b.conv(x, 4, {9, 9}, {1, 2}, {4, 4, 4, 4}), DType::Int16, 21845, 32);
  ir::Value* z = b.rescale48(b.depthwise(x, {9, 8}, {2, 1}, {4, 4, 3, 4}), DType::Int16, 21845, 30);
  expectExact(b.finish({y, z}), {"ethos-u85-128", "ethos-u55-32"});
}

TEST(Operators, DivisionIsRefusedOnU55) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int32, {1, 5, 6, 7});
  const ir::Graph graph = b.finish({b.make<tosa::Intdiv>(x, x)});
  auto machine = require(npu::makeMachine("ethos-u55-128", "", ""));
  const auto reason = compiler::supports(*graph.firstNode(), *machine.target);
  ASSERT_TRUE(reason.has_value());
  EXPECT_THAT(reason->message, testing::HasSubstr("INTDIV is not an operation of Ethos-U55"));
}

}  // namespace
}  // namespace carina::test
