// SPDX-License-Identifier: Apache-2.0
// Which nodes need int64 values beyond int32.
#include "quantize/wide_integers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aten/control_flow.hpp"
#include "small_network.hpp"
#include "support/require.hpp"

namespace carina::quantize {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

std::vector<Sample> samplesOf(std::initializer_list<int64_t> numbers) {
  std::vector<Sample> samples;
  for (const int64_t number : numbers) samples.push_back({Tensor::from({1}, std::vector<int64_t>{number})});
  return samples;
}

/// x to the node `product` (times a number), to the node `rest` (modulo 97).
struct Hash : Network {
  explicit Hash(int64_t factor) {
    Value* x = graph.addInput({DType::Int64, {1}}, "x");
    in("product", "");
    Value* product = make<aten::MulTensor>(x, graph.addConstant(Tensor::scalar(factor)));
    in("rest", "");
    Value* rest = make<aten::RemainderTensor>(product, graph.addConstant(Tensor::scalar(int64_t{97})));
    in("code", "");
    graph.setOutputs({make<aten::AddTensor>(rest, rest, int64_t{1})});
  }
  WideIntegers wide(std::initializer_list<int64_t> numbers) {
    return require(wideIntegers(graph, samplesOf(numbers), nullptr));
  }
};

TEST(WideIntegers, NodesThatComputeOrReadThemAreFound) {
  EXPECT_THAT(Hash(1000).wide({5, 7}), IsEmpty());
  EXPECT_THAT(Hash(1000).wide({5, 7'000'000}),
              ElementsAre(Pair("product", 7'000'000'000), Pair("rest", 7'000'000'000)));
  const int64_t time = 1'700'000'000'000;
  EXPECT_THAT(Hash(1).wide({5, time}), ElementsAre(Pair("product", time), Pair("rest", time)));
}

TEST(WideIntegers, SamplesDecideWhereBoundsAreTooFar) {
  // Bounds of products ignore that their factors depend on each other.
  Network n;
  Value* x = n.graph.addInput({DType::Int64, {1}}, "x");
  n.in("rest", "");
  Value* rest = n.make<aten::SubTensor>(n.graph.addConstant(Tensor::scalar(int64_t{100'000})), x, int64_t{1});
  n.in("product", "");
  n.graph.setOutputs({n.make<aten::MulTensor>(x, rest)});
  const auto wide = [&](std::initializer_list<int64_t> numbers) {
    return require(wideIntegers(n.graph, samplesOf(numbers), nullptr));
  };
  EXPECT_THAT(wide({1, 99'999}), IsEmpty());
  EXPECT_THAT(wide({1, 50'000}), ElementsAre(Pair("product", 2'500'000'000)));
}

TEST(WideIntegers, InsideLoopsTheyAreFoundAsWell) {
  const auto iterates = [](int64_t step) {
    Network n;
    Value* x = n.graph.addInput({DType::Int64, {1}}, "x");
    ir::Graph test, turn;
    Value* limit = test.addConstant(Tensor::from({1}, std::vector<int64_t>{100}));
    ir::Builder inTest(test), inTurn(turn);
    Value* tested = test.addInput({DType::Int64, {1}}, "a");
    test.setOutputs({aten::LtTensor::create(inTest, tested, limit).output()});
    Value* counted = turn.addInput({DType::Int64, {1}}, "a");
    turn.setOutputs(
        {aten::AddTensor::create(inTurn, counted, turn.addConstant(Tensor::scalar(step)), int64_t{1})
             .output()});
    ir::NodeSpec spec;
    spec.def = &aten::whileLoopDef();
    spec.operands = {{x}, {}};
    spec.types = {{DType::Int64, {1}}};
    ir::Node* loop = require(n.graph.create(std::move(spec)));
    loop->setRegion(0, std::move(test));
    loop->setRegion(1, std::move(turn));
    n.graph.setOutputs({loop->result()});
    return require(wideIntegers(n.graph, samplesOf({1}), nullptr));
  };
  EXPECT_THAT(iterates(10), IsEmpty());
  EXPECT_THAT(iterates(int64_t{1} << 40), testing::Contains(Pair("aten.add.Tensor", 1 + (int64_t{1} << 40))));
}

}  // namespace
}  // namespace carina::quantize
