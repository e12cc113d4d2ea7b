// SPDX-License-Identifier: Apache-2.0
// The interpreter on values worked out by hand from the specification, and what it refuses to compute.
#include "tosa/interpreter.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "support/require.hpp"
#include "tosa/graph_helpers.hpp"
#include "tosa/kernels/scale.hpp"

namespace carina::test {
namespace {

std::vector<int64_t> run(const ir::Graph& graph, const std::vector<Tensor>& inputs) {
  return valuesOf(require(tosa::interpret(graph, inputs))[0]);
}

std::string failure(const ir::Graph& graph, const std::vector<Tensor>& inputs) {
  return errorOf(tosa::interpret(graph, inputs));
}

TEST(TosaScale, RoundsHalvesUpAndTwiceOnRequest) {
  using tosa::kernels::applyScale32;
  constexpr int64_t kHalf = int64_t{1} << 30;
  EXPECT_EQ(applyScale32(3, kHalf, 31, false), 2);
  EXPECT_EQ(applyScale32(-3, kHalf, 31, false), -1);
  EXPECT_EQ(applyScale32(-1, kHalf, 31, false), 0);
  EXPECT_EQ(applyScale32(-6, kHalf, 32, false), -1);
  EXPECT_EQ(applyScale32(-6, kHalf, 32, true), -2);
  EXPECT_EQ(applyScale32(28343, 1976912426, 34, false), 3261);
  EXPECT_EQ(applyScale32(28343, 1976912426, 34, true), 3262);
  EXPECT_EQ(applyScale32(-15407, 1210936629, 36, false), -271);
  EXPECT_EQ(applyScale32(-15407, 1210936629, 36, true), -272);
  EXPECT_EQ(applyScale32(117, kHalf, 11, false), 61341696);
  EXPECT_EQ(tosa::kernels::applyScale16(123456789012, 20000, 45), 70);
}

TEST(TosaScale, ReciprocalOfCounts) {
  const auto check = [](uint32_t count, int32_t multiplier, int shift) {
    const auto scale = tosa::kernels::reciprocalScale(count);
    EXPECT_EQ(scale.multiplier, multiplier) << count;
    EXPECT_EQ(scale.shift, shift) << count;
  };
  check(1, 1073741825, 30);
  check(2, 1073741825, 31);
  check(3, 1431655766, 32);
  check(7, 1227133514, 33);
  check(9, 1908874355, 34);
  check(49, 1402438302, 36);
  check(64, 1073741825, 36);
}

TEST(TosaInterpreter, RescaleLeftAlignsAsFrameworksDo) {
  const ir::Graph graph =
      rescaleGraph({.from = DType::Int8, .to = DType::Int32, .shift = 11, .inputZero = -17}, 1);
  EXPECT_EQ(run(graph, {list(DType::Int8, {100})}), std::vector<int64_t>{61341696});
}

TEST(TosaInterpreter, UnsignedRescaleClipsNegativeToZero) {
  RescaleSpec spec{.from = DType::Int8, .to = DType::Int8, .outputUnsigned = true};
  spec.multiplier = (int64_t{1} << 30);
  spec.shift = 30;
  EXPECT_EQ(run(rescaleGraph(spec, 3), {list(DType::Int8, {-5, 0, 127})}), (std::vector<int64_t>{0, 0, 127}));
  spec.outputZero = -128;  // 128, stored in a signless type
  EXPECT_EQ(run(rescaleGraph(spec, 3), {list(DType::Int8, {-128, 0, 127})}),
            (std::vector<int64_t>{0, -128, -1}));
}

TEST(TosaInterpreter, RescaleByOneConverts) {
  const auto converted = [](RescaleSpec spec, const std::vector<int64_t>& values) {
    spec.multiplier = int64_t{1} << spec.shift;
    return run(rescaleGraph(spec, static_cast<int64_t>(values.size())), {list(spec.from, values)});
  };
  EXPECT_EQ(
      converted({.from = DType::Int8, .to = DType::Int32, .shift = 30, .inputZero = -128}, {-128, -1, 127}),
      (std::vector<int64_t>{0, 127, 255}));
  EXPECT_EQ(converted({.to = DType::Int16, .shift = 20, .outputZero = 0}, {-40000, -7, 40000}),
            (std::vector<int64_t>{-32768, -7, 32767}));
  EXPECT_EQ(converted({.shift = 20, .outputZero = 5}, {-400, -7, 121, 122, 123}),
            (std::vector<int64_t>{-128, -2, 126, 127, 127}));
  EXPECT_EQ(
      converted({.from = DType::Int8, .to = DType::Int16, .shift = 14, .inputUnsigned = true}, {-1, 0, 3}),
      (std::vector<int64_t>{255, 0, 3}));
  const ir::Graph narrow = rescaleGraph({.multiplier = 1 << 10, .shift = 10}, 2);  // takes -512..511
  EXPECT_EQ(run(narrow, {list(DType::Int32, {-512, 511})}), (std::vector<int64_t>{-128, 127}));
  EXPECT_NE(failure(narrow, {list(DType::Int32, {0, 512})}).find("unpredictable"), std::string::npos);
  EXPECT_NE(failure(narrow, {list(DType::Int32, {-513, 0})}).find("unpredictable"), std::string::npos);
  // Without SCALE32, all of int32 is allowed, and adding the zero point may exceed it.
  const ir::Graph wide =
      rescaleGraph({.multiplier = 1 << 10, .shift = 10, .outputZero = 5, .scale32 = false}, 1);
  EXPECT_EQ(run(wide, {list(DType::Int32, {7})})[0], 12);
  EXPECT_NE(failure(wide, {list(DType::Int32, {INT32_MAX})}).find("does not fit int32"), std::string::npos);
}

TEST(TosaInterpreter, RescaleOutOfRangeIsRefusedWithTheNode) {
  const ir::Graph narrow = rescaleGraph({.shift = 4}, 2);  // shift 4 takes -8..7
  EXPECT_NE(failure(narrow, {list(DType::Int32, {7, 8})}).find("unpredictable"), std::string::npos);
  const ir::Graph wide =
      rescaleGraph({.from = DType::Int48, .multiplier = 1 << 14, .shift = 2, .scale32 = false}, 1);
  EXPECT_NE(failure(wide, {list(DType::Int48, {int64_t{1} << 40})}).find("tosa.RESCALE"), std::string::npos);
}

TEST(TosaInterpreter, MulShiftsWithRounding) {
  const auto product = [](int64_t a, int64_t b, int64_t shift) {
    GraphMaker n;
    ir::Value* x = n.input({1}, DType::Int32);
    ir::Value* y = n.input({1}, DType::Int32);
    n.graph.setOutputs({n.make<tosa::Mul>(x, y, n.b.constant(list(DType::Int8, {shift})))});
    return run(n.graph, {list(DType::Int32, {a}), list(DType::Int32, {b})})[0];
  };
  EXPECT_EQ(product(7, 5, 2), 9);
  EXPECT_EQ(product(-7, 5, 2), -9);
  EXPECT_EQ(product(100000, 100000, 20), 9537);
  EXPECT_EQ(product(100000, 100000, 0), 1410065408);
  EXPECT_EQ(product(INT32_MIN, INT32_MIN, 63), 1);
}

TEST(TosaInterpreter, ArithmeticRightShiftRounds) {
  const auto shifted = [](bool round) {
    const ir::Graph graph = binaryGraph<tosa::ArithmeticRightShift>(DType::Int16, 4, round);
    return run(graph, {list(DType::Int16, {-7, -5, 6, 9}), list(DType::Int16, {1, 2, 2, 0})});
  };
  EXPECT_EQ(shifted(false), (std::vector<int64_t>{-4, -2, 1, 9}));
  EXPECT_EQ(shifted(true), (std::vector<int64_t>{-3, -1, 2, 9}));
}

TEST(TosaInterpreter, AScalarOperandAppliesToAllElements) {
  GraphMaker n;
  ir::Value* x = n.input({2, 3}, DType::Int32);
  ir::Value* two = n.b.constant(integers(DType::Int32, {1, 1}, {2}));
  ir::Value* row = n.b.constant(integers(DType::Int32, {1, 3}, {1, 2, 3}));
  n.graph.setOutputs({n.make<tosa::ArithmeticRightShift>(x, two, true), n.make<tosa::Sub>(two, x),
                      n.make<tosa::Sub>(x, row)});
  const auto results =
      require(tosa::interpret(n.graph, std::array{integers(DType::Int32, {2, 3}, {-8, -6, 1, 2, 5, 99})}));
  EXPECT_EQ(valuesOf(results[0]), (std::vector<int64_t>{-2, -1, 0, 1, 1, 25}));
  EXPECT_EQ(valuesOf(results[1]), (std::vector<int64_t>{10, 8, 1, 0, -3, -97}));
  EXPECT_EQ(valuesOf(results[2]), (std::vector<int64_t>{-9, -8, -2, 1, 3, 96}));
}

TEST(TosaInterpreter, UnpredictableArithmeticIsRefused) {
  const auto add = binaryGraph<tosa::Add>(DType::Int32, 1);
  EXPECT_NE(failure(add, {list(DType::Int32, {INT32_MAX}), list(DType::Int32, {1})}).find("overflows"),
            std::string::npos);
  EXPECT_EQ(run(add, {list(DType::Int32, {INT32_MIN}), list(DType::Int32, {INT32_MAX})})[0], -1);
  const auto subtract = binaryGraph<tosa::Sub>(DType::Int32, 1);
  EXPECT_EQ(run(subtract, {list(DType::Int32, {INT32_MIN}), list(DType::Int32, {INT32_MIN})})[0], 0);
  EXPECT_EQ(run(subtract, {list(DType::Int32, {-1}), list(DType::Int32, {INT32_MIN})})[0], INT32_MAX);
  EXPECT_NE(failure(subtract, {list(DType::Int32, {0}), list(DType::Int32, {INT32_MIN})}), "");
  const auto divide = binaryGraph<tosa::Intdiv>(DType::Int32, 1);
  EXPECT_NE(failure(divide, {list(DType::Int32, {1}), list(DType::Int32, {0})}), "");
  EXPECT_NE(failure(divide, {list(DType::Int32, {INT32_MIN}), list(DType::Int32, {-1})}), "");
  const auto shift = binaryGraph<tosa::LogicalLeftShift>(DType::Int8, 1);
  EXPECT_NE(failure(shift, {list(DType::Int8, {1}), list(DType::Int8, {8})}).find("shift amount"),
            std::string::npos);
}

TEST(TosaInterpreter, SixteenBitTableInterpolates) {
  std::vector<int64_t> entries;
  for (int64_t i = -256; i <= 256; ++i) {
    entries.push_back(
        std::min<int64_t>(std::lround(32768.0 / (1.0 + std::exp(-static_cast<double>(i) / 16.0))), 32767));
  }
  GraphMaker n;
  n.graph.setOutputs(
      {n.make<tosa::Table>(n.input({5}, DType::Int16), n.b.constant(list(DType::Int16, entries)))});
  EXPECT_EQ(run(n.graph, {list(DType::Int16, {0, 1, -1, 1000, 32767})}),
            (std::vector<int64_t>{2097152, 2097664, 2096640, 2599176, 4194176}));
}

TEST(TosaInterpreter, ResizeExample) {
  const auto resized = [](tosa::ResizeMode mode) {
    GraphMaker n;
    ir::Value* x = n.input({1, 2, 1, 1}, DType::Int8);
    const auto shape = [&](const std::vector<int64_t>& values) {
      return n.b.constant(list(DType::Shape, values));
    };
    n.graph.setOutputs({n.make<tosa::Resize>(x, shape({4, 2, 1, 1}), shape({-1, 0}), shape({1, 0}), mode)});
    return run(n.graph, {integers(DType::Int8, {1, 2, 1, 1}, {10, 20})});
  };
  EXPECT_EQ(resized(tosa::ResizeMode::BILINEAR), (std::vector<int64_t>{40, 50, 70, 80}));
  EXPECT_EQ(resized(tosa::ResizeMode::NEAREST), (std::vector<int64_t>{10, 10, 20, 20}));
}

TEST(TosaInterpreter, InputsAreCheckedAndTheObserverSeesEveryResult) {
  const ir::Graph graph = rescaleGraph({.from = DType::Int8, .to = DType::Int8, .shift = 30}, 2);
  EXPECT_NE(failure(graph, {list(DType::Int8, {1, 2, 3})}).find("'x' is i8[2]"), std::string::npos);
  EXPECT_NE(failure(graph, {}).find("takes 1 inputs"), std::string::npos);
  std::vector<std::string> seen;
  require(tosa::interpret(graph, std::vector<Tensor>{list(DType::Int8, {1, 2})},
                          [&](const ir::Value& value, const Tensor& tensor) {
                            seen.push_back(fmt::format("{} {}", value.name, tensor.integerAt(1)));
                          }));
  EXPECT_EQ(seen, std::vector<std::string>{"y 2"});
}

TEST(TosaInterpreter, SixteenBitFloatsRoundOnce) {
  const auto bits = [](DType to, DType from, const Tensor& input) {
    GraphMaker n;
    const std::vector<ir::Type> types{{to, input.shape()}};
    n.graph.setOutputs({n.make<tosa::Cast>(n.input(input.shape(), from), types)});
    const auto results = require(tosa::interpret(n.graph, std::vector<Tensor>{input}));
    const auto values = results[0].as<uint16_t>();
    return std::vector<int>(values.begin(), values.end());
  };
  // 2049 is halfway between two halves (ties to even: 2048), 2051 rounds to 2052; 70000 is beyond the largest
  // half.
  EXPECT_EQ(bits(DType::Float16, DType::Int32, list(DType::Int32, {2049, 2051, 70000})),
            (std::vector<int>{0x6800, 0x6802, 0x7c00}));
  // One above a tie of bfloat16 that float32 cannot hold: rounding twice would drop it.
  EXPECT_EQ(bits(DType::BFloat16, DType::Int32, list(DType::Int32, {0x40400001, 0x40400000})),
            (std::vector<int>{0x4e81, 0x4e80}));
}

TEST(TosaInterpreter, HalfAdditionRoundsToHalf) {
  const ir::Graph graph = binaryGraph<tosa::Add>(DType::Float16, 1);
  Tensor a = Tensor::uninitialized(DType::Float16, {1}), c = a;
  a.mutableAs<uint16_t>()[0] = 0x6800;  // 2048
  c.mutableAs<uint16_t>()[0] = 0x3e00;  // 1.5
  const auto results = require(tosa::interpret(graph, std::vector<Tensor>{a, c}));
  EXPECT_EQ(results[0].realAt(0), 2050);  // 2049.5 to the nearest multiple of 2
}

TEST(TosaInterpreter, FloatToIntegerRoundsToEvenAndSaturates) {
  GraphMaker n;
  n.graph.setOutputs({n.make<tosa::Cast>(n.input({6}), std::vector<ir::Type>{{DType::Int8, {6}}})});
  const auto input = [](const std::vector<float>& values) { return Tensor::from<float>({6}, values); };
  EXPECT_EQ(run(n.graph, {input({0.5f, 1.5f, -2.5f, 300.0f, -1e30f, -0.7f})}),
            (std::vector<int64_t>{0, 2, -2, 127, -128, -1}));
  EXPECT_NE(failure(n.graph, {input({0, 0, NAN, 0, 0, 0})}).find("NaN"), std::string::npos);
}

TEST(TosaInterpreter, InterpretsASingleNode) {
  const ir::Graph graph =
      rescaleGraph({.from = DType::Int8, .to = DType::Int8, .shift = 30, .outputZero = 1}, 2);
  const ir::Node& node = *graph.firstNode();
  std::vector<Tensor> operands{list(DType::Int8, {1, 127})};
  for (size_t i = 1; i < node.operands().size(); ++i) operands.push_back(node.operands()[i]->constant());
  const auto results = require(tosa::interpretNode(node, operands));
  EXPECT_EQ(valuesOf(results[0]), (std::vector<int64_t>{2, 127}));
}

/// A literal, slow form of the specification's CONV2D, to check the kernel's tight loops.
int64_t convolved(const Tensor& x, const Tensor& w, int64_t inputZero, const std::array<int64_t, 4>& geometry,
                  int64_t oy, int64_t ox, int64_t oc) {
  const auto [pad, stride, dilation, unused] = geometry;
  (void)unused;
  int64_t sum = 0;
  for (int64_t ky = 0; ky < w.dim(1); ++ky) {
    for (int64_t kx = 0; kx < w.dim(2); ++kx) {
      const int64_t y = oy * stride - pad + ky * dilation, column = ox * stride - pad + kx * dilation;
      if (y < 0 || y >= x.dim(1) || column < 0 || column >= x.dim(2)) continue;
      for (int64_t c = 0; c < x.dim(3); ++c) {
        sum += (x.integerAt((y * x.dim(2) + column) * x.dim(3) + c) - inputZero) *
               w.integerAt(((oc * w.dim(1) + ky) * w.dim(2) + kx) * x.dim(3) + c);
      }
    }
  }
  return sum;
}

RC_GTEST_PROP(TosaInterpreter, ConvolutionEqualsItsDefinition, ()) {
  const int64_t kernel = *rc::gen::inRange<int64_t>(1, 4), dilation = *rc::gen::inRange<int64_t>(1, 3);
  const int64_t stride = *rc::gen::inRange<int64_t>(1, 4), pad = *rc::gen::inRange<int64_t>(0, 4);
  const int64_t steps = *rc::gen::inRange<int64_t>(1, 4), channels = *rc::gen::inRange<int64_t>(1, 5);
  const int64_t size = std::max<int64_t>(1, (kernel - 1) * dilation + 1 + stride * (steps - 1) - 2 * pad);
  if ((size + 2 * pad - (kernel - 1) * dilation - 1) % stride != 0 ||
      size + 2 * pad < (kernel - 1) * dilation + 1)
    RC_DISCARD("");
  const auto random = [](Shape shape) {
    Tensor tensor = Tensor::uninitialized(DType::Int8, std::move(shape));
    for (int64_t i = 0; i < tensor.numElements(); ++i) tensor.setIntegerAt(i, *rc::gen::arbitrary<int8_t>());
    return tensor;
  };
  const Tensor x = random({1, size, size, channels}), w = random({2, kernel, kernel, channels});
  GraphMaker n;
  ir::Value* y =
      n.make<tosa::Conv2d>(n.input(x.shape(), DType::Int8), n.b.constant(w),
                           n.b.constant(list(DType::Int32, {5})), n.b.constant(list(DType::Int8, {-3})),
                           n.b.constant(list(DType::Int8, {0})), ir::Ints{pad, pad, pad, pad},
                           ir::Ints{stride, stride}, ir::Ints{dilation, dilation}, false, DType::Int32);
  n.graph.setOutputs({y});
  const auto results = require(tosa::interpret(n.graph, std::vector<Tensor>{x}));
  int64_t i = 0;
  for (int64_t oy = 0; oy < y->dim(1); ++oy) {
    for (int64_t ox = 0; ox < y->dim(2); ++ox) {
      for (int64_t oc = 0; oc < 2; ++oc) {
        RC_ASSERT(results[0].integerAt(i++) ==
                  5 + convolved(x, w, -3, {pad, stride, dilation, 0}, oy, ox, oc));
      }
    }
  }
}

TEST(TosaInterpreter, WorkBeyondTheBudgetIsNotStarted) {
  const ir::Graph graph = rescaleGraph({.from = DType::Int8, .to = DType::Int32}, 1);
  const std::vector<Tensor> inputs{Tensor::zeros(DType::Int8, graph.inputs()[0]->shape())};
  WorkBudget enough(1'000'000);
  EXPECT_TRUE(tosa::interpret(graph, inputs, nullptr, &enough).ok());
  EXPECT_LT(enough.left(), 1'000'000);
  WorkBudget little(100);
  const std::string refused = errorOf(tosa::interpret(graph, inputs, nullptr, &little));
  EXPECT_NE(refused.find("the interpreter"), std::string::npos) << refused;
  EXPECT_NE(refused.find("--trusted"), std::string::npos);
}

}  // namespace
}  // namespace carina::test
