// SPDX-License-Identifier: Apache-2.0
// Operators that are rare in exports; the expected values are PyTorch's, or follow from the definition.
#include <cmath>
#include <limits>

#include "aten/compare.hpp"
#include "aten/one_op.hpp"
#include "support/require.hpp"

namespace carina::aten::test {
namespace {

Tensor matrix(const Shape& shape, const std::vector<float>& list) {
  return Tensor::from<float>(shape, list);
}

TEST(AtenUncommonKernels, EinsumMultipliesTransposesAndTakesDiagonals) {
  const Tensor a = matrix({2, 3}, {1, 2, 3, 4, 5, 6}), b = matrix({3, 2}, {1, 0, 0, 1, 1, 1});
  const auto einsum = [](const std::string& equation, std::vector<std::optional<Tensor>> operands) {
    auto result = runGroups("aten.einsum.default", {std::move(operands)}, {{"equation", equation}});
    EXPECT_TRUE(result.ok()) << equation << ": " << (result.ok() ? "" : result.error().str());
    return result.ok() ? result->front() : Tensor();
  };
  EXPECT_EQ(einsum("ij,jk->ik", {a, b}), matrix({2, 2}, {4, 5, 10, 11}));
  EXPECT_EQ(einsum("ij,jk", {a, b}), matrix({2, 2}, {4, 5, 10, 11}));
  EXPECT_EQ(einsum("ba", {a}), matrix({3, 2}, {1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(einsum("...i->...", {a}), floats({6, 15}));
  EXPECT_EQ(einsum("ii->i", {matrix({2, 2}, {1, 2, 3, 4})}), floats({1, 4}));
  EXPECT_EQ(einsum("ij->", {a}), Tensor::scalar(21.0f));
  EXPECT_FALSE(runGroups("aten.einsum.default", {{a, a}}, {{"equation", "ij,jk->ik"}}).ok());
  EXPECT_FALSE(runGroups("aten.einsum.default", {{a}}, {{"equation", "ij->iz"}}).ok());
}

TEST(AtenUncommonKernels, ProductsAddTheirFirstOperand) {
  const Tensor m = matrix({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(run("aten.addmv.default", {floats({1, 1}), m, floats({1, 1})}, {{"beta", "2"}}), floats({5, 9}));
  EXPECT_EQ(run("aten.addr.default", {m, floats({1, 2}), floats({3, 4})}), matrix({2, 2}, {4, 6, 9, 12}));
  const Tensor batch = matrix({2, 1, 1}, {2, 3});
  EXPECT_EQ(run("aten.addbmm.default", {matrix({1, 1}, {1}), batch, batch}), matrix({1, 1}, {14}));
}

TEST(AtenUncommonKernels, StacksOfDifferentRanks) {
  const Groups pair{{floats({1, 2}), floats({3, 4})}};
  const auto stackOf = [&](const std::string& op) {
    auto result = runGroups(op, pair);
    EXPECT_TRUE(result.ok()) << op;
    return result.ok() ? result->front() : Tensor();
  };
  EXPECT_EQ(stackOf("aten.hstack.default"), floats({1, 2, 3, 4}));
  EXPECT_EQ(stackOf("aten.vstack.default"), matrix({2, 2}, {1, 2, 3, 4}));
  EXPECT_EQ(stackOf("aten.column_stack.default"), matrix({2, 2}, {1, 3, 2, 4}));
  EXPECT_EQ(stackOf("aten.dstack.default"), matrix({1, 2, 2}, {1, 3, 2, 4}));
}

TEST(AtenUncommonKernels, OrderStatistics) {
  EXPECT_EQ(run("aten.median.default", {floats({4, 1, 3, 2})}), Tensor::scalar(2.0f));
  auto kth = require(runGroups("aten.kthvalue.default", {{floats({4, 1, 3})}}, {{"k", "2"}}));
  EXPECT_EQ(kth[0], Tensor::scalar(3.0f));
  EXPECT_EQ(kth[1].integerAt(0), 2);
  auto running = require(runGroups("aten.cummax.default", {{floats({1, 3, 2, 3})}}, {{"dim", "0"}}));
  EXPECT_EQ(running[0], floats({1, 3, 3, 3}));
  EXPECT_EQ(running[1], longs({0, 1, 1, 3}));
  auto both = require(runGroups("aten.aminmax.default", {{floats({2, -1, 5})}}));
  EXPECT_EQ(both[0], Tensor::scalar(-1.0f));
  EXPECT_EQ(both[1], Tensor::scalar(5.0f));
  EXPECT_EQ(run("aten.count_nonzero.default", {floats({0, 1, 2})}).integerAt(0), 2);
  EXPECT_EQ(run("aten.nanmean.default", {floats({1, std::numeric_limits<float>::quiet_NaN(), 3})}),
            Tensor::scalar(2.0f));
  EXPECT_EQ(run("aten.trace.default", {matrix({2, 3}, {1, 2, 3, 4, 5, 6})}), Tensor::scalar(6.0f));
  EXPECT_TRUE(close(run("aten.logcumsumexp.default", {floats({0, 0, 0})}, {{"dim", "0"}}),
                    floats({0, std::log(2.0f), std::log(3.0f)})));
}

TEST(AtenUncommonKernels, Lookups) {
  EXPECT_EQ(run("aten.bucketize.Tensor", {floats({1, 2, 2.5f}), floats({1, 2, 3})}), longs({0, 1, 2}));
  EXPECT_EQ(run("aten.bucketize.Tensor", {floats({1, 2, 2.5f}), floats({1, 2, 3})}, {{"right", "True"}}),
            longs({1, 2, 2}));
  EXPECT_EQ(run("aten.take.default", {matrix({2, 2}, {1, 2, 3, 4}), longs({3, -4})}), floats({4, 1}));
  EXPECT_EQ(run("aten.index_fill.int_Scalar", {matrix({2, 2}, {1, 2, 3, 4}), longs({1})},
                {{"dim", "1"}, {"value", "9"}}),
            matrix({2, 2}, {1, 9, 3, 9}));
  const Tensor mask = run("aten.gt.Scalar", {floats({1, 5, 6})}, {{"other", "2"}});
  EXPECT_EQ(run("aten.masked_scatter.default", {floats({0, 0, 0}), mask, floats({7, 8, 9})}),
            floats({0, 7, 8}));
  EXPECT_FALSE(runGroups("aten.take.default", {{floats({1})}, {longs({1})}}).ok());
}

TEST(AtenUncommonKernels, WindowsUnfoldAndFoldBack) {
  const Tensor image = matrix({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const Attributes windows{
      {"kernel_size", "[2, 2]"}, {"dilation", "[1, 1]"}, {"padding", "[0, 0]"}, {"stride", "[1, 1]"}};
  const Tensor columns = run("aten.im2col.default", {image}, windows);
  EXPECT_EQ(columns, matrix({1, 4, 4}, {1, 2, 4, 5, 2, 3, 5, 6, 4, 5, 7, 8, 5, 6, 8, 9}));
  Attributes fold = windows;
  fold.emplace_back("output_size", "[3, 3]");
  EXPECT_EQ(run("aten.col2im.default", {columns}, fold),
            matrix({1, 1, 3, 3}, {1, 4, 3, 8, 20, 12, 7, 16, 9}));
}

TEST(AtenUncommonKernels, Distances) {
  const Tensor rows = matrix({2, 2}, {0, 0, 3, 4});
  EXPECT_TRUE(close(run("aten.cdist.default", {rows, rows}), matrix({2, 2}, {0, 5, 5, 0})));
  EXPECT_TRUE(close(run("aten.pdist.default", {rows}, {{"p", "1.0"}}), floats({7})));
  EXPECT_TRUE(
      close(run("aten.cosine_similarity.default", {rows, matrix({2, 2}, {1, 0, 3, 4})}), floats({0, 1})));
  EXPECT_TRUE(close(run("aten.pairwise_distance.default", {rows, matrix({2, 2}, {0, 2, 3, 4})}),
                    floats({1.999999f, 1.4142e-6f})));
}

TEST(AtenUncommonKernels, SpecialFunctions) {
  EXPECT_TRUE(
      close(run("aten.erfinv.default", {floats({0.5f, -0.9f, 0})}), floats({0.476936f, -1.163087f, 0})));
  EXPECT_TRUE(close(run("aten.digamma.default", {floats({1, 0.5f, -0.5f})}),
                    floats({-0.577216f, -1.963510f, 0.036490f})));
  EXPECT_TRUE(close(run("aten.i0.default", {floats({0, 1, -3})}), floats({1, 1.266066f, 4.880793f})));
  EXPECT_EQ(run("aten.heaviside.default", {floats({-1, 0, 2}), floats({5, 5, 5})}), floats({0, 5, 1}));
  EXPECT_EQ(values<uint8_t>(run("aten.isclose.default", {floats({1, 1}), floats({1.000001f, 1.1f})})),
            (std::vector<uint8_t>{1, 0}));
}

TEST(AtenUncommonKernels, RotationsAndAntialiasing) {
  const Tensor m = matrix({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run("aten.rot90.default", {m}), matrix({3, 2}, {3, 6, 2, 5, 1, 4}));
  EXPECT_EQ(run("aten.rot90.default", {m}, {{"k", "-1"}}), matrix({3, 2}, {4, 1, 5, 2, 6, 3}));
  EXPECT_EQ(run("aten.diag.default", {m}, {{"diagonal", "1"}}), floats({2, 6}));
  const Tensor line = matrix({1, 1, 1, 4}, {0, 1, 2, 3});
  const Tensor half = run("aten._upsample_bilinear2d_aa.vec", {line},
                          {{"output_size", "[1, 2]"}, {"align_corners", "False"}, {"scale_factors", "None"}});
  EXPECT_TRUE(close(half, matrix({1, 1, 1, 2}, {0.7142857f, 2.2857144f})));
}

TEST(AtenUncommonKernels, BatchStatisticsAndDropout) {
  auto normed =
      require(runGroups("aten._native_batch_norm_legit.no_stats", {{matrix({2, 1, 1}, {1, 3})}, {}, {}},
                        {{"training", "True"}, {"momentum", "0.1"}, {"eps", "0.0"}}));
  EXPECT_TRUE(close(normed[0], matrix({2, 1, 1}, {-1, 1})));
  EXPECT_TRUE(close(normed[1], floats({2})));
  auto dropout = require(
      runGroups("aten.native_dropout.default", {{floats({1, 2})}}, {{"p", "0.5"}, {"train", "False"}}));
  EXPECT_EQ(dropout[0], floats({1, 2}));
  EXPECT_EQ(values<uint8_t>(dropout[1]), (std::vector<uint8_t>{1, 1}));
  EXPECT_FALSE(
      runGroups("aten.native_dropout.default", {{floats({1, 2})}}, {{"p", "0.5"}, {"train", "True"}}).ok());
}

}  // namespace
}  // namespace carina::aten::test
