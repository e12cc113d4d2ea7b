// SPDX-License-Identifier: Apache-2.0
// Parts of concatenations whose range is much narrower than the whole.
#include "quantize/joins.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "aten/executor.hpp"
#include "quantize/calibrate.hpp"
#include "quantize/plan.hpp"
#include "small_network.hpp"
#include "support/require.hpp"

namespace carina::quantize {
namespace {

/// A detection head: y = sigmoid(x), split into boxes and classes; the boxes are scaled up, and both form one
/// output.
Network head(double scale) {
  Network n;
  Value* y = n.make<aten::Sigmoid>(n.input({1, 8, 6}));
  Value* box = n.make<aten::SliceTensor>(y, int64_t{2}, int64_t{0}, int64_t{2}, int64_t{1});
  Value* classes = n.make<aten::SliceTensor>(y, int64_t{2}, int64_t{2}, int64_t{6}, int64_t{1});
  Value* pixels = n.make<aten::MulTensor>(box, n.constant({1, 8, 1}, 1, static_cast<float>(scale)));
  n.done(n.make<aten::Cat>(std::vector<Value*>{pixels, classes}, int64_t{2}));
  return n;
}

Sample samples() {
  return {ramp({1, 8, 6}, -3, 3)};
}

Result<Joins> joins(const ir::Graph& graph, const Options& options = {}) {
  const Assignment assignment = assign(graph, options);
  return joinsOf(graph, assignment, annotate(graph, assignment, options), options, samples());
}

/// The options of a program that returns integers: nothing is joined in float.
Options integerOutputs() {
  Options options;
  options.outputs = BoundarySettings{Precision::Int8, {}, {}};
  return options;
}

Sqnr errorOf(const ir::Graph& source, const Quantized& quantized, int64_t last) {
  const auto expected = require(aten::execute(source, samples()));
  const auto actual = require(aten::execute(quantized.graph, samples()));
  // The last columns, which hold the classes.
  const Shape& shape = expected[0].shape();
  Tensor a = Tensor::zeros(DType::Float32, {shape[1], last}), b = a;
  for (int64_t row = 0; row < shape[1]; ++row) {
    for (int64_t column = 0; column < last; ++column) {
      const int64_t from = (row + 1) * shape[2] - last + column;
      const auto to = static_cast<size_t>(row * last + column);
      a.mutableAs<float>()[to] = static_cast<float>(expected[0].realAt(from));
      b.mutableAs<float>()[to] = static_cast<float>(actual[0].realAt(from));
    }
  }
  Sqnr sqnr;
  sqnr.add(a, b);
  return sqnr;
}

TEST(Joins, APartWithOtherReadersKeepsItsCodes) {
  Network n = head(400);
  const auto found = require(joins(n.graph, integerOutputs()));
  const ir::Node* cat = n.graph.outputs()[0]->producer();
  EXPECT_EQ(found.apart, (Reads{{cat, 1}}));  // the classes; nothing else reads the boxes
  EXPECT_TRUE(found.widely.empty());

  const ir::Graph source = n.graph.clone();
  const auto result = require(quantize(std::move(n.graph), integerOutputs(), std::array{samples()}));
  const auto expected = require(aten::execute(source, samples()));
  const auto actual = require(aten::execute(result.graph, samples()));
  Sqnr sqnr;
  sqnr.add(expected[0], actual[0]);
  EXPECT_GT(sqnr.decibels(), 35);  // 6 with one range for everything
}

/// Values observed while joins are analysed also count for calibration.
TEST(Joins, TheirSampleRunsOnce) {
  Network n = head(4);
  const std::array shown{samples(), Sample{ramp({1, 8, 6}, -5, 1)}};
  Options options = integerOutputs();
  options.compared = 2;
  options.fitWeights = options.correctBiases = true;
  ASSERT_TRUE(require(joins(n.graph, options)).outputs.has_value());
  const Assignment assignment = assign(n.graph, options);
  const Annotation annotation = annotate(n.graph, assignment, options);
  LayerInputs inputs(n.graph, annotation, {true, true}, shown.size());
  const auto expected = require(calibrate(n.graph, annotation, shown, false, inputs, nullptr, nullptr));
  const Plan plan = require(makePlan(n.graph, options, shown, {true, true}));
  ASSERT_EQ(plan.ranges.size(), expected.size());
  for (size_t g = 0; g < expected.size(); ++g) {
    EXPECT_EQ(plan.ranges[g].min, expected[g].min) << g;
    EXPECT_EQ(plan.ranges[g].max, expected[g].max) << g;
  }
  for (size_t i = 0; i < shown.size(); ++i)
    EXPECT_EQ(plan.outputs.at(i)[0], require(aten::execute(n.graph, shown[i]))[0]);
}

TEST(Joins, SimilarPartsShareARange) {
  Network n = head(4);
  const auto found = require(joins(n.graph, integerOutputs()));
  EXPECT_TRUE(found.apart.empty());
}

TEST(Joins, SixteenBitsHaveEnoughCodes) {
  Network n = head(400);
  Options options = integerOutputs();
  options.precision = options.outputs->precision.emplace(Precision::Int16x8);
  const auto found = require(joins(n.graph, options));
  EXPECT_TRUE(found.apart.empty());
}

/// Only the concatenation reads the narrow part, so separate codes would be lost one operator later.
TEST(Joins, APartThatOnlyTheConcatenationReadsSharesItsRange) {
  Network n;
  Value* small = n.make<aten::Sigmoid>(n.input({1, 8, 6}));
  Value* large = n.make<aten::MulTensor>(n.graph.inputs()[0], n.constant({1, 8, 1}, 50, 100));
  n.done(n.make<aten::Cat>(std::vector<Value*>{small, large}, int64_t{2}));
  const auto found = require(joins(n.graph, integerOutputs()));
  EXPECT_TRUE(found.apart.empty());
}

/// Float outputs have wide codes in both precisions, and so do the operators that only move them.
TEST(Joins, DifferentPartsOfAFloatOutputKeepTheirCodes) {
  for (const Precision precision : {Precision::Int8, Precision::Int16x8}) {
    Network n = head(400);
    n.done(n.make<aten::TransposeInt>(n.graph.outputs()[0], int64_t{0}, int64_t{1}));
    n.done(n.make<aten::TransposeInt>(n.graph.outputs()[0], int64_t{0}, int64_t{1}));
    Options options;
    options.precision = precision;
    const auto found = require(joins(n.graph, options));
    EXPECT_EQ(found.widely.size(), 3u);
    EXPECT_TRUE(found.apart.empty());
    const ir::Graph source = n.graph.clone();
    const auto result = require(quantize(std::move(n.graph), options, std::array{samples()}));
    EXPECT_TRUE(result.warnings.empty()) << result.warnings[0].message;
    EXPECT_GT(errorOf(source, result, 4).decibels(), precision == Precision::Int8 ? 40 : 80);
    const auto leaves = ir::producerAs<aten::DequantizePerTensor>(result.graph.outputs()[0]);
    ASSERT_TRUE(leaves);
    EXPECT_EQ(leaves.input()->dtype(), DType::Int32);
  }
}

TEST(Joins, SimilarPartsAndNamedOnesStayOnTheNpu) {
  Network like = head(4);
  const auto found = require(joins(like.graph));
  EXPECT_TRUE(found.widely.empty());
  Network n = head(400);
  Options options;
  Rule rule;
  rule.pattern = "cat";
  rule.overrides.precision = Precision::Int16x8;
  options.rules = {rule};
  const auto named = require(joins(n.graph, options));
  EXPECT_TRUE(named.widely.empty());
}

/// A warning names the parts that cannot be kept apart and the codes they have left.
TEST(Joins, PartsWithFewCodesAreNamed) {
  Network n = head(4000);
  const auto result = require(quantize(std::move(n.graph), integerOutputs(), std::array{samples()}));
  ASSERT_EQ(result.warnings.size(), 1u);
  EXPECT_NE(result.warnings[0].message.find("leaves 1 of its 2 parts few codes"), std::string::npos)
      << result.warnings[0].message;
  EXPECT_NE(result.warnings[0].message.find("has 0.1 of 256"), std::string::npos)
      << result.warnings[0].message;
}

/// The range of a part is that of all samples: the first one may cover only a fraction of it.
TEST(Joins, PartsThatAreLargeInOtherSamplesHaveTheirCodes) {
  Network n;
  Value* x = n.input({1, 8, 6});
  Value* size = n.make<aten::Abs>(x);
  Value* small = n.make<aten::LeScalar>(size, 1e-3);
  n.done(n.make<aten::WhereSelf>(small, n.constant({1}, INFINITY, INFINITY), size));
  const std::array shown{Sample{ramp({1, 8, 6}, -1, 1)}, Sample{ramp({1, 8, 6}, -90, 100)}};
  EXPECT_TRUE(require(quantize(std::move(n.graph), {}, shown)).warnings.empty());
}

/// The same for elementwise selection and scattering. The suggested remedy depends on the precision.
TEST(Joins, PartsOfSelectionsAndScattersAreNamed) {
  for (const bool choice : {true, false}) {
    for (const Precision precision : {Precision::Int8, Precision::Int16x8}) {
      Network n;
      Value* x = n.input({1, 8, 6});
      Value* small = n.make<aten::Sigmoid>(x);
      Value* large = n.make<aten::MulTensor>(x, n.constant({1, 8, 1}, 1, 9000));
      if (choice) {
        Value* positive = n.make<aten::GtScalar>(x, 0.0);
        n.done(n.make<aten::WhereSelf>(positive, large, small));
      } else {
        Value* row = n.make<aten::SliceTensor>(small, int64_t{1}, int64_t{0}, int64_t{1}, int64_t{1});
        n.done(n.make<aten::SliceScatter>(large, row, int64_t{1}, int64_t{0}, int64_t{1}, int64_t{1}));
      }
      Options options;
      options.precision = precision;
      const auto result = require(quantize(std::move(n.graph), options, std::array{samples()}));
      ASSERT_EQ(result.warnings.size(), 1u);
      EXPECT_NE(result.warnings[0].message.find("leaves 1 of its 2 parts few codes"), std::string::npos)
          << result.warnings[0].message;
      EXPECT_EQ(result.warnings[0].remedy.find("int16x8") != std::string::npos, precision == Precision::Int8);
    }
  }
}

}  // namespace
}  // namespace carina::quantize
