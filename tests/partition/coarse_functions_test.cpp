// SPDX-License-Identifier: Apache-2.0
// Functions of 16-bit codes that the program's tables do not follow.
#include "partition/coarse_functions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aten/executor.hpp"
#include "aten/ops.hpp"
#include "ir/verifier.hpp"
#include "support/graph_maker.hpp"
#include "support/require.hpp"

namespace carina::partition {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// A function of codes that represent -reach to reach; its results represent -1 to 1 times `most`.
template <typename Op>
ir::Graph functionOf(double reach, double most) {
  test::GraphMaker n;
  n.b = ir::Builder(n.graph, nullptr, std::make_shared<const ir::Location>(ir::Location{"f", "", ""}));
  ir::Value* x =
      n.make<aten::DequantizePerTensor>(n.input({1, 8}, DType::Int16), reach / 32767, int64_t{0},
                                        int64_t{-32767}, int64_t{32767}, DType::Int16, std::nullopt);
  n.graph.setOutputs({n.make<aten::QuantizePerTensor>(n.make<Op>(x), most / 32767, int64_t{0},
                                                      int64_t{-32767}, int64_t{32767}, DType::Int16)});
  return std::move(n.graph);
}

TEST(CoarseFunctions, AreNotThoseThatAreComputedAccurately) {
  EXPECT_THAT(coarseFunctions(functionOf<aten::Tanh>(4, 1)), IsEmpty());
  EXPECT_THAT(coarseFunctions(functionOf<aten::Floor>(100, 100)), IsEmpty());
  // In two parts, whose sines and cosines are looked up: not by interpolation.
  EXPECT_THAT(coarseFunctions(functionOf<aten::Sin>(3, 1)), IsEmpty());
  EXPECT_THAT(coarseFunctions(functionOf<aten::Sin>(1000, 1)), IsEmpty());
  EXPECT_THAT(coarseFunctions(functionOf<aten::Cos>(1000, 1)), IsEmpty());
}

TEST(CoarseFunctions, OneWithManyPolesIsReportedAndSimulated) {
  const ir::Graph graph = functionOf<aten::Tan>(100, 20);
  const std::vector<CoarseFunction> coarse = coarseFunctions(graph);
  ASSERT_THAT(coarse, SizeIs(1));
  EXPECT_GT(coarse[0].worst, 1000);
  EXPECT_GT(coarse[0].share, 0.1);
  const std::vector<Diagnostic> warnings = warningsOf(coarse);
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings[0].message, HasSubstr("aten.tan.default"));
  EXPECT_THAT(warnings[0].place, HasSubstr("f"));

  const ir::Graph simulation = withProgramsCodes(graph, coarse);
  EXPECT_TRUE(ir::verify(simulation).ok());
  const Tensor codes =
      Tensor::from(Shape{1, 8}, std::vector<int16_t>{-32767, -9999, -1, 0, 1, 77, 12345, 32767});
  const Tensor found = require(aten::execute(simulation, std::array{codes}))[0];
  for (int64_t i = 0; i < 8; ++i)
    EXPECT_EQ(found.integerAt(i), coarse[0].results.integerAt(codes.integerAt(i) + 32768));
}

/// A pole that few values come near is no reason for a warning.
TEST(CoarseFunctions, OneWithASinglePoleIsOnlySimulated) {
  const std::vector<CoarseFunction> coarse = coarseFunctions(functionOf<aten::Reciprocal>(200, 200));
  EXPECT_THAT(warningsOf(coarse), IsEmpty());
}

}  // namespace
}  // namespace carina::partition
