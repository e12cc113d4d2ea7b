// SPDX-License-Identifier: Apache-2.0
// Properties of operators that Ethos-U55 and U65 compute by arithmetic and Ethos-U85 has as operations:
// comparisons, logic, selection, bitwise operators, shifts, gather and scatter, and resizing. Model, npu
// interpreter and TOSA interpreter agree on random shapes and on the extreme values of each type.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <numeric>

#include "compiler/dialect/npu_ir.hpp"
#include "compiler/legalize/legalize.hpp"
#include "compiler/program_runner.hpp"
#include "compiler/tosa_graphs.hpp"

namespace carina::test {
namespace {

constexpr const char* kTargetOfEachFamily[] = {"ethos-u55-128", "ethos-u65-256", "ethos-u85-256"};

class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 7) {}
  int64_t roll(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(bits() % static_cast<uint64_t>(high - low + 1));
  }
  uint64_t bits() {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return state_ >> 24;
  }
  template <size_t N>
  DType type(const DType (&types)[N]) {
    return types[roll(0, N - 1)];
  }

 private:
  uint64_t state_;
};

/// Random values; about a third are at or next to a limit of the type or zero.
Tensor withEdgeValues(DType type, const Shape& shape, Dice& dice) {
  Tensor tensor = Tensor::zeros(type, shape);
  if (type == DType::Bool) {
    for (int64_t i = 0; i < tensor.numElements(); ++i) tensor.setIntegerAt(i, dice.roll(0, 1));
    return tensor;
  }
  const int64_t low = integerMin(type), high = integerMax(type);
  const int64_t edges[] = {low, low + 1, -1, 0, 1, high - 1, high};
  for (int64_t i = 0; i < tensor.numElements(); ++i) {
    const int64_t span = high - low;
    tensor.setIntegerAt(i, dice.roll(0, 2) == 0
                               ? edges[dice.roll(0, 6)]
                               : low + static_cast<int64_t>(dice.bits() % static_cast<uint64_t>(span + 1)));
  }
  return tensor;
}

Tensor shiftAmounts(DType type, const Shape& shape, Dice& dice) {
  Tensor tensor = Tensor::zeros(type, shape);
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    tensor.setIntegerAt(i, dice.roll(0, 8 * dtypeSize(type) - 1));
  return tensor;
}

/// A graph under construction with the tensors for its inputs.
struct Case {
  TosaBuilder b;
  Dice dice;
  std::vector<Tensor> inputs;
  std::vector<ir::Value*> outputs;

  explicit Case(uint64_t seed) : b(seed), dice(seed) {}

  ir::Value* input(Tensor tensor) {
    ir::Value* value = b.input(tensor.dtype(), tensor.shape());
    inputs.push_back(std::move(tensor));
    return value;
  }
  /// An input or, one time in four, a constant.
  ir::Value* operand(Tensor tensor) {
    return dice.roll(0, 3) == 0 ? b.constant(std::move(tensor)) : input(std::move(tensor));
  }
  Shape shape(int64_t rank) {
    Shape shape;
    for (int64_t d = 0; d < rank; ++d)
      shape.push_back(dice.roll(0, 3) == 0 ? 1 : dice.roll(2, d + 1 == rank ? 19 : 5));
    return shape;
  }
  /// The shape with some dimensions set to 1.
  Shape broadcastable(Shape shape) {
    for (int64_t& size : shape) size = dice.roll(0, 3) == 0 ? 1 : size;
    return shape;
  }
  void expectExact() {
    const ir::Graph graph = b.finish(outputs);
    for (const char* target : kTargetOfEachFamily) {
      const std::string text = differences(graph, target, "", inputs);
      EXPECT_EQ(text.substr(0, 2000), "");
    }
  }
};

class Logic : public testing::TestWithParam<int> {};

TEST_P(Logic, ComparisonsOfInt32) {
  Case c(static_cast<uint64_t>(GetParam()));
  const Shape shape = c.shape(c.dice.roll(1, 6));
  ir::Value* x = c.operand(withEdgeValues(DType::Int32, c.broadcastable(shape), c.dice));
  ir::Value* y = c.input(withEdgeValues(DType::Int32, shape, c.dice));
  c.outputs = {c.b.make<tosa::Greater>(x, y), c.b.make<tosa::GreaterEqual>(y, x), c.b.make<tosa::Equal>(x, y),
               c.b.make<tosa::Equal>(y, y)};
  c.expectExact();
}

TEST_P(Logic, ComparisonsOfQuantizedValues) {
  Case c(static_cast<uint64_t>(GetParam()));
  const Shape shape = c.shape(c.dice.roll(1, 5));
  const DType type = c.dice.type({DType::Int8, DType::Int16});
  const auto zero = [&] { return type == DType::Int8 ? c.dice.roll(-128, 127) : 0; };
  ir::Value* x = c.input(withEdgeValues(type, c.broadcastable(shape), c.dice));
  ir::Value* y = c.operand(withEdgeValues(type, shape, c.dice));
  // The same scale on both sides, and different scales.
  for (const int64_t multiplier : {int64_t{1} << 30, int64_t{1518500250}}) {
    ir::Value* a = c.b.rescale(x, DType::Int32, 1 << 30, 30, zero());
    ir::Value* d = c.b.rescale(y, DType::Int32, multiplier, 30 - c.dice.roll(0, 3), zero());
    c.outputs.push_back(c.b.make<tosa::Greater>(a, d));
    c.outputs.push_back(c.b.make<tosa::GreaterEqual>(a, d));
    c.outputs.push_back(c.b.make<tosa::Equal>(d, a));
  }
  c.expectExact();
}

/// Limits that every code, some codes and no code passes, on either side, and conditions between two limits.
TEST_P(Logic, TestsOfCodes) {
  Case c(static_cast<uint64_t>(GetParam()));
  const Shape shape = c.shape(c.dice.roll(1, 5));
  ir::Value* x = c.input(withEdgeValues(DType::Int8, shape, c.dice));
  ir::Value* codes = c.b.rescale(x, DType::Int32, 1518500250, 20, c.dice.roll(-128, 127));
  const int64_t limits[] = {-1000000, c.dice.roll(-200000, 0), 0, c.dice.roll(0, 200000), 1000000};
  const auto limitAt = [&](int64_t limit) {
    Tensor one = Tensor::zeros(DType::Int32, Shape(shape.size(), 1));
    one.setIntegerAt(0, limit);
    return c.b.constant(std::move(one));
  };
  for (const int64_t limit : limits) {
    c.outputs.push_back(c.b.make<tosa::Greater>(codes, limitAt(limit)));
    c.outputs.push_back(c.b.make<tosa::GreaterEqual>(limitAt(limit), codes));
    c.outputs.push_back(c.b.make<tosa::Equal>(codes, limitAt(limit)));
  }
  const auto above = [&](int64_t limit) {
    ir::Value* own = c.b.rescale(x, DType::Int32, 1518500250, 20, 4);
    return c.b.make<tosa::Greater>(own, limitAt(limit));
  };
  c.outputs.push_back(
      c.b.make<tosa::LogicalAnd>(above(limits[1]), c.b.make<tosa::LogicalNot>(above(limits[3]))));
  c.expectExact();
}

TEST_P(Logic, TruthValues) {
  Case c(static_cast<uint64_t>(GetParam()));
  const Shape shape = c.shape(c.dice.roll(1, 5));
  ir::Value* x = c.input(withEdgeValues(DType::Bool, shape, c.dice));
  ir::Value* y = c.operand(withEdgeValues(DType::Bool, c.broadcastable(shape), c.dice));
  c.outputs = {c.b.make<tosa::LogicalAnd>(x, y), c.b.make<tosa::LogicalOr>(y, x),
               c.b.make<tosa::LogicalXor>(x, y), c.b.make<tosa::LogicalNot>(x)};
  for (int64_t axis = 0; axis < x->rank(); ++axis) {
    c.outputs.push_back(c.b.make<tosa::ReduceAny>(x, axis));
    c.outputs.push_back(c.b.make<tosa::ReduceAll>(x, axis));
  }
  for (const DType type : {DType::Int8, DType::Int16, DType::Int32}) {
    ir::Value* number = c.input(withEdgeValues(type, shape, c.dice));
    c.outputs.push_back(tosa::Cast::create(c.b.builder(), number, {{DType::Bool, shape}}).output());
    c.outputs.push_back(tosa::Cast::create(c.b.builder(), x, {{type, shape}}).output());
  }
  c.expectExact();
}

TEST_P(Logic, Selection) {
  Case c(static_cast<uint64_t>(GetParam()));
  const Shape shape = c.shape(c.dice.roll(1, 5));
  ir::Value* condition = c.operand(withEdgeValues(DType::Bool, c.broadcastable(shape), c.dice));
  for (const DType type : {DType::Bool, DType::Int8, DType::Int16, DType::Int32}) {
    ir::Value* x = c.input(withEdgeValues(type, shape, c.dice));
    ir::Value* y = c.operand(withEdgeValues(type, c.broadcastable(shape), c.dice));
    c.outputs.push_back(c.b.make<tosa::Select>(condition, x, y));
    c.outputs.push_back(c.b.make<tosa::Select>(condition, y, x));
  }
  c.expectExact();
}

TEST_P(Logic, SelectionBetweenTensorAndScalar) {
  Case c(static_cast<uint64_t>(GetParam()));
  const Shape shape = c.shape(c.dice.roll(1, 5));
  ir::Value* condition = c.operand(withEdgeValues(DType::Bool, c.broadcastable(shape), c.dice));
  for (const DType type : {DType::Int8, DType::Int16, DType::Int32}) {
    ir::Value* x = c.input(withEdgeValues(type, shape, c.dice));
    for (const int64_t number : {integerMin(type), integerMax(type), int64_t{0}, int64_t{-7}}) {
      Tensor one = Tensor::zeros(type, Shape(shape.size(), 1));
      one.setIntegerAt(0, number);
      ir::Value* fixed = c.b.constant(std::move(one));
      c.outputs.push_back(c.b.make<tosa::Select>(condition, x, fixed));
      c.outputs.push_back(c.b.make<tosa::Select>(condition, fixed, x));
    }
  }
  c.expectExact();
}

TEST_P(Logic, BitwiseOperators) {
  Case c(static_cast<uint64_t>(GetParam()));
  const DType type = c.dice.type({DType::Int8, DType::Int16, DType::Int32});
  const Shape shape = c.shape(c.dice.roll(1, 5));
  ir::Value* x = c.input(withEdgeValues(type, shape, c.dice));
  ir::Value* y = c.operand(withEdgeValues(type, c.broadcastable(shape), c.dice));
  ir::Value* one = c.b.constant(withEdgeValues(type, Shape(shape.size(), 1), c.dice));
  c.outputs = {c.b.make<tosa::BitwiseAnd>(x, y),   c.b.make<tosa::BitwiseOr>(y, x),
               c.b.make<tosa::BitwiseXor>(x, y),   c.b.make<tosa::BitwiseAnd>(x, one),
               c.b.make<tosa::BitwiseXor>(one, x), c.b.make<tosa::BitwiseNot>(x)};
  c.expectExact();
}

TEST_P(Logic, Shifts) {
  Case c(static_cast<uint64_t>(GetParam()));
  const DType type = c.dice.type({DType::Int8, DType::Int16, DType::Int32});
  const Shape shape = c.shape(c.dice.roll(1, 5));
  ir::Value* x = c.input(withEdgeValues(type, shape, c.dice));
  const Shape one(shape.size(), 1);
  for (ir::Value* by : {c.input(shiftAmounts(type, c.broadcastable(shape), c.dice)),
                        c.b.constant(shiftAmounts(type, c.broadcastable(shape), c.dice)),
                        c.b.constant(shiftAmounts(type, one, c.dice))}) {
    for (const bool round : {false, true})
      c.outputs.push_back(c.b.make<tosa::ArithmeticRightShift>(x, by, round));
    c.outputs.push_back(c.b.make<tosa::LogicalLeftShift>(x, by));
  }
  c.expectExact();
}

/// Indices that are distinct within each batch.
Tensor distinct(int64_t batch, int64_t count, int64_t rows, Dice& dice) {
  Tensor tensor = Tensor::zeros(DType::Int32, {batch, count});
  for (int64_t n = 0; n < batch; ++n) {
    const int64_t start = dice.roll(0, rows - 1);
    int64_t step = dice.roll(1, rows);
    while (std::gcd(step, rows) != 1) ++step;
    for (int64_t i = 0; i < count; ++i) tensor.setIntegerAt(n * count + i, (start + i * step) % rows);
  }
  return tensor;
}

TEST_P(Logic, GatherAndScatter) {
  Case c(static_cast<uint64_t>(GetParam()));
  const DType type = c.dice.type({DType::Int8, DType::Int16, DType::Int32});
  const int64_t batch = c.dice.roll(1, 3),
                rows = c.dice.roll(1, 2) == 1 ? c.dice.roll(2, 40) : c.dice.roll(129, 300),
                columns = c.dice.roll(1, 9), count = c.dice.roll(1, std::min<int64_t>(rows, 12));
  ir::Value* table = c.operand(withEdgeValues(type, {batch, rows, columns}, c.dice));
  Tensor where = Tensor::zeros(DType::Int32, {batch, count});
  for (int64_t i = 0; i < where.numElements(); ++i) where.setIntegerAt(i, c.dice.roll(0, rows - 1));
  c.outputs = {c.b.make<tosa::Gather>(table, c.operand(where)),
               c.b.make<tosa::Scatter>(c.input(withEdgeValues(type, {batch, rows, columns}, c.dice)),
                                       c.operand(distinct(batch, count, rows, c.dice)),
                                       c.input(withEdgeValues(type, {batch, count, columns}, c.dice)))};
  c.expectExact();
}

TEST_P(Logic, Resizing) {
  Case c(static_cast<uint64_t>(GetParam()));
  const DType type = c.dice.type({DType::Int8, DType::Int16});
  const bool nearest = c.dice.roll(0, 3) == 0;
  Shape shape{c.dice.roll(1, 2), 0, 0, c.dice.roll(1, 20)};
  ir::Ints scale, offset, border;
  for (int64_t axis = 1; axis <= 2; ++axis) {
    // A numerator, denominator, offset and border that give an integer number of outputs.
    const int64_t most = c.dice.roll(0, 1) ? 15 : type == DType::Int16 ? 200 : 255;
    const int64_t n = c.dice.roll(1, 4) == 1 ? 1 : c.dice.roll(1, most),
                  inputs = n == 1 && c.dice.roll(0, 1) ? 1 : c.dice.roll(2, 9);
    const int64_t d = c.dice.roll(1, std::min<int64_t>(2 * n, 40)), o = c.dice.roll(-n, n - 1);
    const int64_t span = (inputs - 1) * n - o, rest = (d - span % d) % d;
    if (span < 0 || rest >= n) {
      scale.insert(scale.end(), {2, 1});
      offset.push_back(0);
      border.push_back(0);
    } else {
      scale.insert(scale.end(), {n, d});
      offset.push_back(o);
      border.push_back(rest);
    }
    shape[static_cast<size_t>(axis)] = inputs;
  }
  ir::Value* x = c.input(withEdgeValues(type, shape, c.dice));
  ir::Value* y =
      c.b.make<tosa::Resize>(x, c.b.shapeValue(scale), c.b.shapeValue(offset), c.b.shapeValue(border),
                             nearest ? tosa::ResizeMode::NEAREST : tosa::ResizeMode::BILINEAR);
  if (nearest)
    c.outputs = {y};
  else if (type == DType::Int16)
    c.outputs = {c.b.rescale48(y, type, 21845, 20)};
  else
    c.outputs = {c.b.rescale(y, type, 1518500250, 36)};
  if (!nearest && type == DType::Int8 && c.dice.roll(0, 1)) c.outputs.push_back(y);
  c.expectExact();
}

TEST_P(Logic, Argmax) {
  Case c(static_cast<uint64_t>(GetParam()));
  const DType type = c.dice.type({DType::Int8, DType::Int16});
  const Shape shape{c.dice.roll(1, 3), c.dice.roll(1, 200), c.dice.roll(1, 5)};
  ir::Value* x = c.input(withEdgeValues(type, shape, c.dice));
  for (const int64_t axis : {0, 1, 2})
    c.outputs.push_back(c.b.make<tosa::Argmax>(x, axis, tosa::NanMode::PROPAGATE));
  c.expectExact();
}

/// 48-bit sums computed in 32 bits: depths of one and several chunks, scales from rounding to saturating.
TEST_P(Logic, ProductsOfComputedMatrices) {
  Case c(static_cast<uint64_t>(GetParam()));
  const int64_t batch = c.dice.roll(1, 3), rows = c.dice.roll(1, 6), columns = c.dice.roll(1, 6);
  const int64_t depths[] = {1, 2, 31, 256, 257, 512, 700};
  const int64_t depth = depths[c.dice.roll(0, 6)];
  ir::Value* none = c.b.scalar(DType::Int16, 0);
  for (const int64_t shift : {int64_t{9}, c.dice.roll(10, 23), c.dice.roll(24, 30), c.dice.roll(31, 38)}) {
    // Values whose scaled sums fit in 32 bits, as RESCALE requires.
    const int64_t bits = (16 + shift - std::bit_width(static_cast<uint64_t>(depth))) / 2;
    const auto bounded = [&](const Shape& shape) {
      Tensor tensor = withEdgeValues(DType::Int16, shape, c.dice);
      for (int64_t i = 0; bits < 15 && i < tensor.numElements(); ++i)
        tensor.setIntegerAt(i, std::max(tensor.integerAt(i), int64_t{-32767}) >> (15 - bits));
      return c.input(std::move(tensor));
    };
    ir::Value *a = bounded({batch, rows, depth}), *b = bounded({batch, depth, columns});
    ir::Value* product = c.b.make<tosa::Matmul>(a, b, none, none);
    const int64_t multiplier = c.dice.roll(0, 2) == 0 ? 16384 : c.dice.roll(16384, 32767);
    c.outputs.push_back(c.b.rescale48(product, DType::Int16, multiplier, shift));
  }
  ir::Value* x = c.input(withEdgeValues(DType::Int8, {batch, rows, depth}, c.dice));
  ir::Value* y = c.input(withEdgeValues(DType::Int8, {batch, depth, columns}, c.dice));
  ir::Value* narrow = c.b.make<tosa::Matmul>(x, y, c.b.scalar(DType::Int8, c.dice.roll(-128, 127)),
                                             c.b.scalar(DType::Int8, c.dice.roll(-128, 127)));
  c.outputs.push_back(c.b.rescale(narrow, DType::Int8, 1518500250, 40, 0, 5));
  c.expectExact();
}

/// Rewrites for every family: transpositions of few planes as convolutions, paired columns.
TEST_P(Logic, InterleavedPlanesAndPairedColumns) {
  Case c(static_cast<uint64_t>(GetParam()));
  const Shape planes{1, c.dice.roll(2, 8), c.dice.roll(1, 6), 8 * c.dice.roll(1, 3)};
  c.outputs = {c.b.transpose(c.input(withEdgeValues(DType::Int8, planes, c.dice)), {0, 2, 3, 1})};
  for (int i = 0; i < 3; ++i) {
    const int64_t kernel = c.dice.roll(2, 6), width = 2 * c.dice.roll(kernel / 2 + 1, 9);
    const int64_t left = c.dice.roll(0, kernel - 1), right = (left + width - kernel) % 2;
    ir::Value* x =
        c.input(withEdgeValues(DType::Int8, {c.dice.roll(1, 2), 5, width, c.dice.roll(1, 4)}, c.dice));
    ir::Value* y = c.b.conv(x, c.dice.roll(1, 20), {3, kernel}, {2 - c.dice.roll(0, 1), 2},
                            {1, 1, left, right}, c.dice.roll(-128, 127));
    c.outputs.push_back(c.b.rescalePerChannel(y, DType::Int8, 42, 4));
  }
  c.expectExact();
}

INSTANTIATE_TEST_SUITE_P(Random, Logic, testing::Range(1, 13));

TEST(LogicCost, ComparingQuantizedValuesIsOneOperation) {
  for (const bool equal : {false, true}) {
    TosaBuilder b;
    ir::Value* p = b.rescale(b.input(DType::Int8, {1, 8, 8, 4}), DType::Int32, 1 << 30, 30, 3);
    ir::Value* q = b.rescale(b.input(DType::Int8, {1, 8, 8, 4}), DType::Int32, 1 << 30, 30, 3);
    ir::Value* result = equal ? b.make<tosa::Equal>(p, q) : b.make<tosa::Greater>(p, q);
    EXPECT_THAT(operations(b.finish({result}), "ethos-u55-128"), testing::ElementsAre("npu.ELEMENTWISE"));
  }
}

TEST(LogicCost, TestsOfALayersResultAreItsTable) {
  for (const char* target : kTargetOfEachFamily) {
    TosaBuilder b;
    ir::Value* x = b.rescale(b.conv(b.input(DType::Int8, {1, 8, 8, 4}), 8, {1, 1}), DType::Int8, 1 << 30, 38);
    ir::Value* limit = b.constant(Tensor::from(Shape{1, 1, 1, 1}, std::vector<int32_t>{90000}));
    ir::Value* tested = b.make<tosa::Greater>(limit, b.rescale(x, DType::Int32, 1518500250, 20, 3));
    const ir::Graph graph = b.finish({tested});
    EXPECT_THAT(operations(graph, target), testing::ElementsAre("npu.CONV"));
    EXPECT_EQ(differences(graph, target, "", randomInputs(graph, 1)), "");
  }
}

/// A value that only its table reads, and a function and a test of what the table gives, which is an output.
TEST(LogicCost, FunctionsBeginWithAValueThatIsComputedAnyway) {
  for (const char* target : kTargetOfEachFamily) {
    TosaBuilder b;
    ir::Value* x = b.rescale(b.conv(b.input(DType::Int8, {1, 8, 8, 4}), 8, {1, 1}), DType::Int8, 1 << 30, 38);
    ir::Value* codes = b.table(x);
    ir::Value* limit = b.constant(Tensor::from(Shape{1, 1, 1, 1}, std::vector<int32_t>{5000}));
    ir::Value* tested = b.make<tosa::Greater>(b.rescale(codes, DType::Int32, 1518500250, 20, 3), limit);
    const ir::Graph graph = b.finish({codes, tested, b.table(b.table(codes))});
    EXPECT_THAT(operations(graph, target),
                testing::UnorderedElementsAre("npu.CONV", "npu.ELEMENTWISE", "npu.POOL"));
    EXPECT_EQ(differences(graph, target, "", randomInputs(graph, 1)), "");
  }
}

TEST(LogicCost, TestingACodeIsOneOperation) {
  for (const char* target : kTargetOfEachFamily) {
    TosaBuilder b;
    ir::Value* x = b.input(DType::Int8, {1, 8, 8, 4});
    const auto above = [&](int64_t limit) {
      Tensor one = Tensor::from(Shape{1, 1, 1, 1}, std::vector<int32_t>{static_cast<int32_t>(limit)});
      return b.make<tosa::Greater>(b.rescale(x, DType::Int32, 1518500250, 20, 3), b.constant(std::move(one)));
    };
    ir::Value* between = b.make<tosa::LogicalAnd>(above(-5000), b.make<tosa::LogicalNot>(above(5000)));
    EXPECT_THAT(operations(b.finish({above(5000), between}), target),
                testing::UnorderedElementsAre("npu.ELEMENTWISE", "npu.POOL"));
  }
}

TEST(LogicCost, MaskingIsOneOperationOnAllElements) {
  for (const char* target : kTargetOfEachFamily) {
    for (const int64_t number : {-128, 0, 127}) {
      TosaBuilder b;
      ir::Value* x = b.input(DType::Int8, {1, 8, 8, 4});
      ir::Value* condition = b.input(DType::Bool, {1, 1, 1, 4});
      Tensor one = Tensor::zeros(DType::Int8, {1, 1, 1, 1});
      one.setIntegerAt(0, number);
      ir::Value* masked = b.make<tosa::Select>(condition, b.constant(std::move(one)), x);
      EXPECT_EQ(operations(b.finish({masked}), target).size(), 2u) << target << " " << number;
    }
  }
}

TEST(LogicCost, ShiftingByOneAmountIsOneOperation) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int32, {1, 8, 8, 4});
  ir::Value* y = b.constant(Tensor::from(Shape{1, 1, 1, 1}, std::vector<int32_t>{5}));
  EXPECT_THAT(operations(b.finish({b.make<tosa::ArithmeticRightShift>(x, y, false)}), "ethos-u55-128"),
              testing::ElementsAre("npu.ELEMENTWISE"));
}

TEST(LogicCost, DoublingBilinearlyIsTwoTapsPerPhase) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 8, 8, 4});
  ir::Value* y = b.make<tosa::Resize>(x, b.shapeValue({4, 2, 4, 2}), b.shapeValue({-1, -1}),
                                      b.shapeValue({1, 1}), tosa::ResizeMode::BILINEAR);
  const auto names = operations(b.finish({b.rescale(y, DType::Int8, 1 << 30, 34)}), "ethos-u55-128");
  // Two phases along each axis, each with a clamped position at one end; the scale is fused into the last
  // ones.
  EXPECT_EQ(names.size(), 8u);
  EXPECT_THAT(names, testing::Each("npu.DEPTHWISE"));
}

}  // namespace
}  // namespace carina::test
