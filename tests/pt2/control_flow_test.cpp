// SPDX-License-Identifier: Apache-2.0
// torch.cond and torch.while_loop (models/control_flow.py): the graphs read compute what torch computed, and
// round-trip through text.
#include "aten/control_flow.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "aten/executor.hpp"
#include "base/npy.hpp"
#include "decompose/composites.hpp"
#include "decompose/decompose.hpp"
#include "decompose/regions.hpp"
#include "ir/parser.hpp"
#include "ir/printer.hpp"
#include "ir/verifier.hpp"
#include "pt2/exported_program.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"

namespace carina::pt2 {
namespace {

ir::Graph readControl(const std::string& name) {
  auto program = require(readExportedProgram(test::dataDir() / "control" / (name + ".pt2")));
  return std::move(program.graph);
}

/// The slice at `index` of the leading axis.
Tensor slice(const Tensor& stacked, int64_t index) {
  const Shape shape(stacked.shape().begin() + 1, stacked.shape().end());
  const auto bytes = static_cast<size_t>(numElements(shape) * dtypeSize(stacked.dtype()));
  Tensor result = Tensor::uninitialized(stacked.dtype(), shape);
  std::memcpy(result.mutableBytes().data(), stacked.bytes().data() + static_cast<size_t>(index) * bytes,
              bytes);
  return result;
}

/// Runs every sample of the network's arrays and compares the results with torch's.
void expectTorchsResults(const std::string& name, const ir::Graph& graph) {
  const auto arrays = require(readNpz(test::dataDir() / "control" / (name + ".npz")));
  const auto executor = require(aten::Executor::create(graph));
  const int64_t samples = findTensor(arrays, "calib0")->dim(0);
  for (int64_t sample = 0; sample < samples; ++sample) {
    std::vector<Tensor> inputs;
    while (const Tensor* stacked = findTensor(arrays, "calib" + std::to_string(inputs.size())))
      inputs.push_back(slice(*stacked, sample));
    const auto results = require(executor.run(inputs));
    for (size_t i = 0; i < results.size(); ++i) {
      const Tensor* stacked = findTensor(arrays, "expected" + std::to_string(i));
      ASSERT_NE(stacked, nullptr);
      const Tensor expected = slice(*stacked, sample), &actual = results[i];
      ASSERT_EQ(actual.shape(), expected.shape());
      for (int64_t k = 0; k < expected.numElements(); ++k)
        ASSERT_NEAR(actual.realAt(k), expected.realAt(k), 1e-5 * (1 + std::abs(expected.realAt(k))))
            << "sample " << sample << ", output " << i << ", element " << k;
    }
  }
}

class ControlFlow : public ::testing::TestWithParam<std::string> {};

TEST_P(ControlFlow, ComputesWhatTorchComputed) {
  expectTorchsResults(GetParam(), readControl(GetParam()));
}

TEST_P(ControlFlow, TextFormRoundTrips) {
  const ir::Graph graph = readControl(GetParam());
  const std::string text = ir::print(graph, {.exact = true});
  const ir::OperatorSet operators{decompose::findReadable, [] { return std::vector<std::string>(); }};
  const auto parsed = require(ir::parse(text, operators));
  EXPECT_EQ(ir::print(parsed, {.exact = true}), text);
}

TEST_P(ControlFlow, ClosedAndDecomposedRegionsComputeTheSame) {
  ir::Graph graph = readControl(GetParam());
  ASSERT_TRUE(decompose::closeRegions(graph).ok());
  ASSERT_TRUE(ir::verify(graph).ok());
  aten::forEachNode(graph, [](const ir::Node& node) {
    if (!node.is(aten::condDef())) return;
    for (const ir::Value* operand : node.operandGroup(1))
      EXPECT_FALSE(operand->isConstant()) << "a branch still takes the constant " << operand->name;
  });
  expectTorchsResults(GetParam(), graph);
  require(decompose::forNpu(graph));
  ASSERT_TRUE(ir::verify(graph).ok());
  expectTorchsResults(GetParam(), graph);
}

INSTANTIATE_TEST_SUITE_P(
    Pt2, ControlFlow,
    ::testing::Values("cond_zero_args_one_output", "cond_one_arg_one_output", "cond_one_arg_const_one_output",
                      "cond_one_arg_and_scalar_one_output", "cond_one_arg_two_outputs",
                      "cond_two_args_one_output", "cond_two_args_two_outputs",
                      "cond_nested_one_arg_one_output", "cond_multiple_one_arg_one_output",
                      "while_two_in_two_out", "while_one_in_one_buffer_two_out", "while_decreasing_output",
                      "while_additional_arg", "while_two_in_one_captured_out", "while_large_threshold",
                      "experts", "refine", "search", "same", "item", "endless"),
    [](const auto& network) { return network.param; });

TEST(ControlFlowReader, NodesOfRegionsHaveUniqueNames) {
  const ir::Graph graph = readControl("search");
  std::set<std::string> names;
  size_t nodes = 0;
  aten::forEachNode(graph, [&](const ir::Node& node) {
    ++nodes;
    names.insert(node.location()->name);
  });
  EXPECT_EQ(names.size(), nodes);
  EXPECT_TRUE(names.contains("cond.true_graph_0.while_loop.while_loop_body_graph_0.cond.false_graph_0.mul"));
}

TEST(ControlFlowExecutor, ALoopThatDoesNotEndIsAnError) {
  const ir::Graph graph = readControl("endless");
  const auto results = aten::execute(graph, std::vector{Tensor::from({1, 4}, std::vector<float>(4, 0.5f))});
  ASSERT_FALSE(results.ok());
  const Diagnostic& why = results.error().diagnostics().front();
  EXPECT_EQ(why.place, "while_loop");
  EXPECT_EQ(why.message, "the loop is still running after 1000000 iterations");
}

TEST(ControlFlowExecutor, IterationsConsumeTheBudget) {
  const ir::Graph graph = readControl("endless");
  WorkBudget budget(1'000'000);
  const auto executor = require(aten::Executor::create(graph, aten::Folding::All, &budget));
  const auto results = executor.run(std::vector{Tensor::from({1, 4}, std::vector<float>(4, 0.5f))});
  ASSERT_FALSE(results.ok());
  const Diagnostic& why = results.error().diagnostics().front();
  EXPECT_EQ(why.place, "while_loop");
  EXPECT_EQ(why.message.rfind("iteration ", 0), 0u) << why.message;
  EXPECT_NE(why.message.find("the limit for this execution is 1e+06"), std::string::npos) << why.message;
  EXPECT_LT(budget.left(), 20'000);
}

TEST(ControlFlowVerifier, RegionsMustMatchTheOperatorsSignature) {
  const ir::OperatorSet operators{decompose::findReadable, [] { return std::vector<std::string>(); }};
  const auto refusal = [&](const std::string& text) {
    const auto graph = ir::parse(text, operators);
    return graph.ok() ? std::string("accepted") : graph.error().str();
  };
  const std::string head =
      "graph @g(%p: bool[], %x: f32[2]) -> (%y) { %y: f32[2] = higher_order.cond(%p, [%x]) ";
  const std::string same = "graph @t(%a: f32[2]) -> (%a) {} ";
  EXPECT_EQ(refusal(head + same + same + "}"), "accepted");
  EXPECT_NE(
      refusal(head + same + "graph @f(%a: f32[3]) -> (%a) {} }").find("the false branch takes (f32[3])"),
      std::string::npos);
  EXPECT_NE(refusal(head + "graph @t(%a: f32[2]) -> () {} " + same + "}").find("the true branch returns ()"),
            std::string::npos);
  EXPECT_NE(refusal(head + same + "}").find("has no false branch"), std::string::npos);
  const std::string loop = "graph @g(%x: f32[2]) -> (%y) { %y: f32[2] = higher_order.while_loop([%x], []) ";
  EXPECT_NE(refusal(loop + same + same + "}").find("the loop condition returns (f32[2])"), std::string::npos);
}

}  // namespace
}  // namespace carina::pt2
