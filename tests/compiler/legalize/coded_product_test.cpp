// SPDX-License-Identifier: Apache-2.0
// Products of two computed matrices on Ethos-U55 and U65: convolutions whose weight streams are written by
// operations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "compiler/program_runner.hpp"
#include "compiler/tosa_graphs.hpp"
#include "npu/isa/assembler.hpp"
#include "npu/isa/disassembler.hpp"
#include "npu/model/check_stream.hpp"
#include "support/require.hpp"

namespace carina::test {
namespace {

using testing::Contains;
using testing::Not;

const std::vector<std::string> kEveryTarget = {"ethos-u55-32",  "ethos-u55-64",  "ethos-u55-128",
                                               "ethos-u55-256", "ethos-u65-256", "ethos-u65-512"};

ir::Value* product(TosaBuilder& b, ir::Value* x, ir::Value* y, int64_t zeroX, int64_t zeroY) {
  return b.make<tosa::Matmul>(x, y, b.scalar(DType::Int8, zeroX), b.scalar(DType::Int8, zeroY));
}

/// [batch, rows, depth] times [batch, depth, columns] as int32; `transposed`: the second matrix is stored by
/// columns.
ir::Graph productOf(int64_t batch, int64_t rows, int64_t depth, int64_t columns, int64_t zeroX, int64_t zeroY,
                    bool transposed) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {batch, rows, depth});
  ir::Value* y =
      b.input(DType::Int8, transposed ? Shape{batch, columns, depth} : Shape{batch, depth, columns});
  if (transposed) y = b.transpose(y, {0, 2, 1});
  return b.finish({product(b, x, y, zeroX, zeroY)});
}

void expectExactOn(const ir::Graph& graph, const std::vector<std::string>& targets = kEveryTarget) {
  const auto inputs = randomInputs(graph, 7);
  for (const std::string& target : targets) {
    EXPECT_THAT(operations(graph, target.c_str()), Contains("npu.CODED_CONV"));
    EXPECT_EQ(differences(graph, target, "", inputs), "") << target;
  }
}

// Columns that do or do not fill microblocks, blocks and streams; depths that do or do not fill blocks of 32
// and groups of 8; the second matrix in either orientation.
struct ProductCase {
  int64_t batch, rows, depth, columns, zeroX, zeroY;
};
class CodedProduct : public testing::TestWithParam<ProductCase> {};

TEST_P(CodedProduct, IsExact) {
  const ProductCase c = GetParam();
  for (const bool transposed : {false, true})
    expectExactOn(productOf(c.batch, c.rows, c.depth, c.columns, c.zeroX, c.zeroY, transposed));
}

INSTANTIATE_TEST_SUITE_P(Shapes, CodedProduct,
                         testing::Values(ProductCase{1, 64, 32, 16, 0, 0}, ProductCase{1, 40, 64, 64, 3, -4},
                                         ProductCase{2, 50, 37, 50, -128, 127},
                                         ProductCase{1, 65, 200, 129, 127, -128},
                                         ProductCase{1, 33, 8, 71, 5, 1},
                                         ProductCase{3, 40, 45, 33, -1, -128}));

TEST(CodedProducts, OfMoreColumnsThanASliceHolds) {
  // With 1,056 channels, a slice holds 24 columns: several convolutions share the columns.
  expectExactOn(productOf(1, 40, 1050, 61, 2, -3, false), {"ethos-u55-128", "ethos-u65-512"});
  expectExactOn(productOf(1, 40, 1050, 61, 2, -3, true), {"ethos-u55-128", "ethos-u65-512"});
}

TEST(CodedProducts, OfAttention) {
  // Heads are adjacent in one feature map: the matrices that reshapes and transposes select are read in
  // place.
  TosaBuilder b;
  constexpr int64_t kRows = 49, kHeads = 3, kDepth = 16;
  const auto heads = [&](ir::Value* x) {
    return b.transpose(b.reshape(x, {kRows, kHeads, kDepth}), {1, 0, 2});
  };
  ir::Value* q = heads(b.input(DType::Int8, {kRows, kHeads * kDepth}));
  ir::Value* keys = b.transpose(b.input(DType::Int8, {kRows, kHeads * kDepth}), {1, 0});
  ir::Value* v = heads(b.input(DType::Int8, {kRows, kHeads * kDepth}));
  ir::Value* scores = b.rescale(product(b, q, b.reshape(keys, {kHeads, kDepth, kRows}), 4, -7), DType::Int8,
                                1518500250, 42, 0, -128);
  ir::Value* result = b.rescale(product(b, scores, v, -128, 9), DType::Int8, 1518500250, 43, 0, 5);
  const ir::Graph graph = b.finish({result});
  expectExactOn(graph);
  const auto names = operations(graph, "ethos-u55-128");
  EXPECT_EQ(std::count(names.begin(), names.end(), "npu.CODED_CONV"), 2 * kHeads);
}

TEST(CodedProducts, Of16Bits) {
  for (const auto& [rows, depth, columns] : {std::array<int64_t, 3>{40, 37, 50}, {33, 300, 70}}) {
    TosaBuilder b;
    ir::Value* x = b.input(DType::Int16, {2, rows, depth});
    ir::Value* y = b.input(DType::Int16, {2, depth, columns});
    ir::Value* zero = b.scalar(DType::Int16, 0);
    ir::Value* sums = b.make<tosa::Matmul>(x, y, zero, zero);
    expectExactOn(b.finish({b.rescale48(sums, DType::Int16, 20000, 32)}));
  }
}

TEST(CodedProducts, AreNotUsedForFewRows) {
  for (const std::string& target : kEveryTarget) {
    EXPECT_THAT(operations(productOf(3, 6, 8, 9, 0, 0, false), target.c_str()),
                Not(Contains("npu.CODED_CONV")));
  }
  EXPECT_THAT(operations(productOf(1, 1, 64, 64, 0, 0, false), "ethos-u55-128"),
              Not(Contains("npu.CODED_CONV")));
}

TEST(CodedProducts, WaitForTheirWeights) {
  const ir::Graph graph = productOf(1, 64, 32, 16, 0, 0, true);
  for (const char* name : {"ethos-u55-128", "ethos-u65-512"}) {
    const npu::Target& target = **npu::findTarget(name);
    const auto machine = require(npu::makeMachine(name, "", ""));
    const auto program = require(compiler::compile(graph, machine));
    const std::string text = npu::disassembleStream(program.commands, target.family, {false});
    npu::StreamMemory memory;
    memory.regions[0] = {{program.constants.size(), false}};
    memory.regions[1] = {{static_cast<size_t>(program.arenaBytes), true}};
    if (program.cacheBytes > 0) memory.regions[2] = {{static_cast<size_t>(program.cacheBytes), true}};
    for (const compiler::IoTensor& input : program.inputs)
      memory.initialized.push_back(
          {1, static_cast<uint64_t>(input.offset), static_cast<uint64_t>(input.bytes)});
    const auto findings = [&](const std::string& edited) {
      const auto assembly = require(npu::assemble(edited));
      return npu::checkStream(assembly.stream, target, memory);
    };
    EXPECT_TRUE(findings(text).empty());
    const auto withoutWaits =
        findings(std::regex_replace(text, std::regex(" *NPU_OP_KERNEL_WAIT n=[0-9]+\n"), ""));
    ASSERT_FALSE(withoutWaits.empty());
    EXPECT_EQ(withoutWaits[0].kind, npu::Finding::Kind::Hazard);
    EXPECT_THAT(withoutWaits,
                Contains(testing::Field(&npu::Finding::message, testing::HasSubstr("weights"))));
  }
}

}  // namespace
}  // namespace carina::test
