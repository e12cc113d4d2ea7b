// SPDX-License-Identifier: Apache-2.0
// Building, editing, copying and verifying graphs.
#include <gtest/gtest.h>

#include "ir/extents.hpp"
#include "ir/footprint.hpp"
#include "ir/invalid_node.hpp"
#include "ir/pass.hpp"
#include "ir/printer.hpp"
#include "ir/verifier.hpp"
#include "toy/ops.hpp"

namespace carina::ir {
namespace {

struct Chain {
  Graph graph;
  Value* x = graph.addInput({DType::Float32, {2}}, "x");
  Value* one = graph.addConstant(Tensor::from<float>({2}, std::vector<float>{1, 1}), "one");
  Builder build{graph};
  toy::Add first = toy::Add::create(build, x, one, toy::Mode::PLAIN, int64_t{1});
  toy::Add second = toy::Add::create(build, first.sum(), x, toy::Mode::FANCY, 0.5);
  Chain() { graph.setOutputs({second.sum()}); }
};

TEST(Graph, KeepsUseListsConsistent) {
  Chain c;
  EXPECT_TRUE(verify(c.graph).ok());
  EXPECT_EQ(c.x->uses().size(), 2u);
  EXPECT_TRUE(c.first.sum()->hasOneUse());
  EXPECT_FALSE(c.second.sum()->unused());
  c.graph.replaceAllUses(c.first.sum(), c.x);
  EXPECT_TRUE(c.first.sum()->unused());
  EXPECT_EQ(c.graph.eraseDeadNodes(), 1u);
  EXPECT_EQ(c.graph.numNodes(), 1u);
  EXPECT_TRUE(c.graph.constants().empty());
  EXPECT_TRUE(verify(c.graph).ok());
}

TEST(Graph, TypedAccessorsReadWhatCreateWrote) {
  Chain c;
  auto add = dynCast<toy::Add>(c.second.node());
  ASSERT_TRUE(add);
  EXPECT_EQ(add.mode(), toy::Mode::FANCY);
  EXPECT_EQ(scalarReal(add.alpha()), 0.5);
  EXPECT_FALSE(dynCast<toy::CatDefault>(c.second.node()));
  EXPECT_TRUE(producerAs<toy::Add>(c.second.a()));
  EXPECT_FALSE(producerAs<toy::Add>(c.x));
}

TEST(Graph, VariadicAndOptionalOperands) {
  Chain c;
  auto cat = toy::CatDefault::create(c.build, {c.x, c.one, c.x}, nullptr, {0}, std::nullopt);
  EXPECT_EQ(cat.parts().size(), 3u);
  EXPECT_EQ(cat.bias(), nullptr);
  const std::vector<Value*> fewer{c.one};
  cat.node()->setOperandGroup(0, fewer);
  cat.node()->setOperandGroup(1, std::vector<Value*>{c.x});
  EXPECT_EQ(cat.parts().size(), 1u);
  EXPECT_EQ(cat.bias(), c.x);
  EXPECT_EQ(c.x->uses().size(), 3u);
  EXPECT_TRUE(verify(c.graph).ok());
}

TEST(Graph, ReplacingOperandsKeepsOtherUsesInOrder) {
  Chain c;
  std::vector<Node*> users;
  for (int i = 0; i < 3; ++i)
    users.push_back(toy::CatDefault::create(c.build, {c.one}, c.x, {0}, std::nullopt).node());
  users[0]->setOperandGroup(0, std::vector<Value*>{c.x});
  users[1]->setOperandGroup(0, std::vector<Value*>{c.one, c.one});
  std::vector<std::pair<Node*, uint32_t>> uses;
  for (const Use& use : c.x->uses()) {
    if (std::find(users.begin(), users.end(), use.node) != users.end())
      uses.emplace_back(use.node, use.operand);
  }
  // The first bias keeps its operand index; resizing a group shifts the indices of the operands after it.
  EXPECT_EQ(uses, (std::vector<std::pair<Node*, uint32_t>>{
                      {users[0], 1}, {users[2], 1}, {users[0], 0}, {users[1], 2}}));
  EXPECT_TRUE(verify(c.graph).ok());
}

TEST(Graph, ErasesNodesThatReadOneValueManyTimes) {
  Chain c;
  const size_t before = c.x->uses().size();
  // Removing uses one by one would move up to 400,000 others each time and take minutes.
  std::vector<Value*> parts(400'000, c.x);
  parts[7] = c.one;
  Node* node = toy::CatDefault::create(c.build, parts, c.x, {0}, std::nullopt).node();
  EXPECT_EQ(c.x->uses().size(), before + parts.size());
  c.graph.erase(node);
  EXPECT_EQ(c.x->uses().size(), before);
  EXPECT_TRUE(verify(c.graph).ok());
}

TEST(Graph, RefusesWrongOperandsAndAttributes) {
  Graph graph;
  Value* x = graph.addInput({DType::Float32, {2}}, "x");
  const auto message = [](Result<Node*> result) { return result.ok() ? "" : result.error().message(); };
  EXPECT_EQ(message(graph.create({&toy::Add::def(), {{x}}, {}, {}, nullptr})),
            "toy.ADD takes 2 operands, got 1");
  EXPECT_EQ(message(graph.create({&toy::Add::def(), {{x}, {nullptr}}, {}, {}, nullptr})),
            "operand 'b' of toy.ADD is missing");
  EXPECT_EQ(message(graph.create({&toy::Add::def(), {{x}, {x}}, {Attribute(true)}, {}, nullptr})),
            "attribute 'mode' of toy.ADD has the wrong kind");
  EXPECT_EQ(message(graph.create({&toy::Store::def(), {{x}}, {}, {}, nullptr})),
            "attribute 'label' of toy.STORE is missing");
  EXPECT_EQ(graph.numNodes(), 0u);
  EXPECT_TRUE(x->unused());
}

TEST(Verifier, FindsUseBeforeDefinitionAndWrongTypes) {
  Chain c;
  c.graph.moveBefore(c.second.node(), c.first.node());
  auto order = verify(c.graph);
  ASSERT_FALSE(order.ok());
  EXPECT_EQ(order.error().message(), "operand is used before it is defined");

  Chain d;
  d.first.sum()->type.shape = {3};
  auto types = verify(d.graph);
  ASSERT_FALSE(types.ok());
  EXPECT_EQ(types.error().message(),
            "result 0 of toy.ADD is recorded as f32[3], but its operands imply f32[2]");
  EXPECT_EQ(types.error().diagnostics().size(), 2u);  // and at the node that uses it
}

TEST(Verifier, VerifiesRegions) {
  Chain c;
  NodeSpec spec;
  spec.def = &toy::If::def();
  spec.operands = {{c.x}};
  spec.types = {{DType::Float32, {2}}};
  Node* branch = c.build.create(std::move(spec));
  Chain inner;
  inner.first.sum()->type.shape = {7};
  branch->setRegion(0, std::move(inner.graph));
  EXPECT_FALSE(verify(c.graph).ok());
}

TEST(Graph, CloneIsEqualAndIndependent) {
  Chain c;
  c.first.sum()->quantization = Quantization{{0.5}, {3}, -1};
  std::unordered_map<const Value*, Value*> mapping;
  Graph copy = c.graph.clone(&mapping);
  EXPECT_EQ(print(copy), print(c.graph));
  EXPECT_EQ(mapping.at(c.x), copy.inputs()[0]);
  copy.inputs()[0]->name = "y";
  EXPECT_NE(print(copy), print(c.graph));
  EXPECT_EQ(mapping.at(c.first.sum())->quantization, c.first.sum()->quantization);
}

TEST(Graph, MovingKeepsNodesWithTheirGraph) {
  Chain c;
  Graph moved = std::move(c.graph);
  EXPECT_EQ(&moved.firstNode()->graph(), &moved);
  EXPECT_TRUE(verify(moved).ok());
  EXPECT_EQ(c.graph.numNodes(), 0u);
}

TEST(Rewrite, RunsToAFixpoint) {
  Chain c;
  const Rewrite dropPlain = [](Node* node) -> Result<bool> {
    auto add = dynCast<toy::Add>(node);
    if (!add || add.mode() != toy::Mode::PLAIN || add.sum()->unused()) return false;
    node->graph().replaceAllUses(add.sum(), add.a());
    return true;
  };
  ASSERT_TRUE(rewriteToFixpoint(c.graph, std::vector<Rewrite>{dropPlain}).ok());
  EXPECT_EQ(c.graph.numNodes(), 1u);
  EXPECT_TRUE(verify(c.graph).ok());
}

TEST(Passes, ListenersSeeEveryStage) {
  Chain c;
  std::vector<std::string> seen;
  const Pass passes[] = {{"first", [](Graph&) { return Status(); }},
                         {"second", [](Graph&) { return Status(); }}};
  ASSERT_TRUE(
      runPasses(c.graph, passes, [&](std::string_view name, const Graph&) { seen.emplace_back(name); }).ok());
  EXPECT_EQ(seen, (std::vector<std::string>{"first", "second"}));
}

TEST(Passes, DiesIfAPassLeavesAnInvalidGraph) {
  const Pass passes[] = {{"good", [](Graph&) { return Status(); }},
                         {"bad", [](Graph& graph) {
                            graph.firstNode()->result()->type.shape = {3};
                            return Status();
                          }}};
  Chain c;
  EXPECT_DEATH((void)runPasses(c.graph, passes), "'bad' left an invalid graph");
}

TEST(Graph, ARewriteThatBuildsAnInvalidNodeIsAnError) {
  Chain c;
  c.first.node()->setLocation(std::make_shared<const Location>(Location{"add_1", "layer", ""}));
  const Rewrite rewrite = [&](Node* node) -> Result<bool> {
    Builder builder(c.graph);  // without a location: the error names the node being rewritten
    if (node == c.first.node()) toy::CatDefault::create(builder, {}, nullptr, {0}, std::nullopt);
    return false;
  };
  const Status status = rewriteToFixpoint(c.graph, std::vector<Rewrite>{rewrite});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().diagnostics()[0].place, "add_1 (module layer)");
  EXPECT_NE(status.error().message().find("cannot be expressed as toy.cat.default: nothing to infer from"),
            std::string::npos);
}

TEST(Graph, RefusesTensorsTooLargeForTheFileFormats) {
  EXPECT_TRUE(checkExtents({DType::Int8, {2, 1 << 29}}).ok());
  EXPECT_TRUE(checkExtents({DType::Int8, {0, INT32_MAX}}).ok());
  EXPECT_FALSE(checkExtents({DType::Int8, {4, 1 << 29}}).ok());
  EXPECT_FALSE(checkExtents({DType::Int8, {0, int64_t{1} << 31}}).ok());
  EXPECT_FALSE(checkExtents({DType::Int8, {int64_t{1} << 62, 4}}).ok());
  EXPECT_FALSE(checkExtents({DType::Int8, {-1}}).ok());
  Graph graph;
  Value* large = graph.addInput({DType::Float32, {1 << 16, 1 << 16}}, "large");
  NodeSpec spec;
  spec.def = &toy::Add::def();
  spec.operands = {{large}, {large}};
  EXPECT_FALSE(graph.create(std::move(spec)).ok());
}

TEST(Graph, FootprintIsThePeakOfLiveBytes) {
  Chain c;  // x, first, second: 8 bytes each; all three are live while the second node runs
  const Footprint most = footprintOf(c.graph);
  EXPECT_EQ(most.bytes, 24);
  EXPECT_EQ(most.at, c.second.node());
  Value* y = c.second.sum();
  for (int i = 0; i < 10; ++i) y = toy::Add::create(c.build, y, c.one, toy::Mode::PLAIN, int64_t{1}).sum();
  c.graph.setOutputs({y});
  EXPECT_EQ(footprintOf(c.graph).bytes, 24);
}

}  // namespace
}  // namespace carina::ir
