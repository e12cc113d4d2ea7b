// SPDX-License-Identifier: Apache-2.0
// Networks with a range of sizes (models/dynamic_shapes.py) as methods for chosen sizes: results against
// PyTorch at each size, and one set of weights for all methods.
#include <gtest/gtest.h>

#include <map>

#include "base/npy.hpp"
#include "partition/partition.hpp"
#include "pipeline/chosen_sizes.hpp"
#include "pipeline/run.hpp"
#include "pt2/exported_program.hpp"
#include "quantize/sqnr.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::pipeline {
namespace {

std::filesystem::path dynamicFile(const std::string& name) {
  return test::dataDir() / "dynamic" / name;
}

std::string symbolOf(const std::string& name) {
  const auto symbols = pt2::sizeSymbols(dynamicFile(name + ".pt2"));
  return symbols.ok() && !symbols->empty() ? symbols->front().name : "";
}

Result<MethodsBuild> buildSizes(const std::string& name, const std::string& target,
                                std::vector<int64_t> values) {
  const SizeChoice choice{symbolOf(name), std::move(values)};
  const MethodSource source{"forward", dynamicFile(name + ".pt2"), dynamicFile(name + ".npz")};
  CARINA_TRY(const std::vector<MethodSource> methods, methodsOfSizes({&source, 1}, "", {&choice, 1}));
  Options options;
  options.target = target;
  return buildMethods(options, methods);
}

struct Network {
  std::string name;
  std::vector<int64_t> sizes;
};

class ChosenSizes : public testing::TestWithParam<Network> {
 protected:
  const test::TempDir folder_;
};

TEST_P(ChosenSizes, TheProgramComputesWhatTorchComputesAtEverySize) {
  const auto& [name, sizes] = GetParam();
  const auto built = require(buildSizes(name, "ethos-u85-256", sizes));
  require(writeFile(folder_ / "program.pte", require(pte::writeProgram(built.program))));
  const auto arrays = require(readArrays(dynamicFile(name + ".npz")));
  for (size_t m = 0; m < sizes.size(); ++m) {
    const std::string tag = std::to_string(sizes[m]) + ".";
    EXPECT_EQ(built.names[m], "forward_" + symbolOf(name) + "_" + std::to_string(sizes[m]));
    NamedTensors inputs;
    for (size_t i = 0; const Tensor* input = findTensor(arrays, fmt::format("{}in{}", tag, i)); ++i)
      inputs.emplace_back(fmt::format("in{}", i), *input);
    RunOptions options;
    options.file = folder_ / "program.pte";
    const auto result = require(runFile(options, inputs));
    EXPECT_EQ(result.method, m == 0 ? "" : built.names[m]);
    for (size_t i = 0; i < result.outputs.size(); ++i) {
      const Tensor* expected = findTensor(arrays, fmt::format("{}out{}", tag, i));
      ASSERT_NE(expected, nullptr);
      ASSERT_EQ(result.outputs[i].second.shape(), expected->shape());
      quantize::Sqnr sqnr;
      sqnr.add(*expected, result.outputs[i].second);
      EXPECT_GT(sqnr.decibels(), 22) << tag << " output " << i;
    }
  }
}

/// The integer constants of a quantized graph, keyed by their readers.
std::map<std::string, std::string> integerConstantsOf(const ir::Graph& graph) {
  std::map<std::string, std::string> codes;
  for (const ir::Node* node : graph.nodes()) {
    if (!partition::isDequantize(*node) || !node->operand(0)->isConstant()) continue;
    const Tensor& tensor = node->operand(0)->constant();
    if (tensor.dtype() != DType::Int8 && tensor.dtype() != DType::Int32) continue;
    const ir::Use& use = node->result()->uses()[0];
    std::string& text = codes[fmt::format("{} operand {}", use.node->where(), use.operand)];
    text = shapeText(tensor.shape());
    for (int64_t i = 0; i < tensor.numElements(); ++i) text += " " + std::to_string(tensor.integerAt(i));
  }
  return codes;
}

TEST_P(ChosenSizes, AllMethodsHaveOneSetOfWeights) {
  const auto& [name, sizes] = GetParam();
  const auto built = require(buildSizes(name, "ethos-u85-256", sizes));
  std::vector<std::map<std::string, std::string>> codes;
  for (const Build& method : built.methods) codes.push_back(integerConstantsOf(*method.simulation));
  size_t compared = 0;
  for (const auto& [constant, text] : codes.front()) {
    for (size_t m = 1; m < codes.size(); ++m) {
      const auto other = codes[m].find(constant);
      if (other == codes[m].end() ||
          other->second.substr(0, other->second.find(']')) != text.substr(0, text.find(']')))
        continue;  // its length depends on the input
      EXPECT_EQ(other->second, text) << constant;
      ++compared;
    }
  }
  EXPECT_GE(compared, 4u);  // two layers, each with weight and bias
  // And they are stored once.
  EXPECT_TRUE(built.sharesNpuConstants());
  EXPECT_LT(built.npuConstants.together, built.npuConstants.apart * 3 / 4);
}

INSTANTIATE_TEST_SUITE_P(DynamicShapes, ChosenSizes,
                         testing::Values(Network{"length", {20, 2, 8}}, Network{"attention", {64, 4, 16}}),
                         [](const auto& network) { return network.param.name; });

std::string refusal(const std::vector<SizeChoice>& choices, const std::filesystem::path& model) {
  const MethodSource source{"forward", model, {}};
  return errorOf(methodsOfSizes({&source, 1}, "", choices));
}

TEST(SizeChoices, AreNamedAfterTheirValues) {
  const auto symbols = require(pt2::sizeSymbols(dynamicFile("picture.pt2")));
  const std::string a = symbols[0].name, b = symbols[1].name, c = symbols[2].name;
  const MethodSource sources[] = {{"forward", dynamicFile("picture.pt2"), {}},
                                  {"read", test::dataDir() / "methods" / "read.pt2", {}}};
  const SizeChoice choices[] = {{a, {1, 2}}, {b, {8}}, {c, {16, 32}}};
  const auto methods = require(methodsOfSizes(sources, "", choices));
  ASSERT_EQ(methods.size(), 5u);
  EXPECT_EQ(methods[0].name, fmt::format("forward_{}_1_{}_8_{}_16", a, b, c));
  EXPECT_EQ(methods[3].name, fmt::format("forward_{}_2_{}_8_{}_32", a, b, c));
  EXPECT_EQ(methods[3].asked, "forward");
  EXPECT_EQ(methods[4].name, "read");
  EXPECT_TRUE(methods[4].sizes.empty());
  const SizeChoice one[] = {{a, {1}}, {b, {8}}, {c, {16}}};
  const auto alone = require(methodsOfSizes({sources, 1}, "", one));
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_EQ(alone.front().name, "forward");
}

TEST(SizeChoices, InvalidOnesAreRefused) {
  const std::string s = symbolOf("pair");
  EXPECT_NE(
      refusal({{"s9", {4}}}, dynamicFile("pair.pt2")).find("the sizes to choose are " + s + " from 3 to 30"),
      std::string::npos);
  EXPECT_NE(refusal({{s, {4}}, {s, {5}}}, dynamicFile("pair.pt2")).find("chosen twice"), std::string::npos);
  EXPECT_NE(refusal({{s, {4}}}, test::dataDir() / "methods" / "read.pt2").find("all sizes are fixed"),
            std::string::npos);
  std::vector<int64_t> many(65);
  for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<int64_t>(i) + 1;
  EXPECT_NE(refusal({{s, many}}, dynamicFile("pair.pt2")).find("more than 64 methods"), std::string::npos);
  for (const char* text :
       {"", "s1", "s1=", "=4", "s1=0", "s1=-4", "s1=4,", "s1=4,4", "s1=four", "s1=99999999999999999999"})
    EXPECT_FALSE(parseSizeChoice(text).ok()) << text;
  const auto choice = require(parseSizeChoice("s1=4,16"));
  EXPECT_EQ(choice.values, (std::vector<int64_t>{4, 16}));
}

TEST(SizeChoices, SamplesThatAreTooShortAreRefusedWithARemedy) {
  const std::string error = errorOf(buildSizes("length", "ethos-u85-256", {20, 32}));
  EXPECT_NE(error.find("give samples of the largest sizes"), std::string::npos) << error;
}

}  // namespace
}  // namespace carina::pipeline
