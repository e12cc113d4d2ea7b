// SPDX-License-Identifier: Apache-2.0
// Rules: parsing rules files, which operators a rule matches, and mixed precision in the graph.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "aten/executor.hpp"
#include "quantize/annotate.hpp"
#include "quantize/quantize.hpp"
#include "quantize/rules_file.hpp"
#include "small_network.hpp"
#include "support/require.hpp"

namespace carina::quantize {
namespace {

using testing::HasSubstr;

Rule rule(Rule::By by, const std::string& pattern, Precision precision) {
  Rule result;
  result.by = by;
  result.pattern = pattern;
  result.overrides.precision = precision;
  result.place = "rules[0]";
  return result;
}

Result<Quantized> quantizedWith(Network& network, const Options& options) {
  std::vector<Sample> samples(1);
  for (const Value* input : network.graph.inputs()) samples[0].push_back(ramp(input->shape(), -1, 2));
  return quantize(std::move(network.graph), options, samples);
}

std::string refusal(std::string_view text) {
  const auto file = parseRules(text);
  return file.ok() ? "accepted" : file.error().str();
}

TEST(RulesFile, Everything) {
  const auto file = require(parseRules(R"({
    // most of the network
    "global": { "precision": "int8", "weights": "per-tensor", "activations": "symmetric", "observer": "percentile:99.9" },
    "io": { "inputs": { "type": "int8", "activations": "symmetric" }, "outputs": { "type": "float" } },
    "rules": [
      { "op": "conv2d", "precision": "int16x8" },
      { "module": "encoder.*", "observer": "minmax" },
      { "node": "softmax*", "precision": "none" }
    ],
    "equalize": true,
    "bias_correction": false
  })"));
  EXPECT_EQ(file.global.precision, Precision::Int8);
  EXPECT_EQ(file.global.perChannelWeights, false);
  EXPECT_EQ(file.global.scheme, Scheme::Symmetric);
  EXPECT_EQ(file.global.observer->kind, ObserverKind::Percentile);
  EXPECT_EQ(file.inputs->precision, Precision::Int8);
  EXPECT_EQ(file.inputs->scheme, Scheme::Symmetric);
  EXPECT_EQ(file.outputs->precision, Precision::Float);
  ASSERT_EQ(file.rules.size(), 3u);
  EXPECT_EQ(file.rules[0].by, Rule::By::Operator);
  EXPECT_EQ(file.rules[0].overrides.precision, Precision::Int16x8);
  EXPECT_EQ(file.rules[1].by, Rule::By::Module);
  EXPECT_EQ(file.rules[1].pattern, "encoder.*");
  EXPECT_FALSE(file.rules[1].overrides.precision.has_value());
  EXPECT_EQ(file.rules[2].overrides.precision, Precision::Float);
  EXPECT_EQ(file.rules[2].place, "rules[2]");
  EXPECT_EQ(file.equalize, true);
  EXPECT_EQ(file.correctBiases, false);
}

TEST(RulesFile, ModuleTypes) {
  const auto file =
      require(parseRules(R"({"rules": [{"module_type": "torch.nn.LayerNorm", "precision": "int16x8"}]})"));
  EXPECT_EQ(file.rules[0].by, Rule::By::ModuleType);
  EXPECT_EQ(file.rules[0].pattern, "torch.nn.LayerNorm");
}

TEST(RulesFile, ErrorsSayWhere) {
  EXPECT_THAT(refusal("{\n  \"rules\": [,]\n}"), HasSubstr("line 2, column 13"));
  EXPECT_THAT(refusal(""), HasSubstr("line 1"));
  EXPECT_THAT(refusal("[]"), HasSubstr("not an object"));
  EXPECT_THAT(refusal(R"({"rulez": []})"), HasSubstr("rulez: there is no setting 'rulez' here"));
  EXPECT_THAT(refusal(R"({"rules": {}})"), HasSubstr("rules: is object, not an array"));
  EXPECT_THAT(refusal(R"({"rules": [{"op": "relu", "precision": "int4"}]})"),
              HasSubstr("rules[0].precision: there is no 'int4'\n  choices: int8, int16x8, none"));
  EXPECT_THAT(refusal(R"({"rules": [{"op": "relu", "precision": 8}]})"),
              HasSubstr("rules[0].precision: is number"));
  EXPECT_THAT(refusal(R"({"rules": [{"op": "relu", "node": "relu", "precision": "int8"}]})"),
              HasSubstr("rules[0]: names 2 patterns"));
  EXPECT_THAT(refusal(R"({"rules": [{"precision": "int8"}]})"), HasSubstr("rules[0]: names 0 patterns"));
  EXPECT_THAT(refusal(R"({"rules": [{"op": "", "precision": "int8"}]})"), HasSubstr("rules[0].op: is empty"));
  EXPECT_THAT(refusal(R"({"rules": [{"op": "relu"}]})"), HasSubstr("rules[0]: changes nothing"));
  EXPECT_THAT(refusal(R"({"rules": [{"op": "relu", "observer": "percentile:200"}]})"),
              HasSubstr("rules[0].observer: the percentage"));
  EXPECT_THAT(refusal(R"({"global": {"precision": "int16x8", "activations": "affine"}})"),
              HasSubstr("symmetric"));
  EXPECT_THAT(refusal(R"({"global": {"precision": "int8", "precision": "int16x8"}})"),
              HasSubstr("contains 'precision' twice"));
  for (const char* bits : {"1", "9", "4.5", "\"int4\"", "-4", "99999999999999999999"}) {
    EXPECT_THAT(refusal(fmt::format(R"({{"rules": [{{"op": "relu", "weight_bits": {}}}]}})", bits)),
                HasSubstr("rules[0].weight_bits: expected a whole number from 2 to 8, got "));
  }
  EXPECT_THAT(refusal(R"({"equalize": "yes"})"), HasSubstr("equalize: is string, not true or false"));
  EXPECT_THAT(refusal(R"({"io": {"inputs": {"type": "uint8"}}})"),
              HasSubstr("io.inputs.type: there is no 'uint8'"));
  EXPECT_THAT(refusal(std::string(100, '[') + std::string(100, ']')), HasSubstr("nested too deeply"));
  EXPECT_THAT(refusal(std::string((size_t{1} << 20) + 1, ' ')), HasSubstr("larger than"));
  EXPECT_THAT(refusal("{\"rules\": \"\xff\"}"), HasSubstr("is not valid JSON"));
}

TEST(RulesFile, RoundTripsThroughText) {
  RulesFile file;
  EXPECT_TRUE(parseRules(rulesText(file)).ok());
  file.global.precision = Precision::Int8;
  file.global.perChannelWeights = false;
  file.global.weightBits = 4;
  file.global.scheme = Scheme::Symmetric;
  file.global.observer = ObserverSettings(ObserverKind::Percentile, 99.5);
  file.inputs = BoundarySettings{Precision::Int8, Scheme::Affine, ObserverSettings(ObserverKind::MinMax)};
  file.outputs = BoundarySettings{Precision::Float, {}, {}};
  file.rules = {rule(Rule::By::Node, "conv2d_\"1\"", Precision::Int16x8),
                rule(Rule::By::ModuleType, "LayerNorm", Precision::Float)};
  file.rules[1].overrides.observer = ObserverSettings(ObserverKind::MovingAverage);
  file.equalize = true;
  file.fitWeights = false;
  const std::string text = rulesText(file, "one line\nand another");
  EXPECT_THAT(text, testing::StartsWith("// one line\n// and another\n{\n"));
  const auto read = parseRules(text);
  ASSERT_TRUE(read.ok()) << read.error().str() << text;
  EXPECT_EQ(rulesText(*read), rulesText(file));
  EXPECT_EQ(read->global.observer, file.global.observer);
  EXPECT_EQ(read->global.weightBits, 4);
  EXPECT_EQ(read->inputs->scheme, Scheme::Affine);
  ASSERT_EQ(read->rules.size(), 2u);
  EXPECT_EQ(read->rules[0].pattern, "conv2d_\"1\"");
  EXPECT_EQ(read->rules[1].overrides.precision, Precision::Float);
  EXPECT_EQ(read->equalize, true);
  EXPECT_EQ(read->fitWeights, false);
  EXPECT_FALSE(read->correctBiases.has_value());
}

/// Two convolutions with a max pool between them; the second in module "head".
struct TwoLayers : Network {
  Value *first, *pool, *second;
  TwoLayers() {
    in("conv2d", "body.conv");
    first = conv(input({1, 2, 8, 8}), 4);
    in("max_pool2d", "body.pool");
    pool = make<aten::MaxPool2d>(first, Ints{2, 2}, Ints{2, 2}, Ints{0, 0}, Ints{1, 1}, false);
    in("conv2d_1", "head.conv");
    second = done(conv(pool, 3));
  }
};

Precision precisionOf(const Assignment& assignment, const Value* value) {
  return assignment.of(*value->producer()).settings.precision;
}

TEST(Assign, ByPythonModuleClass) {
  const TwoLayers n;
  Options options;
  options.moduleClasses = {{"", "net.Net"},
                           {"body", "net.Body"},
                           {"head", "net.Head"},
                           {"head.conv", "torch.nn.modules.conv.Conv2d"}};
  for (const char* pattern :
       {"Head", "net.Head", "H?ad", "Conv2d", "torch.nn.Conv2d", "torch.nn.modules.conv.*"}) {
    options.rules = {rule(Rule::By::ModuleType, pattern, Precision::Int16x8)};
    const Assignment assignment = assign(n.graph, options);
    EXPECT_TRUE(assignment.warnings.empty()) << pattern;
    EXPECT_EQ(precisionOf(assignment, n.first), Precision::Int8) << pattern;
    EXPECT_EQ(precisionOf(assignment, n.second), Precision::Int16x8) << pattern;
  }
  options.rules = {rule(Rule::By::ModuleType, "Net", Precision::Int16x8)};
  EXPECT_EQ(precisionOf(assign(n.graph, options), n.first), Precision::Int16x8) << "is in the root module";
  options.rules = {rule(Rule::By::ModuleType, "torch.nn.Conv", Precision::Int16x8)};
  ASSERT_EQ(assign(n.graph, options).warnings.size(), 1u);
  EXPECT_EQ(assign(n.graph, options).warnings[0].message,
            "no module type of the network matches 'torch.nn.Conv'");
}

TEST(Assign, ByModuleNodeAndOperator) {
  const TwoLayers n;
  Options options;
  options.rules = {rule(Rule::By::Module, "head", Precision::Int16x8)};
  EXPECT_EQ(precisionOf(assign(n.graph, options), n.second), Precision::Int16x8);
  EXPECT_EQ(precisionOf(assign(n.graph, options), n.first), Precision::Int8);
  options.rules = {rule(Rule::By::Node, "conv2d_?", Precision::Int16x8)};
  EXPECT_EQ(precisionOf(assign(n.graph, options), n.second), Precision::Int16x8);
  EXPECT_EQ(precisionOf(assign(n.graph, options), n.first), Precision::Int8);
  options.rules = {rule(Rule::By::Operator, "conv2d", Precision::Int16x8)};
  const Assignment all = assign(n.graph, options);
  EXPECT_EQ(precisionOf(all, n.second), Precision::Int16x8);
  EXPECT_EQ(precisionOf(all, n.first), Precision::Int16x8);
  EXPECT_EQ(precisionOf(all, n.pool), Precision::Int16x8) << "follows its input";
  EXPECT_TRUE(all.warnings.empty());
}

TEST(Quantize, InputsReadInFloatHaveTheCodesThatAreAskedFor) {
  Network n;
  n.graph.setOutputs({n.make<aten::Atan2>(n.input({1, 4}), n.constant({1, 4}, 0.1f, 1))});
  Options options;
  options.inputs = BoundarySettings{Precision::Int8, {}, {}};
  const Tensor sample = Tensor::from(Shape{1, 4}, std::vector<float>{-1, 0, 1, 3});
  const auto quantized = require(quantize(std::move(n.graph), options, std::array{Sample{sample}}));
  const auto& uses = quantized.graph.inputs()[0]->uses();
  ASSERT_EQ(uses.size(), 1U);
  EXPECT_TRUE(ir::isa<aten::QuantizePerTensor>(uses[0].node));
}

TEST(Assign, InputsThatAreOnlyComparedHaveSixteenBits) {
  Network n;
  Value *x = n.input({2, 3}), *y = n.input({2, 3});
  Value* limit = n.constant({1}, 0.5f, 0.5f);
  Value* compared = n.make<aten::GtTensor>(x, limit);
  Value* scaled = n.make<aten::GtTensor>(y, limit);
  Value* result = n.make<aten::MulScalar>(y, 2.0);
  n.graph.setOutputs({compared, scaled, result});
  Options options;
  const auto precision = [&](const Value* value) {
    return assign(n.graph, options).of(*value->producer()).settings.precision;
  };
  EXPECT_EQ(precision(compared), Precision::Int16x8);
  EXPECT_EQ(precision(scaled), Precision::Int8);  // y has its codes
  options.inputs = BoundarySettings{Precision::Int8, {}, {}};
  EXPECT_EQ(precision(compared), Precision::Int8);
}

TEST(Assign, LaterRulesWinAndTheOverlapIsReported) {
  const TwoLayers n;
  Options options;
  options.rules = {rule(Rule::By::Module, "*", Precision::Int16x8),
                   rule(Rule::By::Module, "head", Precision::Int8)};
  options.rules[1].place = "rules[1]";
  const Assignment assignment = assign(n.graph, options);
  EXPECT_EQ(precisionOf(assignment, n.first), Precision::Int16x8);
  EXPECT_EQ(precisionOf(assignment, n.second), Precision::Int8);
  ASSERT_EQ(assignment.warnings.size(), 1u);
  EXPECT_EQ(assignment.warnings[0].str(),
            "rules[1]: overrides rules[0] (precision) at 1 operator, first conv2d_1");
}

TEST(Assign, ARuleThatMatchesNothingIsReported) {
  const TwoLayers n;
  Options options;
  options.rules = {rule(Rule::By::Operator, "softmax", Precision::Int16x8)};
  const Assignment assignment = assign(n.graph, options);
  ASSERT_EQ(assignment.warnings.size(), 1u);
  EXPECT_THAT(assignment.warnings[0].str(),
              HasSubstr("rules[0]: no operator type of the network matches 'softmax'"));
}

TEST(Assign, RulesForSourceOperatorsMatchTheirReplacements) {
  const TwoLayers n;
  Options options;
  options.sourceOps = {{n.second->producer()->location(), "aten.fancy_conv.default"}};
  options.rules = {rule(Rule::By::Operator, "fancy_conv", Precision::Int16x8)};
  EXPECT_EQ(precisionOf(assign(n.graph, options), n.second), Precision::Int16x8);
}

TEST(Mixed, Int8WidensToInt16ByAPowerOfTwo) {
  TwoLayers n;
  Options options;
  options.rules = {rule(Rule::By::Module, "head", Precision::Int16x8)};
  auto result = require(quantizedWith(n, options));
  const auto nodes = quantizes(result.graph);
  ASSERT_EQ(nodes.size(),
            5u);  // input, conv and pool in int8, the pool's int16 form, the second conv in int16
  const auto narrow = nodes[2], wide = nodes[3];
  EXPECT_EQ(narrow.dtype(), DType::Int8);
  EXPECT_EQ(wide.dtype(), DType::Int16);
  EXPECT_EQ(wide.scale(), narrow.scale() / 128);
  EXPECT_EQ(wide.zeroPoint(), 0);
  EXPECT_EQ(nodes[4].dtype(), DType::Int16);
  // The conversion is exact: both forms have the same values.
  const Sample sample{ramp({1, 2, 8, 8}, -1, 2)};
  std::map<const Value*, Tensor> seen;
  ASSERT_TRUE(aten::execute(result.graph, sample, [&](const Value& v, const Tensor& t) {
                seen.emplace(&v, t);
              }).ok());
  const Tensor &before = seen.at(wide.input()), &after = seen.at(wide.output()->uses()[0].node->result());
  for (int64_t i = 0; i < before.numElements(); ++i) ASSERT_EQ(before.realAt(i), after.realAt(i)) << i;
}

TEST(Mixed, Int16NarrowsToInt8WithASeparateRange) {
  TwoLayers n;
  Options options;
  options.precision = Precision::Int16x8;
  options.rules = {rule(Rule::By::Module, "head", Precision::Int8)};
  auto result = require(quantizedWith(n, options));
  const auto nodes = quantizes(result.graph);
  ASSERT_EQ(nodes.size(), 5u);
  EXPECT_EQ(nodes[2].dtype(), DType::Int16);
  EXPECT_EQ(nodes[3].dtype(), DType::Int8);
  EXPECT_EQ(nodes[4].dtype(), DType::Int8);
}

TEST(Mixed, ABoundaryInAFusedPairKeepsTheClampSeparate) {
  Network n;
  n.in("conv2d", "");
  Value* conv = n.conv(n.input({1, 2, 4, 4}), 3);
  n.in("relu", "");
  n.done(n.relu(conv));
  Options options;
  options.rules = {rule(Rule::By::Node, "relu", Precision::Int16x8)};
  auto result = require(quantizedWith(n, options));
  const auto nodes = quantizes(result.graph);
  ASSERT_EQ(nodes.size(), 4u);  // input, conv, its int16 form, relu
  EXPECT_EQ(nodes[1].dtype(), DType::Int8);
  EXPECT_EQ(nodes[2].dtype(), DType::Int16);
  EXPECT_EQ(nodes[3].dtype(), DType::Int16);
}

TEST(Mixed, NoneLeavesFloat) {
  TwoLayers n;
  Options options;
  options.rules = {rule(Rule::By::Node, "conv2d_1", Precision::Float)};
  auto result = require(quantizedWith(n, options));
  EXPECT_EQ(quantizes(result.graph).size(), 3u);  // input, conv, pool
  EXPECT_EQ(result.keptFloat, std::vector<std::string>{"conv2d_1"});
  EXPECT_EQ(result.graph.outputs()[0]->producer()->opName(), "aten.conv2d.default");
}

TEST(Mixed, WeightsPerTensorByRule) {
  TwoLayers n;
  Options options;
  options.rules = {rule(Rule::By::Node, "conv2d_1", Precision::Int8)};
  options.rules[0].overrides.perChannelWeights = false;
  auto result = require(quantizedWith(n, options));
  int perChannel = 0, perTensor = 0;
  for (const TensorReport& tensor : result.report.tensors) {
    if (tensor.isConstant) (tensor.perChannel ? perChannel : perTensor)++;
  }
  EXPECT_EQ(perChannel, 2);
  EXPECT_EQ(perTensor, 2);
}

/// The weight bits of the int8 constants in a report, by name.
std::map<std::string, int> weightBitsOf(const Report& report) {
  std::map<std::string, int> bits;
  for (const TensorReport& tensor : report.tensors) {
    if (tensor.isConstant && tensor.dtype == DType::Int8) bits[tensor.name] = tensor.weightBits;
  }
  return bits;
}

TEST(Mixed, WeightBitsByRule) {
  for (const Precision precision : {Precision::Int8, Precision::Int16x8}) {
    TwoLayers n;
    Options options;
    options.precision = precision;
    options.fitWeights = true;
    options.rules = {rule(Rule::By::Node, "conv2d_1", precision)};
    options.rules[0].overrides.weightBits = 4;
    const auto result = require(quantizedWith(n, options));
    EXPECT_TRUE(result.warnings.empty());
    int narrow = 0, whole = 0;
    for (const auto& [name, bits] : weightBitsOf(result.report)) (bits == 4 ? narrow : whole)++;
    EXPECT_EQ(narrow, 1);
    EXPECT_EQ(whole, 1);
    int layers = 0;
    for (const ir::Node* node : result.graph.nodes()) {
      const auto dequantize = ir::dynCast<aten::DequantizePerChannel>(node);
      if (!dequantize || dequantize.dtype() != DType::Int8) continue;
      ++layers;
      int64_t largest = 0;
      for (const int8_t code : dequantize.input()->constant().as<int8_t>())
        largest = std::max<int64_t>(largest, std::abs(int{code}));
      EXPECT_EQ(largest, dequantize.quantMax());
      EXPECT_EQ(dequantize.quantMin(), -dequantize.quantMax());
    }
    EXPECT_EQ(layers, 2);
  }
}

TEST(Mixed, WeightBitsWithoutWeightsAreReported) {
  TwoLayers n;
  Options options;
  options.rules = {rule(Rule::By::Operator, "max_pool2d", Precision::Int8)};
  options.rules[0].overrides.weightBits = 4;
  options.rules[0].place = "rules[0]";
  const auto result = require(quantizedWith(n, options));
  ASSERT_EQ(result.warnings.size(), 1u);
  EXPECT_THAT(result.warnings[0].str(),
              HasSubstr("weight_bits changes nothing: no operator that 'max_pool2d' matches has weights"));
}

TEST(Mixed, ObserversByRule) {
  const auto scaleOf = [](ObserverSettings observer) {
    Network n;
    n.in("neg", "m");
    n.done(n.make<aten::Neg>(n.input({1, 100})));
    Options options;
    options.rules = {rule(Rule::By::Module, "m", Precision::Int8)};
    options.rules[0].overrides.observer = observer;
    return quantizes(quantizedWith(n, options)->graph)[0].scale();
  };
  EXPECT_EQ(scaleOf(ObserverKind::MinMax), static_cast<double>(3.0f / 255.0f));
  EXPECT_EQ(scaleOf({ObserverKind::Percentile, 100}), static_cast<double>(3.0f / 255.0f));
  EXPECT_LT(scaleOf({ObserverKind::Percentile, 90}), 2.6 / 255);
}

TEST(Boundary, SymmetricAndOtherPrecision) {
  TwoLayers n;
  Options options;
  options.precision = Precision::Int16x8;
  options.inputs = BoundarySettings{Precision::Int8, Scheme::Symmetric, ObserverKind::MinMax};
  options.outputs = BoundarySettings{Precision::Int8, std::nullopt, std::nullopt};
  auto result = require(quantizedWith(n, options));
  const auto nodes = quantizes(result.graph);
  EXPECT_TRUE(nodes.front().input()->isInput());
  EXPECT_EQ(nodes.front().dtype(), DType::Int8);
  EXPECT_EQ(nodes.front().zeroPoint(), 0);
  EXPECT_EQ(nodes.front().scale(), static_cast<double>(2.0f / 127.0f));
  EXPECT_EQ(nodes[1].dtype(), DType::Int16);
  EXPECT_EQ(nodes[1].scale(), nodes[0].scale() / 128);
  EXPECT_EQ(nodes.back().dtype(), DType::Int8);
  EXPECT_EQ(result.graph.outputs()[0]->producer()->operands()[0]->producer(), nodes.back().node());
}

}  // namespace
}  // namespace carina::quantize
