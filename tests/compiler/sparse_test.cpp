// SPDX-License-Identifier: Apache-2.0
// Ethos-U85 multiplies 2:4 sparse weights at twice the rate; the sparsity is detected in the weights.
#include <gtest/gtest.h>

#include "compiler/program_runner.hpp"
#include "compiler/tosa_graphs.hpp"
#include "support/require.hpp"

namespace carina::test {
namespace {

/// A convolution of a feature map with `depth` channels; `zeros` of every four weights along the channels are
/// 0.
ir::Graph network(int64_t depth, int64_t zeros, uint64_t seed) {
  TosaBuilder b(seed);
  ir::Value* x = b.input(DType::Int8, {1, 14, 13, depth});
  Tensor weight = randomTensor(DType::Int8, {24, 3, 3, depth}, seed);
  for (int64_t i = 0; i < weight.numElements(); ++i) {
    if (weight.integerAt(i) == -128 || i % depth % 4 < zeros) weight.setIntegerAt(i, 0);
  }
  ir::Value* acc =
      tosa::Conv2d::create(b.builder(), x, b.constant(std::move(weight)), b.random(DType::Int32, {24}),
                           b.scalar(DType::Int8, 5), b.scalar(DType::Int8, 0), {1, 1, 1, 1}, {1, 1}, {1, 1},
                           false, DType::Int32)
          .output();
  return b.finish({b.rescalePerChannel(acc, DType::Int8, 42, 3)});
}

bool isSparse(const ir::Graph& graph, const char* target) {
  auto machine = npu::makeMachine(target, "", "");
  auto program = require(compiler::compile(graph, *machine));
  for (const auto& record : program.operations) {
    const auto* op = std::get_if<npu::KernelOperation>(&record.operation);
    if (op && op->weights && op->weights->sparse) return true;
  }
  return false;
}

TEST(Sparse, IsDetectedInTheWeights) {
  EXPECT_TRUE(isSparse(network(32, 2, 1), "ethos-u85-256"));
  EXPECT_FALSE(isSparse(network(1, 0, 2), "ethos-u85-256"));  // a single depth step cannot be halved
  EXPECT_FALSE(isSparse(network(32, 1, 3), "ethos-u85-256"));
  EXPECT_FALSE(isSparse(network(32, 2, 1), "ethos-u65-256"));
}

TEST(Sparse, SumsAreExact) {
  uint64_t seed = 10;
  for (const int64_t depth : {1, 2, 3, 16, 40}) {
    const ir::Graph graph = network(depth, depth > 2 ? 2 : 0, ++seed);
    const auto inputs = randomInputs(graph, seed);
    for (const char* target :
         {"ethos-u85-128", "ethos-u85-256", "ethos-u85-512", "ethos-u85-1024", "ethos-u85-2048"}) {
      for (const char* mode : {"Sram_Only", "Dedicated_Sram"}) {
        EXPECT_EQ(differences(graph, target, mode, inputs), "") << depth;
      }
    }
  }
}

}  // namespace
}  // namespace carina::test
