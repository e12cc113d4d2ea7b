// SPDX-License-Identifier: Apache-2.0
// Parts of concatenations that are much narrower than the whole.
#include "quantize/joins.hpp"

#include <gtest/gtest.h>

#include "aten/executor.hpp"
#include "small_network.hpp"

namespace carina::quantize {
namespace {

/// A detection head: y = sigmoid(x), split into boxes and classes; the boxes are scaled up, and both are one
/// result.
Network head(double scale) {
  Network n;
  Value* y = aten::Sigmoid::create(n.b, n.input({1, 8, 6})).output();
  Value* box = aten::SliceTensor::create(n.b, y, int64_t{2}, int64_t{0}, int64_t{2}, int64_t{1}).output();
  Value* classes = aten::SliceTensor::create(n.b, y, int64_t{2}, int64_t{2}, int64_t{6}, int64_t{1}).output();
  Value* pixels =
      aten::MulTensor::create(n.b, box, n.constant({1, 8, 1}, 1, static_cast<float>(scale))).output();
  n.done(aten::Cat::create(n.b, std::vector<Value*>{pixels, classes}, int64_t{2}).output());
  return n;
}

Sample samples() {
  return {ramp({1, 8, 6}, -3, 3)};
}

Result<Reads> narrow(const ir::Graph& graph, const Options& options = {}) {
  return narrowOperands(graph, annotate(graph, assign(graph, options), options), samples());
}

TEST(Joins, APartThatIsComputedWithKeepsItsCodes) {
  Network n = head(400);
  const auto found = narrow(n.graph);
  ASSERT_TRUE(found.ok()) << found.error().str();
  const ir::Node* cat = n.graph.outputs()[0]->producer();
  EXPECT_EQ(*found, (Reads{{cat, 1}}));  // the classes; the boxes are read by nobody else

  const ir::Graph source = n.graph.clone();
  const auto result = quantize(std::move(n.graph), {}, std::array{samples()});
  ASSERT_TRUE(result.ok()) << result.error().str();
  const auto expected = aten::execute(source, samples());
  const auto actual = aten::execute(result->graph, samples());
  ASSERT_TRUE(expected.ok() && actual.ok());
  Sqnr sqnr;
  sqnr.add((*expected)[0], (*actual)[0]);
  EXPECT_GT(sqnr.decibels(), 35);  // 6 with one range for everything
}

TEST(Joins, PartsThatAreAlikeHaveOneRange) {
  Network n = head(4);
  const auto found = narrow(n.graph);
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found->empty());
}

TEST(Joins, SixteenBitsHaveCodesEnough) {
  Network n = head(400);
  Options options;
  options.precision = Precision::Int16x8;
  const auto found = narrow(n.graph, options);
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found->empty());
}

/// Nobody but the concatenation reads the narrow part: codes of its own would only be given up one step
/// later.
TEST(Joins, APartOfTheWholeAloneHasItsCodes) {
  Network n;
  Value* small = aten::Sigmoid::create(n.b, n.input({1, 8, 6})).output();
  Value* large = aten::MulTensor::create(n.b, n.graph.inputs()[0], n.constant({1, 8, 1}, 50, 100)).output();
  n.done(aten::Cat::create(n.b, std::vector<Value*>{small, large}, int64_t{2}).output());
  const auto found = narrow(n.graph);
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found->empty());
}

}  // namespace
}  // namespace carina::quantize
