// SPDX-License-Identifier: Apache-2.0
// Norms of rows: within one code of the simulation for rows of any magnitude, and recognised if a network
// spells them out.
#include <algorithm>

#include "decomposed_case.hpp"
#include "lower/lower.hpp"
#include "support/require.hpp"

namespace carina::lower::test {
namespace {

class Norms : public testing::TestWithParam<Case> {};

TEST_P(Norms, EqualTheSimulationInInt8) {
  Case narrow = GetParam();
  narrow.share = std::max(narrow.share, 0.06);  // the factor of a row has 9 to 15 bits
  quantize::Options options;
  quantize::Rule& rule = options.rules.emplace_back();  // also for rows that are small next to others
  rule.pattern = "*";
  rule.overrides.precision = quantize::Precision::Int8;
  check(narrow, options);
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
  return n.make<aten::MeanDim>(x, Ints{-1}, true, std::nullopt);
}
Value* shifted(Network& n, Value* x) {
  return n.make<aten::AddScalar>(x, 1e-5, int64_t{1});
}
Value* product(Network& n, Value* a, Value* b) {
  return n.make<aten::MulTensor>(a, b);
}

const Case kSpelled[] = {
    {"llama",
     [](Network& n) {
       Value* x = n.input({3, 8});
       Value* energy = meanOfRows(n, n.make<aten::PowTensorScalar>(x, 2.0));
       return product(n, n.weight({8}), product(n, x, n.make<aten::Rsqrt>(shifted(n, energy))));
     }},
    {"divided_by_the_root",
     [](Network& n) {
       Value* x = n.input({3, 8});
       Value* root = n.make<aten::Sqrt>(shifted(n, meanOfRows(n, product(n, x, x))));
       return n.make<aten::DivTensor>(x, root);
     }},
    {"power",
     [](Network& n) {
       Value* x = n.input({3, 8});
       Value* energy = meanOfRows(n, n.make<aten::Square>(x));
       return product(n, n.make<aten::PowTensorScalar>(shifted(n, energy), -0.5), x);
     }},
    {"centred",
     [](Network& n) {
       Value* x = n.input({3, 8});
       Value* centred = n.make<aten::SubTensor>(x, meanOfRows(n, x), int64_t{1});
       Value* again = n.make<aten::SubTensor>(x, meanOfRows(n, x), int64_t{1});
       Value* energy = meanOfRows(n, product(n, again, again));
       return product(n, centred, n.make<aten::Rsqrt>(shifted(n, energy)));
     }},
    {"sum_of_squares",
     [](Network& n) {
       Value* x = n.input({3, 8});
       Value* energy = n.make<aten::SumDimIntList>(product(n, x, x), Ints{-1}, true, std::nullopt);
       return product(n, x, n.make<aten::Rsqrt>(shifted(n, energy)));
     }},
    {"unit_length",  // F.normalize
     [](Network& n) {
       Value* x = n.input({3, 8});
       Value* length = n.make<aten::LinalgVectorNorm>(x, 2.0, Ints{1}, true);
       Value* wide = n.make<aten::Expand>(n.make<aten::ClampMin>(length, 1e-12), Ints{3, 8}, false);
       return n.make<aten::DivTensor>(x, wide);
     }},
    {"length_in_another_shape",
     [](Network& n) {
       Value* x = n.input({3, 8});
       Value* length = n.make<aten::LinalgVectorNorm>(x, 2.0, Ints{1}, false);
       return n.make<aten::DivTensor>(x, n.make<aten::Unsqueeze>(length, int64_t{1}));
     }},
    {"columns_without_eps",
     [](Network& n) {
       Value* x = n.input({3, 8});
       Value* energy = n.make<aten::MeanDim>(product(n, x, x), Ints{0}, true, std::nullopt);
       return product(n, x, n.make<aten::Rsqrt>(energy));
     }},
    {"unbiased_variance",
     [](Network& n) {
       Value* x = n.input({3, 8});
       Value* centred = n.make<aten::SubTensor>(x, meanOfRows(n, x), int64_t{1});
       Value* variance = n.make<aten::VarCorrection>(x, Ints{1}, int64_t{1}, true);
       return n.make<aten::DivTensor>(centred, n.make<aten::Sqrt>(shifted(n, variance)));
     }},
    {"all_elements",
     [](Network& n) {
       Value* x = n.input({3, 8});
       Value* centred = n.make<aten::SubTensor>(x, n.make<aten::Mean>(x), int64_t{1});
       return n.make<aten::DivTensor>(centred, n.make<aten::Std>(x, true));
     }},
    {"product_divided_by_the_length",
     [](Network& n) {
       Value *x = n.input({3, 8}), *y = n.input({3, 1});
       Value* energy = n.make<aten::SumDimIntList>(product(n, x, x), Ints{1}, true, std::nullopt);
       return n.make<aten::DivTensor>(product(n, y, x), n.make<aten::Sqrt>(shifted(n, energy)));
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

/// A factor computed from another tensor, or used for other rows than it was computed from, is not a norm.
/// Eps outside of the root depends on the codes (GuardedNorms), and rows can be too long.
TEST(SpelledNorms, OtherProductsAreUnchanged) {
  Network n;
  Value *x = n.input({8, 8}), *y = n.input({8, 8}), *line = n.input({1, 1100000});
  Value* factor = n.make<aten::Rsqrt>(shifted(n, meanOfRows(n, product(n, y, y))));
  Value* turned = n.make<aten::MeanDim>(product(n, x, x), Ints{1}, false, std::nullopt);
  Value* length = n.make<aten::LinalgVectorNorm>(x, 2.0, Ints{1}, true);
  Value* lineLength = n.make<aten::LinalgVectorNorm>(line, 2.0, Ints{1}, true);
  n.graph.setOutputs({product(n, x, factor), product(n, x, n.make<aten::Rsqrt>(shifted(n, turned))),
                      n.make<aten::DivTensor>(x, shifted(n, length)),
                      n.make<aten::DivTensor>(x, n.make<aten::ClampMin>(length, 0.5)),
                      n.make<aten::DivTensor>(line, lineLength)});
  ASSERT_TRUE(decompose::forNpu(n.graph).ok());
  for (const ir::Node* node : n.graph.nodes())
    EXPECT_FALSE(ir::isa<aten::RmsNorm>(node) || ir::isa<aten::LayerNorm>(node)) << node->opName();
}

TEST(Norms, RowsThatAreTooLongAreRefusedWithTheLimit) {
  Network n;
  n.graph.setOutputs(
      {n.make<aten::LayerNorm>(n.input({1, 1100000}), nullptr, nullptr, Ints{1100000}, 1e-5, false)});
  const auto partitioned = require(quantizeAndPartition(std::move(n.graph)));
  ASSERT_EQ(partitioned.refusals.size(), 1u);
  EXPECT_NE(partitioned.refusals[0].reason.find("1100000 elements exceeds the limit of 1048576"),
            std::string::npos)
      << partitioned.refusals[0].reason;
}

}  // namespace
}  // namespace carina::lower::test
