// SPDX-License-Identifier: Apache-2.0
// Integer quotients and remainders: equal to the simulation on the same codes.
#include "lower_case.hpp"

namespace carina::lower::test {
namespace {

class Division : public testing::TestWithParam<Case> {};

TEST_P(Division, EqualsFakeQuantInInt8) {
  check(GetParam(), {});
}

TEST_P(Division, EqualsFakeQuantIn16x8) {
  quantize::Options options;
  options.precision = quantize::Precision::Int16x8;
  check(GetParam(), options);
}

/// Constant divisors between 0.5 and 2.5.
Value* constant(Network& n, bool anyPositive, bool anyNegative) {
  std::vector<float> values;
  for (int i = 0; i < 28; ++i) {
    const bool minus = anyNegative && (!anyPositive || i % 3 == 0);
    values.push_back((minus ? -1.0f : 1.0f) * (0.5f + static_cast<float>(i * i % 29) / 14));
  }
  return n.graph.addConstant(Tensor::from({4, 1, 7}, values));
}
Value* positive(Network& n) {
  return constant(n, true, false);
}
Value* negative(Network& n) {
  return constant(n, false, true);
}
Value* ofBothSigns(Network& n) {
  return constant(n, true, true);
}
/// A computed divisor between 0.3 and 1.3.
Value* gate(Network& n) {
  Value* sigmoid = n.make<aten::Sigmoid>(n.input({1, 5, 7}));
  return n.make<aten::AddScalar>(sigmoid, 0.3, int64_t{1});
}
Value* dividend(Network& n) {
  return n.input({4, 5, 7});
}

const Case kQuotients[] = {
    {"floor_by_positive", [](Network& n) { return n.make<aten::FloorDivide>(dividend(n), positive(n)); }},
    {"floor_by_negative", [](Network& n) { return n.make<aten::FloorDivide>(dividend(n), negative(n)); }},
    {"floor_by_both_signs",
     [](Network& n) { return n.make<aten::FloorDivide>(dividend(n), ofBothSigns(n)); }},
    {"mode_floor", [](Network& n) { return n.make<aten::DivTensorMode>(dividend(n), positive(n), "floor"); }},
    {"mode_trunc_by_positive",
     [](Network& n) { return n.make<aten::DivTensorMode>(dividend(n), positive(n), "trunc"); }},
    {"mode_trunc_by_both_signs",
     [](Network& n) { return n.make<aten::DivTensorMode>(dividend(n), ofBothSigns(n), "trunc"); }},
    {"remainder_by_positive",
     [](Network& n) { return n.make<aten::RemainderTensor>(dividend(n), positive(n)); }, -1, 0.02},
    {"remainder_by_negative",
     [](Network& n) { return n.make<aten::RemainderTensor>(dividend(n), negative(n)); }, -1, 0.02},
    {"remainder_by_both_signs",
     [](Network& n) { return n.make<aten::RemainderTensor>(dividend(n), ofBothSigns(n)); }, -1, 0.02},
    {"fmod_by_positive", [](Network& n) { return n.make<aten::FmodTensor>(dividend(n), positive(n)); }, -1,
     0.02},
    {"floor_by_computed", [](Network& n) { return n.make<aten::FloorDivide>(dividend(n), gate(n)); }},
    {"fmod_by_both_signs", [](Network& n) { return n.make<aten::FmodTensor>(dividend(n), ofBothSigns(n)); },
     -1, 0.02},
};
INSTANTIATE_TEST_SUITE_P(Quotients, Division, testing::ValuesIn(kQuotients), nameOf);

/// A value divided by itself is 1 for all codes: the quotient is never slightly below.
TEST(Division, OfEqualValuesIsOne) {
  for (const auto precision : {quantize::Precision::Int8, quantize::Precision::Int16x8}) {
    const Case same{"same",
                    [](Network& n) {
                      Value* y = gate(n);
                      return n.make<aten::FloorDivide>(y, y);
                    },
                    -1, 0, 0};
    quantize::Options options;
    options.precision = precision;
    check(same, options);
  }
}

}  // namespace
}  // namespace carina::lower::test
