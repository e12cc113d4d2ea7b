// SPDX-License-Identifier: Apache-2.0
// Logarithms of powers over many orders of magnitude have 32-bit arguments, and the layers in front of them
// keep quiet signals apart from loud ones.
#include "quantize/wide_logarithms.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "quantize/quantize.hpp"
#include "small_network.hpp"
#include "support/require.hpp"

namespace carina::quantize {
namespace {

/// log(linear(linear(x)^2) + floor), as of a spectrum in bands: per value the type of its codes.
struct Spectrum {
  std::map<std::string, DType> types;
  ir::Graph graph;

  explicit Spectrum(double floor, const Options& options = {}) {
    Network n;
    const auto linear = [&](Value* x, const char* name, float low) {
      n.in(name, "");
      return n.make<aten::Linear>(x, n.constant({16, 16}, low, 1), nullptr);
    };
    Value* signal = linear(n.input({1, 16}), "signal", -1);
    n.in("power", "");
    Value* power = n.make<aten::MulTensor>(signal, signal);
    Value* bands = linear(power, "bands", 0.01f);
    n.in("floor", "");
    Value* raised = n.make<aten::AddScalar>(bands, floor, int64_t{1});
    n.in("log", "");
    n.done(n.make<aten::Log>(raised));
    const Tensor loud = ramp({1, 16}, -3, 5), quiet = ramp({1, 16}, -0.003f, 0.002f);
    auto quantized = require(quantize(std::move(n.graph), options, std::array{Sample{loud}, Sample{quiet}}));
    for (const auto& codes : quantizes(quantized.graph)) {
      if (const ir::Node* made = codes.input()->producer(); made && made->location())
        types.emplace(made->location()->name, codes.dtype());
    }
    graph = std::move(quantized.graph);
  }

  DType of(const std::string& name) const { return types.at(name); }
};

TEST(WideLogarithms, HaveArgumentsOf32BitsBackToTheSquares) {
  const Spectrum spectrum(1e-7);
  for (const char* name : {"power", "bands", "floor", "log"})
    EXPECT_EQ(spectrum.of(name), DType::Int32) << name;
  EXPECT_EQ(spectrum.of("signal"), DType::Int16);
}

TEST(WideLogarithms, WithAHighFloorHaveNarrowArguments) {
  const Spectrum spectrum(1e4);
  for (const auto& [name, type] : spectrum.types) EXPECT_EQ(type, DType::Int8) << name;
}

TEST(WideLogarithms, AreLeftToRulesThatNameThem) {
  Options options;
  Rule& rule = options.rules.emplace_back();
  rule.pattern = "*";
  rule.overrides.precision = Precision::Int8;
  const Spectrum spectrum(1e-7, options);
  for (const auto& [name, type] : spectrum.types) EXPECT_EQ(type, DType::Int8) << name;
}

/// The codes of all weights, and of biases.
std::vector<int64_t> constantsOf(const ir::Graph& graph) {
  std::vector<int64_t> codes;
  for (const ir::Node* node : graph.nodes()) {
    const auto layer = ir::dynCast<aten::DequantizePerChannel>(node);
    if (!layer) continue;
    const Tensor& tensor = layer.input()->constant();
    for (int64_t i = 0; i < tensor.numElements(); ++i) codes.push_back(tensor.integerAt(i));
  }
  return codes;
}

/// Weights that preserve the results of loud samples do not preserve those of quiet ones.
TEST(WideLogarithms, HaveLayersThatAreNotFittedToTheSamples) {
  Options fitting;
  fitting.fitWeights = fitting.correctBiases = true;
  EXPECT_NE(constantsOf(Spectrum(1e4, fitting).graph), constantsOf(Spectrum(1e4).graph));
  EXPECT_EQ(constantsOf(Spectrum(1e-7, fitting).graph), constantsOf(Spectrum(1e-7).graph));
}

}  // namespace
}  // namespace carina::quantize
