// SPDX-License-Identifier: Apache-2.0
// Operators on 32-bit codes: accurate to 2^-19 of the range of their results, for any codes.
#include "lower/wide.hpp"

#include <cmath>

#include "aten/executor.hpp"
#include "lower/lower.hpp"
#include "lower_case.hpp"
#include "support/require.hpp"
#include "tosa/interpreter.hpp"

namespace carina::lower::test {
namespace {

constexpr int64_t kMaxWideCode = int64_t{1} << 28;

/// A network with int16 codes as inputs and int32 codes as outputs.
struct WideNetwork : Network {
  /// Values from -reach to reach.
  Value* narrow(const Shape& shape, double reach) {
    Value* codes = input(shape, DType::Int16);
    return make<aten::DequantizePerTensor>(codes, reach / 32767, int64_t{0}, int64_t{-32767}, int64_t{32767},
                                           DType::Int16, std::nullopt);
  }
  Value* codes(Value* x, double low, double high) {
    scale = unitFor(std::max(std::abs(low), std::abs(high)), 28);
    return make<aten::QuantizePerTensor>(x, scale, int64_t{0}, limit(low), limit(high), DType::Int32);
  }
  Value* wide(Value* x, double low, double high) {
    Value* q = codes(x, low, high);
    return make<aten::DequantizePerTensor>(q, scale, int64_t{0}, limit(low), limit(high), DType::Int32,
                                           std::nullopt);
  }
  /// Values from low to high, with more than 16 bits.
  Value* shifted(const Shape& shape, double low, double high) {
    Value* x = narrow(shape, (high - low) / 2);
    return wide(make<aten::AddScalar>(x, (low + high) / 2, int64_t{1}), low, high);
  }
  int64_t limit(double x) const {
    return std::clamp(std::llround(x / scale), -static_cast<long long>(kMaxWideCode),
                      static_cast<long long>(kMaxWideCode));
  }

  double scale = 1;
};

struct WideCase {
  const char* name;
  std::function<Value*(WideNetwork&)> build;
  double low, high;            // of the results
  double tolerance = 0x1p-19;  // relative to the larger of them
};

void PrintTo(const WideCase& c, std::ostream* out) {
  *out << c.name;
}

Value* matmul(Network& n, Value* x, Value* y) {
  return n.make<aten::Matmul>(x, y);
}

Value* linear(WideNetwork& n, Value* x, int64_t channels, int64_t features) {
  Tensor codes = Tensor::uninitialized(DType::Int8, {channels, features});
  for (int64_t i = 0; i < codes.numElements(); ++i) codes.setIntegerAt(i, (i * 37 + i / 5) % 255 - 127);
  std::vector<float> scales;
  for (int64_t c = 0; c < channels; ++c) scales.push_back(0.01f / static_cast<float>(1 + c * c));
  Value* weight = n.make<aten::DequantizePerChannel>(
      n.graph.addConstant(std::move(codes)), n.graph.addConstant(Tensor::from(Shape{channels}, scales)),
      n.graph.addConstant(Tensor::zeros(DType::Int64, {channels})), int64_t{0}, int64_t{-127}, int64_t{127},
      DType::Int8, std::nullopt);
  return n.make<aten::Linear>(x, weight, n.weight({channels}));
}

const Shape kShape{3, 40};

const WideCase kWideCases[] = {
    {"add_narrow", [](WideNetwork& n) { return n.add(n.narrow(kShape, 1.7), n.narrow(kShape, 0.3)); }, -2, 2},
    {"add_wide", [](WideNetwork& n) { return n.add(n.shifted(kShape, -1, 3), n.narrow({40}, 0.3)); }, -4, 4},
    {"sub_alpha",
     [](WideNetwork& n) {
       return n.make<aten::SubTensor>(n.narrow(kShape, 2), n.shifted(kShape, -1, 3), 0.37);
     },
     -4, 4},
    {"rsub",
     [](WideNetwork& n) { return n.make<aten::RsubScalar>(n.shifted(kShape, -1, 3), 1.0, int64_t{1}); }, -4,
     4},
    {"neg", [](WideNetwork& n) { return n.make<aten::Neg>(n.shifted(kShape, -1, 3)); }, -3, 3},
    {"mul",
     [](WideNetwork& n) {
       return n.make<aten::MulTensor>(n.shifted(kShape, -1, 3), n.shifted({3, 1}, 0, 1));
     },
     -3, 3},
    {"mul_narrow",
     [](WideNetwork& n) { return n.make<aten::MulTensor>(n.narrow(kShape, 5), n.shifted(kShape, -1, 3)); },
     -15, 15},
    {"square", [](WideNetwork& n) { return n.make<aten::Square>(n.shifted(kShape, -1, 3)); }, 0, 9},
    {"scaled",
     [](WideNetwork& n) {
       return n.make<aten::MulScalar>(n.wide(n.make<aten::MulScalar>(n.shifted(kShape, -1, 3), -0.7), -3, 3),
                                      0.3);
     },
     -1, 1},
    {"beyond_the_codes", [](WideNetwork& n) { return n.add(n.shifted(kShape, -8, 8), n.narrow(kShape, 8)); },
     -1, 3},
    {"exp", [](WideNetwork& n) { return n.make<aten::Exp>(n.shifted(kShape, -18, 0)); }, 0, 1},
    {"sigmoid", [](WideNetwork& n) { return n.make<aten::Sigmoid>(n.shifted(kShape, -17, 17)); }, 0, 1},
    {"tanh", [](WideNetwork& n) { return n.make<aten::Tanh>(n.shifted(kShape, -9, 9)); }, -1, 1, 0x1p-18},
    {"tanh_narrow", [](WideNetwork& n) { return n.make<aten::Tanh>(n.narrow(kShape, 4)); }, -1, 1},
    {"erf", [](WideNetwork& n) { return n.make<aten::Erf>(n.shifted(kShape, -4, 4)); }, -1, 1},
    {"gelu", [](WideNetwork& n) { return n.make<aten::Gelu>(n.shifted(kShape, -6, 6), "none"); }, -6, 6},
    {"gelu_tanh", [](WideNetwork& n) { return n.make<aten::Gelu>(n.shifted(kShape, -6, 6), "tanh"); }, -6, 6},
    {"silu", [](WideNetwork& n) { return n.make<aten::Silu>(n.shifted(kShape, -9, 9)); }, -9, 9},
    {"log", [](WideNetwork& n) { return n.make<aten::Log>(n.shifted(kShape, 0.01, 20)); }, -5, 3,
     0x1p-17},  // a difference of one code in small arguments
    {"log2", [](WideNetwork& n) { return n.make<aten::Log2>(n.shifted(kShape, 0.01, 20)); }, -7, 5, 0x1p-17},
    {"log10", [](WideNetwork& n) { return n.make<aten::Log10>(n.shifted(kShape, 0.01, 20)); }, -2, 2,
     0x1p-17},
    {"log1p", [](WideNetwork& n) { return n.make<aten::Log1p>(n.shifted(kShape, 0, 2e4)); }, 0, 10, 0x1p-17},
    {"log1p_of_small", [](WideNetwork& n) { return n.make<aten::Log1p>(n.shifted(kShape, 0, 0.01)); }, 0,
     0.01, 0x1p-17},
    {"reciprocal", [](WideNetwork& n) { return n.make<aten::Reciprocal>(n.shifted(kShape, 0.9, 30)); }, 0,
     1.2},
    {"reciprocal_of_zero", [](WideNetwork& n) { return n.make<aten::Reciprocal>(n.shifted(kShape, 0, 30)); },
     0, 4},
    {"rsqrt", [](WideNetwork& n) { return n.make<aten::Rsqrt>(n.shifted(kShape, 0.2, 9)); }, 0, 3},
    {"sqrt", [](WideNetwork& n) { return n.make<aten::Sqrt>(n.shifted(kShape, 0, 9)); }, 0, 3},
    {"sum",
     [](WideNetwork& n) {
       return n.make<aten::SumDimIntList>(n.shifted(kShape, -1, 3), Ints{-1}, true, std::nullopt);
     },
     -120, 120},
    {"mean_of_columns",
     [](WideNetwork& n) {
       return n.make<aten::MeanDim>(n.shifted(kShape, -1, 3), Ints{0}, false, std::nullopt);
     },
     -3, 3},
    {"matmul_narrow",
     [](WideNetwork& n) {
       return matmul(n, n.narrow({2, 5, 8}, 3), n.narrow({2, 8, 6}, 2));
     },
     -40, 40},
    {"matmul_one_side",
     [](WideNetwork& n) {
       return matmul(n, n.shifted({2, 5, 8}, 0, 1), n.narrow({2, 8, 6}, 2));
     },
     -16, 16},
    {"matmul_wide",
     [](WideNetwork& n) {
       return matmul(n, n.shifted({2, 5, 8}, -1, 1), n.shifted({8, 6}, -2, 2));
     },
     -16, 16},
    {"linear_narrow",
     [](WideNetwork& n) {
       return linear(n, n.narrow({7, 24}, 3), 5, 24);
     },
     -60, 60},
    {"linear_wide",
     [](WideNetwork& n) {
       return linear(n, n.shifted({7, 24}, -1, 3), 5, 24);
     },
     -40, 40},
    {"layer_norm",
     [](WideNetwork& n) {
       return n.make<aten::LayerNorm>(n.narrow(kShape, 3), nullptr, nullptr, Ints{40}, 1e-5, false);
     },
     -4, 4},
    {"layer_norm_wide",
     [](WideNetwork& n) {
       return n.make<aten::LayerNorm>(n.shifted({3, 4, 10}, 2, 3), nullptr, nullptr, Ints{4, 10}, 1e-5,
                                      false);
     },
     -4, 4, 0x1p-18},
    {"layer_norm_large_eps",
     [](WideNetwork& n) {
       return n.make<aten::LayerNorm>(n.narrow(kShape, 3), nullptr, nullptr, Ints{40}, 20.0, false);
     },
     -4, 4},
    {"rms_norm",
     [](WideNetwork& n) { return n.make<aten::RmsNorm>(n.shifted(kShape, -1, 3), nullptr, Ints{40}, 1e-6); },
     -4, 4},
};

class WideOperators : public testing::TestWithParam<WideCase> {};

TEST_P(WideOperators, MatchFloatArithmetic) {
  const WideCase& c = GetParam();
  WideNetwork n;
  Value* result = n.codes(c.build(n), c.low, c.high);
  const double scale = n.scale;
  n.graph.setOutputs({result});
  const auto lowered = require(lowerToTosa(n.graph));
  std::vector<Tensor> inputs;
  for (const ir::Value* input : n.graph.inputs()) {
    Tensor codes = Tensor::uninitialized(DType::Int16, input->shape());
    uint32_t state = 7 + static_cast<uint32_t>(inputs.size());
    for (int64_t i = 0; i < codes.numElements(); ++i) {
      state = state * 1664525u + 1013904223u;
      codes.setIntegerAt(i, i == 0   ? 32767
                            : i == 1 ? -32767
                                     : static_cast<int64_t>(state >> 16) % 65535 - 32767);
    }
    inputs.push_back(std::move(codes));
  }
  const auto actual = require(tosa::interpret(lowered, inputs));
  const auto expected = require(aten::execute(n.graph, inputs));
  const double most = std::max(std::abs(c.low), std::abs(c.high));
  double worst = 0;
  for (int64_t i = 0; i < actual[0].numElements(); ++i)
    worst = std::max(worst, std::abs(actual[0].realAt(i) - expected[0].realAt(i)) * scale);
  EXPECT_LE(worst, c.tolerance * most) << "2^" << std::log2(worst / most);
}

INSTANTIATE_TEST_SUITE_P(All, WideOperators, testing::ValuesIn(kWideCases),
                         [](const auto& test) { return std::string(test.param.name); });

/// The factors of a layer with 48-bit sums have 15 bits: an error of half a 16-bit code at the ends of the
/// range.
TEST(SumsOf48Bits, AreRescaledToTheCode) {
  WideNetwork n;
  Value* y = linear(n, n.narrow({200, 24}, 3), 5, 24);
  const double scale = 31.7 / 32767;
  n.graph.setOutputs(
      {n.make<aten::QuantizePerTensor>(y, scale, int64_t{0}, int64_t{-32767}, int64_t{32767}, DType::Int16)});
  const auto lowered = require(lowerToTosa(n.graph));
  std::vector<Tensor> inputs{Tensor::uninitialized(DType::Int16, {200, 24})};
  uint32_t state = 3;
  for (int64_t i = 0; i < inputs[0].numElements(); ++i) {
    state = state * 1664525u + 1013904223u;
    inputs[0].setIntegerAt(i, static_cast<int64_t>(state >> 16) % 65535 - 32767);
  }
  const auto actual = require(tosa::interpret(lowered, inputs));
  const auto expected = require(aten::execute(n.graph, inputs));
  int64_t different = 0;
  for (int64_t i = 0; i < actual[0].numElements(); ++i) {
    const int64_t codes = std::abs(actual[0].integerAt(i) - expected[0].integerAt(i));
    EXPECT_LE(codes, 1);
    different += codes;
  }
  EXPECT_LE(different, 5);  // ties, and float32 rounding
}

}  // namespace
}  // namespace carina::lower::test
