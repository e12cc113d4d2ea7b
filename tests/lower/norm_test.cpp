// SPDX-License-Identifier: Apache-2.0
// Norms of rows: within one code of the simulation whatever the rows' magnitudes, and recognised where a
// network spells them out.
#include "decomposed_case.hpp"
#include "lower/lower.hpp"

namespace carina::lower::test {
namespace {

class Norms : public testing::TestWithParam<Case> {};

TEST_P(Norms, EqualTheSimulationInInt8) {
  check(GetParam(), {});
}
TEST_P(Norms, EqualTheSimulationIn16x8) {
  quantize::Options options;
  options.precision = quantize::Precision::Int16x8;
  Case wide = GetParam();
  wide.share = 0.35;  // the factor of a row has 14 bits
  wide.largest = 2;
  check(wide, options);
}
INSTANTIATE_TEST_SUITE_P(All, Norms, testing::ValuesIn(casesIn("norms")), nameOf);

Value* meanOfRows(Network& n, Value* x) {
  return aten::MeanDim::create(n.b, x, Ints{-1}, true, std::nullopt).output();
}
Value* shifted(Network& n, Value* x) {
  return aten::AddScalar::create(n.b, x, 1e-5, int64_t{1}).output();
}
Value* product(Network& n, Value* a, Value* b) {
  return aten::MulTensor::create(n.b, a, b).output();
}

const Case kSpelled[] = {
    {"llama",
     [](Network& n) {
       Value* x = n.input({3, 8});
       Value* energy = meanOfRows(n, aten::PowTensorScalar::create(n.b, x, 2.0).output());
       return product(n, n.weight({8}), product(n, x, aten::Rsqrt::create(n.b, shifted(n, energy)).output()));
     }},
    {"divided_by_the_root",
     [](Network& n) {
       Value* x = n.input({3, 8});
       Value* root = aten::Sqrt::create(n.b, shifted(n, meanOfRows(n, product(n, x, x)))).output();
       return aten::DivTensor::create(n.b, x, root).output();
     }},
    {"power",
     [](Network& n) {
       Value* x = n.input({3, 8});
       Value* energy = meanOfRows(n, aten::Square::create(n.b, x).output());
       return product(n, aten::PowTensorScalar::create(n.b, shifted(n, energy), -0.5).output(), x);
     }},
    {"centred",
     [](Network& n) {
       Value* x = n.input({3, 8});
       Value* centred = aten::SubTensor::create(n.b, x, meanOfRows(n, x), int64_t{1}).output();
       Value* again = aten::SubTensor::create(n.b, x, meanOfRows(n, x), int64_t{1}).output();
       Value* energy = meanOfRows(n, product(n, again, again));
       return product(n, centred, aten::Rsqrt::create(n.b, shifted(n, energy)).output());
     }},
};

class SpelledNorms : public testing::TestWithParam<Case> {};

TEST_P(SpelledNorms, KeepTheResult) {
  checkKeepsTheResult(GetParam());
}
TEST_P(SpelledNorms, BecomeOneOperator) {
  Network n;
  n.graph.setOutputs({GetParam().build(n)});
  ASSERT_TRUE(decompose::forNpu(n.graph).ok());
  int norms = 0;
  for (const ir::Node* node : n.graph.nodes()) {
    norms += ir::isa<aten::RmsNorm>(node) || ir::isa<aten::LayerNorm>(node) ? 1 : 0;
    EXPECT_FALSE(ir::isa<aten::Rsqrt>(node) || ir::isa<aten::MeanDim>(node)) << node->opName();
  }
  EXPECT_EQ(norms, 1);
}
INSTANTIATE_TEST_SUITE_P(All, SpelledNorms, testing::ValuesIn(kSpelled), nameOf);

/// The factor of another tensor, of other rows or without an eps is no norm.
TEST(SpelledNorms, OthersStayAsTheyAre) {
  Network n;
  Value *x = n.input({3, 8}), *y = n.input({3, 8});
  Value* factor = aten::Rsqrt::create(n.b, shifted(n, meanOfRows(n, product(n, y, y)))).output();
  Value* columns = aten::MeanDim::create(n.b, product(n, x, x), Ints{0}, true, std::nullopt).output();
  Value* without = aten::Rsqrt::create(n.b, meanOfRows(n, product(n, x, x))).output();
  n.graph.setOutputs({product(n, x, factor),
                      product(n, x, aten::Rsqrt::create(n.b, shifted(n, columns)).output()),
                      product(n, x, without)});
  ASSERT_TRUE(decompose::forNpu(n.graph).ok());
  for (const ir::Node* node : n.graph.nodes())
    EXPECT_FALSE(ir::isa<aten::RmsNorm>(node) || ir::isa<aten::LayerNorm>(node)) << node->opName();
}

TEST(Norms, RowsThatAreTooLongAreRefusedWithTheLimit) {
  Network n;
  n.graph.setOutputs(
      {aten::LayerNorm::create(n.b, n.input({1, 70000}), nullptr, nullptr, Ints{70000}, 1e-5, false)
           .output()});
  const auto partitioned = quantizeAndPartition(std::move(n.graph));
  ASSERT_TRUE(partitioned.ok()) << partitioned.error().str();
  ASSERT_EQ(partitioned->refusals.size(), 1u);
  EXPECT_NE(partitioned->refusals[0].reason.find("70000 elements exceeds the limit of 65535"),
            std::string::npos)
      << partitioned->refusals[0].reason;
}

}  // namespace
}  // namespace carina::lower::test
