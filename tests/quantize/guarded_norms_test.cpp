// SPDX-License-Identifier: Apache-2.0
// Norms with a small number outside of the root: they become layer and RMS norms where the codes of the rows
// are far apart compared to it.
#include "quantize/guarded_norms.hpp"

#include <gtest/gtest.h>

#include "aten/executor.hpp"
#include "decompose/decompose.hpp"
#include "small_network.hpp"
#include "support/require.hpp"

namespace carina::quantize {
namespace {

/// The number of norms in (x - mean) / (std + guard), prepared for samples within [-reach, reach]. The
/// results stay near those of the network as written.
size_t normsOf(double guard, float reach, Precision precision) {
  Network n;
  Value* x = n.input({2, 8});
  Value* mean = n.make<aten::MeanDim>(x, Ints{-1}, true);
  Value* deviation = n.make<aten::StdCorrection>(x, Ints{-1}, int64_t{1}, true);
  Value* divisor = n.make<aten::AddScalar>(deviation, guard);
  n.done(n.make<aten::DivTensor>(n.make<aten::SubTensor>(x, mean), divisor));
  EXPECT_TRUE(decompose::forNpu(n.graph).ok());
  Options options;
  options.precision = precision;
  const std::vector<Sample> samples{{ramp({2, 8}, -reach, reach)}};
  const auto before = require(aten::execute(n.graph, samples[0]));
  EXPECT_TRUE(useGuardedNorms(n.graph, options, samples).ok());
  const auto after = require(aten::execute(n.graph, samples[0]));
  for (int64_t i = 0; i < before[0].numElements(); ++i)
    EXPECT_NEAR(before[0].realAt(i), after[0].realAt(i), 1e-4) << i;
  size_t norms = 0;
  for (const ir::Node* node : n.graph.nodes()) norms += ir::isa<aten::LayerNorm>(node) ? 1 : 0;
  return norms;
}

TEST(GuardedNorms, GuardsFarBelowTheCodesOfTheRows) {
  EXPECT_EQ(normsOf(1e-5, 4, Precision::Int8), 1u);
  EXPECT_EQ(normsOf(1e-5, 4, Precision::Int16x8), 1u);
}

TEST(GuardedNorms, GuardsNearTheCodesOfTheRowsStay) {
  EXPECT_EQ(normsOf(1e-5, 0.5, Precision::Int8), 1u);
  EXPECT_EQ(normsOf(1e-5, 0.5, Precision::Int16x8), 0u);
  EXPECT_EQ(normsOf(1e-2, 4, Precision::Int8), 0u);
}

TEST(GuardedNorms, FloatRowsKeepTheirGuards) {
  EXPECT_EQ(normsOf(1e-5, 4, Precision::Float), 0u);
}

}  // namespace
}  // namespace carina::quantize
