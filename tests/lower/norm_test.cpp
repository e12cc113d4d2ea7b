// SPDX-License-Identifier: Apache-2.0
// Norms of rows: within one code of the simulation whatever the rows' magnitudes, and recognised where a
// network spells them out.
#include "decomposed_case.hpp"
#include "lower/lower.hpp"

namespace carina::lower::test {
namespace {

Value* layerNorm(Network& n, Value* x, size_t dims = 1, double eps = 1e-5) {
  const Shape& shape = x->shape();
  Ints last(shape.end() - static_cast<std::ptrdiff_t>(dims), shape.end());
  return aten::LayerNorm::create(n.b, x, nullptr, nullptr, std::move(last), eps, false).output();
}

Value* rmsNorm(Network& n, Value* x, double eps = 1e-6) {
  return aten::RmsNorm::create(n.b, x, nullptr, Ints{x->shape().back()}, eps).output();
}

/// Rows whose magnitudes differ by 2^step from one to the next.
Value* unlikeRows(Network& n, int64_t rows, int64_t length, int step) {
  Tensor factors = Tensor::zeros(DType::Float32, {rows, 1});
  for (int64_t i = 0; i < rows; ++i)
    factors.mutableAs<float>()[static_cast<size_t>(i)] = std::ldexp(1.0f, -step * static_cast<int>(i));
  Value* x = n.input({rows, length});
  return aten::MulTensor::create(n.b, x, n.graph.addConstant(std::move(factors))).output();
}

const Case kNorms[] = {
    {"rows",
     [](Network& n) {
       return layerNorm(n, n.input({5, 48}));
     },
     0, 0.02},
    {"outlier_rows", [](Network& n) { return layerNorm(n, unlikeRows(n, 5, 48, 3)); }, 0, 0.02},
    {"rms",
     [](Network& n) {
       return rmsNorm(n, n.input({5, 48}));
     },
     0, 0.02},
    {"rms_of_outlier_rows", [](Network& n) { return rmsNorm(n, unlikeRows(n, 5, 48, 3)); }, 0, 0.02},
    {"two_elements",
     [](Network& n) {
       return rmsNorm(n, n.input({7, 2}));
     },
     0, 0.02},
    {"odd_length",
     [](Network& n) {
       return layerNorm(n, n.input({4, 37}));
     },
     0, 0.02},
    {"long_rows",
     [](Network& n) {
       return layerNorm(n, n.input({2, 20000}));
     },
     0, 0.02},
    {"two_dimensions",
     [](Network& n) {
       return layerNorm(n, n.input({2, 3, 5, 7}), 2);
     },
     0, 0.02},
    {"large_eps",
     [](Network& n) {
       return layerNorm(n, n.input({3, 32}), 1, 4.0);
     },
     0, 0.02},
    {"eps_beyond_the_rows",
     [](Network& n) {
       return rmsNorm(n, n.input({3, 32}), 30);
     },
     0, 0.02},
    {"zeros",  // some of the rows
     [](Network& n) {
       Value* x =
           aten::MulTensor::create(n.b, n.input({2, 16}),
                                   n.graph.addConstant(Tensor::from(Shape{2, 1}, std::vector<float>{1, 0})))
               .output();
       return layerNorm(n, x, 1, 1e-12);
     },
     0, 0.02},
    {"groups_channel_last",  // rows that do not lie along the channels
     [](Network& n) {
       Value* x = n.conv(n.input({1, 4, 6, 6}), {8, 4, 3, 3}, {1, 1}, {1, 1});
       return aten::GroupNorm::create(n.b, x, nullptr, nullptr, int64_t{4}, 1e-5, false).output();
     },
     -1, 0.05},
    {"instances",
     [](Network& n) {
       return aten::InstanceNorm::create(n.b, n.input({2, 3, 5, 5}), n.weight({3}), n.weight({3}), nullptr,
                                         nullptr, true, 0.1, 1e-5, false)
           .output();
     },
     -1, 0.05},
};

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
INSTANTIATE_TEST_SUITE_P(All, Norms, testing::ValuesIn(kNorms), nameOf);

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
  n.graph.setOutputs({layerNorm(n, n.input({1, 70000}))});
  const auto partitioned = quantizeAndPartition(std::move(n.graph));
  ASSERT_TRUE(partitioned.ok()) << partitioned.error().str();
  ASSERT_EQ(partitioned->refusals.size(), 1u);
  EXPECT_NE(partitioned->refusals[0].reason.find("70000 elements exceeds the limit of 65535"),
            std::string::npos)
      << partitioned->refusals[0].reason;
}

}  // namespace
}  // namespace carina::lower::test
