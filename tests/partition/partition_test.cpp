// SPDX-License-Identifier: Apache-2.0
// Placement: whole networks, refusals with reasons, requests, splits without cycles, integer conversions at
// the border.
#include "partition/partition.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "aten/control_flow.hpp"
#include "aten/ops.hpp"
#include "ir/verifier.hpp"
#include "support/graph_maker.hpp"
#include "support/require.hpp"
#include "tosa/ops.hpp"

namespace carina::partition {
namespace {

using ir::Ints;
using ir::Value;

/// Quantized networks written by hand: every value has scale 0.1 and zero point 3.
struct Network : test::GraphMaker {
  Value* named(const char* name, const char* module) {
    b = ir::Builder(graph, nullptr, std::make_shared<const ir::Location>(ir::Location{name, module, ""}));
    return nullptr;
  }
  Value* q(Value* x) {
    return make<aten::QuantizePerTensor>(x, 0.1, int64_t{3}, int64_t{-128}, int64_t{127}, DType::Int8);
  }
  Value* dq(Value* x) {
    return make<aten::DequantizePerTensor>(x, 0.1, int64_t{3}, int64_t{-128}, int64_t{127}, DType::Int8,
                                           std::nullopt);
  }
  Value* qdq(Value* x) { return dq(q(x)); }
  Value* relu(Value* x) { return qdq(make<aten::Relu>(x)); }
  Value* add(Value* x, Value* y) { return qdq(make<aten::AddTensor>(x, y, int64_t{1})); }
  /// An operator that stays on the CPU: sorted values.
  Value* sort(Value* x) { return qdq(make<aten::Sort>(x, int64_t{-1}, false)); }
};

std::vector<std::string> opNames(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (const ir::Node* node : graph.nodes()) names.emplace_back(node->opName());
  return names;
}

TEST(Partition, AWholeNetworkIsOneCallBetweenQuantizeAndDequantize) {
  Network n;
  Value* x = n.qdq(n.input({1, 4}));
  n.graph.setOutputs({n.add(n.relu(x), x)});
  const auto result = require(partition(std::move(n.graph), {}));
  EXPECT_TRUE(result.wholly);
  EXPECT_TRUE(result.refusals.empty());
  EXPECT_EQ(
      opNames(result.graph),
      (std::vector<std::string>{"quantized_decomposed.quantize_per_tensor.default", "program.delegate_call",
                                "quantized_decomposed.dequantize_per_tensor.default"}));
  ASSERT_EQ(result.delegates.size(), 1u);
  EXPECT_EQ(result.delegates[0].call->graph().numNodes(), 3u);
  EXPECT_TRUE(ir::verify(result.graph).ok());
  EXPECT_TRUE(ir::verify(result.delegates[0].tosa).ok());
}

// If the target accepts a part as a whole, it is not asked about single operators.
TEST(Partition, OperatorsAreQueriedOnlyIfTheWholePartIsRefused) {
  for (const bool taken : {true, false}) {
    Network n;
    Value* x = n.qdq(n.input({1, 4}));
    for (int i = 0; i < 50; ++i) x = n.relu(x);
    n.graph.setOutputs({x});
    size_t wholes = 0, operators = 0;
    Options options;
    options.placeWhole = [&](const ir::Graph& tosa) -> std::optional<ir::Graph> {
      ++wholes;
      if (!taken) return std::nullopt;
      return tosa.clone();
    };
    options.supports = [&](const ir::Node&) -> std::optional<Diagnostic> {
      ++operators;
      return std::nullopt;
    };
    const auto result = require(partition(std::move(n.graph), options));
    ASSERT_EQ(result.delegates.size(), 1u);
    EXPECT_EQ(wholes, 1u);
    EXPECT_EQ(operators, taken ? 0u : result.delegates[0].tosa.numNodes());
    EXPECT_EQ(result.delegates[0].placed.has_value(), taken);
  }
}

TEST(Partition, AnOperatorWithoutATosaFormSplitsTheNetwork) {
  Network n;
  n.named("first", "head");
  Value* x = n.relu(n.qdq(n.input({1, 4})));
  n.named("ranking", "head.sort");
  Value* sorted = n.sort(x);
  n.named("last", "tail");
  n.graph.setOutputs({n.add(sorted, x)});
  const auto result = require(partition(std::move(n.graph), {}));
  EXPECT_FALSE(result.wholly);
  EXPECT_EQ(result.delegates.size(), 2u);
  ASSERT_EQ(result.refusals.size(), 1u);
  EXPECT_EQ(result.refusals[0].op, "aten.sort.default");
  EXPECT_EQ(result.refusals[0].node, "ranking");
  EXPECT_EQ(result.refusals[0].modulePath, "head.sort");
  EXPECT_NE(result.refusals[0].reason.find("cannot be expressed in TOSA"), std::string::npos);
  EXPECT_TRUE(ir::verify(result.graph).ok());
}

TEST(Partition, BranchesAroundACpuOperatorStayTogether) {
  Network n;
  Value* x = n.qdq(n.input({1, 4}));
  Value* left = n.relu(x);  // before the CPU operator
  Value* middle = n.sort(left);
  Value* right = n.relu(n.add(x, left));  // independent of it
  n.graph.setOutputs({n.add(middle, right)});
  const auto result = require(partition(std::move(n.graph), {}));
  EXPECT_EQ(result.delegates.size(), 2u);
  EXPECT_TRUE(ir::verify(result.graph).ok());
}

TEST(Partition, ADecomposedOperatorStaysInFloatOnTheCpu) {
  Network n;
  Value* x = n.qdq(n.input({1, 4}));
  n.named("norm", "norm");
  Value* squares = n.qdq(n.make<aten::MulTensor>(x, x));
  Value* scale = n.qdq(n.make<aten::Rsqrt>(squares));
  n.named("scaled", "");
  n.graph.setOutputs({n.relu(scale)});
  Options options;
  options.keepOff.names = {"norm", "scaled"};
  auto result = require(partition(std::move(n.graph), options));
  keepFloatInside(result.graph);
  // Values between the operators of the network stay quantized.
  const std::string quantize = "quantized_decomposed.quantize_per_tensor.default";
  const std::string dequantize = "quantized_decomposed.dequantize_per_tensor.default";
  std::vector<std::string> names = opNames(result.graph);
  names.erase(std::remove(names.begin(), names.end(), dequantize), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{quantize, "aten.mul.Tensor", "aten.rsqrt.default", quantize,
                                             "aten.relu.default", quantize}));
  EXPECT_TRUE(ir::verify(result.graph).ok());
}

TEST(Partition, UnsupportedOperatorsAreRefusedWithTheTargetsReason) {
  Network n;
  n.named("gate", "block.gate");
  Value* x = n.qdq(n.input({1, 4}));
  n.graph.setOutputs({n.add(n.qdq(n.make<aten::Sigmoid>(x)), x)});
  Options options;
  options.supports = [](const ir::Node& op) -> std::optional<Diagnostic> {
    if (ir::isa<tosa::Table>(&op)) return Diagnostic{"no tables today", "come back tomorrow", "", ""};
    return std::nullopt;
  };
  const auto result = require(partition(std::move(n.graph), options));
  ASSERT_EQ(result.refusals.size(), 1u);
  EXPECT_EQ(result.refusals[0].reason, "no tables today");
  EXPECT_EQ(result.refusals[0].remedy, "come back tomorrow");
  EXPECT_EQ(result.refusals[0].op, "aten.sigmoid.default");
  EXPECT_EQ(result.delegates.size(), 1u);
}

TEST(Partition, OperatorsAreKeptOffOnRequest) {
  const auto run = [](const Options& options) {
    Network n;
    n.named("act", "block.act");
    Value* x = n.qdq(n.input({1, 4}));
    n.graph.setOutputs({n.relu(x)});
    return partition(std::move(n.graph), options);
  };
  Options byOp, byName, byModule, byParent, bySource, other;
  byOp.keepOff.ops = {"relu"};
  byName.keepOff.names = {"ac*"};
  byModule.keepOff.modules = {"block.*"};
  byParent.keepOff.modules = {"block"};
  bySource.keepOff.ops = {"aten.clamp_min"};
  bySource.keepOff.sourceOps = {{"act", "aten.clamp_min.default"}};
  other.keepOff.ops = {"relu6"};
  for (const Options& options : {byOp, byName, byModule, byParent, bySource}) {
    const auto result = require(run(options));
    EXPECT_TRUE(result.delegates.empty());
    ASSERT_EQ(result.refusals.size(), 1u);
    EXPECT_NE(result.refusals[0].reason.find("on request"), std::string::npos);
    EXPECT_TRUE(result.unmatched.empty());
  }
  const auto untouched = run(other);
  EXPECT_TRUE(untouched->wholly);
  EXPECT_EQ(untouched->unmatched, std::vector<std::string>{"relu6"});
}

/// A conditional is on the NPU only with all operators of its regions.
TEST(Partition, NodesThatNoPartMayHaveStayOnTheCpuWithTheReason) {
  Options options;
  options.whyOther = [](const ir::Node& node) -> std::optional<Diagnostic> {
    if (!ir::isa<aten::BitwiseNot>(&node)) return std::nullopt;
    return Diagnostic{"it has 64 bits", "use 32", "", "", Code::NoIntegerForm};
  };
  options.placeControlFlow = [](const ir::Graph&) { return Status(); };
  const auto run = [&](bool inRegion, const Options& with) {
    Network n;
    Value* x = n.input({4}, DType::Int32);
    const auto region = [](bool inverts) {
      Network inner;
      Value* value = inner.input({4}, DType::Int32);
      Value* sum = inner.make<aten::AddTensor>(value, value, int64_t{1});
      inner.graph.setOutputs({inverts ? inner.make<aten::BitwiseNot>(sum) : sum});
      return std::move(inner.graph);
    };
    if (!inRegion) {
      n.graph.setOutputs({n.make<aten::AddTensor>(n.make<aten::BitwiseNot>(x), x, int64_t{1})});
      return require(partition(std::move(n.graph), with));
    }
    ir::NodeSpec spec;
    spec.def = &aten::condDef();
    spec.operands = {{n.input({1}, DType::Bool)}, {x}};
    spec.types = {{DType::Int32, {4}}};
    ir::Node* choice = require(n.graph.create(std::move(spec)));
    choice->setRegion(0, region(true));
    choice->setRegion(1, region(false));
    n.graph.setOutputs({choice->result()});
    return require(partition(std::move(n.graph), with));
  };
  const auto straight = run(false, options), chosen = run(true, options);
  ASSERT_EQ(straight.refusals.size(), 1u);
  EXPECT_EQ(straight.refusals[0].op, "aten.bitwise_not.default");
  EXPECT_EQ(straight.refusals[0].reason, "it has 64 bits");
  EXPECT_EQ(straight.refusals[0].remedy, "use 32");
  EXPECT_EQ(straight.delegates.size(), 1u);
  EXPECT_EQ(chosen.refusals.size(), 2u) << "the conditional and the operator";
  EXPECT_EQ(chosen.delegates.size(), 2u) << "the sums of its regions";
  options.whyOther = nullptr;
  EXPECT_TRUE(run(true, options).refusals.empty());
}

TEST(Partition, AFloatNetworkStaysOnTheCpu) {
  Network n;
  n.graph.setOutputs({n.make<aten::Relu>(n.input({1, 4}))});
  const auto result = require(partition(std::move(n.graph), {}));
  EXPECT_TRUE(result.delegates.empty());
  ASSERT_EQ(result.refusals.size(), 1u);
  EXPECT_NE(result.refusals[0].reason.find("not quantized"), std::string::npos);
}

TEST(Partition, Int64CrossesTheBorderAsInt32) {
  Network n;
  Value* a = n.graph.addInput({DType::Int64, {4}}, "a");
  Value* sum = n.make<aten::AddTensor>(a, a, int64_t{1});
  n.graph.setOutputs({sum});
  const auto result = require(partition(std::move(n.graph), {}));
  EXPECT_TRUE(result.wholly);
  ASSERT_EQ(result.delegates.size(), 1u);
  EXPECT_EQ(result.delegates[0].tosa.inputs()[0]->dtype(), DType::Int32);
  EXPECT_EQ(result.graph.outputs()[0]->dtype(), DType::Int64);
}

}  // namespace
}  // namespace carina::partition
