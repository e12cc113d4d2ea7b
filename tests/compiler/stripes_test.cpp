// SPDX-License-Identifier: Apache-2.0
// Stripes: the planner's order and rolling buffers, and whole networks in cascades, chains and in place.
#include "compiler/schedule/stripes.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "compiler/program_runner.hpp"
#include "compiler/search/search.hpp"
#include "compiler/tosa_graphs.hpp"
#include "support/require.hpp"

namespace carina::test {
namespace {

using compiler::Optimize;
using compiler::RowRange;
using compiler::StripedPass;
using compiler::StripePlan;

const char* const kStripedTargets[] = {"ethos-u55-32",  "ethos-u55-64",   "ethos-u55-128", "ethos-u55-256",
                                       "ethos-u65-256", "ethos-u65-512",  "ethos-u85-128", "ethos-u85-256",
                                       "ethos-u85-512", "ethos-u85-1024", "ethos-u85-2048"};

npu::KernelOperation window(int32_t inputRows, int32_t kernel, int32_t stride, int32_t top, int32_t bottom) {
  npu::KernelOperation op;
  op.kind = npu::OperationKind::Depthwise;
  op.kernel.height = kernel;
  op.kernel.strideY = stride;
  op.ifm.height = inputRows;
  op.padding.top = top;
  op.ofm.height = (inputRows + top + bottom - kernel) / stride + 1;
  op.padding.bottom = std::max(0, (op.ofm.height - 1) * stride + kernel - top - inputRows);
  return op;
}

/// Every row is computed once and in order, from rows that are already computed and still held.
void checkPlan(const std::vector<StripedPass>& passes, const StripePlan& plan) {
  std::vector<int32_t> done(passes.size(), 0);
  for (const compiler::Stripe& stripe : plan.stripes) {
    const auto p = static_cast<size_t>(stripe.pass);
    RC_ASSERT(stripe.begin == done[p]);
    RC_ASSERT(stripe.end > stripe.begin);
    RC_ASSERT(stripe.end - stripe.begin <= plan.held[p]);  // no operation writes the same slot twice
    const auto reads = [&](int32_t producer, bool second) {
      const RowRange rows = compiler::inputRows(*passes[p].operation, second, stripe.begin, stripe.end);
      for (; producer >= 0; producer = passes[static_cast<size_t>(producer)].joined) {
        const auto q = static_cast<size_t>(producer);
        RC_ASSERT(rows.end <= done[q]);
        RC_ASSERT(rows.begin >= done[q] - plan.held[q]);
      }
    };
    reads(passes[p].ifmProducer, false);
    reads(passes[p].ifm2Producer, true);
    done[p] = stripe.end;
  }
  for (size_t p = 0; p < passes.size(); ++p) {
    RC_ASSERT(done[p] == passes[p].operation->ofm.height);
    const int32_t joined = passes[p].joined;
    if (joined >= 0) RC_ASSERT(plan.held[p] == plan.held[static_cast<size_t>(joined)]);
  }
}

RC_GTEST_PROP(Stripes, PlansComputeEveryRowOnceFromHeldRows, ()) {
  const int32_t count = *rc::gen::inRange(2, 7);
  std::vector<npu::KernelOperation> operations;
  std::vector<StripedPass> passes(static_cast<size_t>(count));
  int32_t rows = *rc::gen::inRange(6, 60);
  for (int32_t p = 0; p < count; ++p) {
    const int32_t kernel = std::min(rows, *rc::gen::inRange(1, 6)), stride = *rc::gen::inRange(1, 3);
    const int32_t top = *rc::gen::inRange(0, kernel), bottom = *rc::gen::inRange(0, kernel);
    operations.push_back(window(rows, kernel, stride, top, bottom));
    rows = operations.back().ofm.height;
  }
  // A residual addition if the shapes allow it.
  for (int32_t p = 1; p < count; ++p) {
    if (operations[static_cast<size_t>(p)].ofm.height == operations[static_cast<size_t>(p - 1)].ofm.height &&
        *rc::gen::inRange(0, 2) == 1) {
      npu::KernelOperation add;
      add.kind = npu::OperationKind::Elementwise;
      add.ofm.height = add.ifm.height = operations[static_cast<size_t>(p)].ofm.height;
      add.ifm2 = add.ifm;
      operations.push_back(add);
      passes.resize(operations.size());
      passes.back().ifm2Producer = p - 1;
      break;
    }
  }
  for (size_t p = 0; p < passes.size(); ++p) {
    passes[p].operation = &operations[p];
    passes[p].ifmProducer = static_cast<int32_t>(p) - 1;
  }
  // Only passes with matching feature map heights form a cascade.
  for (size_t p = 1; p < passes.size(); ++p) {
    RC_PRE(operations[p].ifm.height == operations[p - 1].ofm.height);
  }
  const auto plan = compiler::planStripes(passes, *rc::gen::inRange(1, 12));
  RC_PRE(plan.has_value());
  checkPlan(passes, *plan);
}

RC_GTEST_PROP(Stripes, PassesThatWriteOneMapHoldTheSameRows, ()) {
  const int32_t rows = *rc::gen::inRange(6, 60);
  const auto same = [&] {  // as many rows as it reads
    const int32_t reach = *rc::gen::inRange(0, 3);
    return window(rows, 2 * reach + 1, 1, reach, reach);
  };
  const npu::KernelOperation first = same(), left = same(), middle = same(), right = same();
  const npu::KernelOperation last = window(rows, *rc::gen::inRange(1, 6), *rc::gen::inRange(1, 3), 0, 0);
  // The second of three passes that write one map also reads what the first one writes.
  const std::vector<StripedPass> passes{
      {&first, -1, -1}, {&left, 0, -1}, {&middle, 1, -1, 1}, {&right, 0, -1, 2}, {&last, 3, -1}};
  const auto plan = compiler::planStripes(passes, *rc::gen::inRange(1, 12));
  RC_PRE(plan.has_value());
  checkPlan(passes, *plan);
}

TEST(Stripes, TwoConvolutionsHoldFewRows) {
  const npu::KernelOperation a = window(64, 3, 1, 1, 1), b = window(64, 3, 1, 1, 1);
  const std::vector<StripedPass> passes{{&a, -1, -1}, {&b, 0, -1}};
  const auto plan = compiler::planStripes(passes, 2);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->held[0], 4);   // the window's three rows, and one for the stripe's second row
  EXPECT_EQ(plan->held[1], 64);  // the result itself
  EXPECT_EQ(plan->stripes.size(), 64u);
}

TEST(Stripes, RowsOfARollingBufferWrap) {
  npu::KernelOperation op = window(20, 3, 1, 1, 1);
  op.ifm.strideY = 100;
  op.ofm.strideY = 10;
  op.ifm.base[0] = 1000;
  compiler::takeRows(op, 6, 8, {5, 0, 0});  // rows 5..8 of the input, in slots 0, 1, 2, 3
  EXPECT_EQ(op.ifm.height, 4);
  EXPECT_EQ(op.ifm.base[0], 1000u);
  EXPECT_EQ(op.ifm.height0, 4);
  op = window(20, 3, 1, 1, 1);
  op.ifm.strideY = 100;
  op.ifm.base[0] = 1000;
  compiler::takeRows(op, 4, 6, {5, 0, 0});  // rows 3..6, in slots 3, 4, 0, 1
  EXPECT_EQ(op.ifm.base[0], 1300u);
  EXPECT_EQ(op.ifm.height0, 2);
  EXPECT_EQ(op.ifm.base[2], 1000u);
  EXPECT_EQ(op.padding.top, 0);
  EXPECT_EQ(op.padding.bottom, 0);
}

/// An inverted bottleneck with its residual addition, twice, and a pool.
ir::Graph bottlenecks() {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 24, 20, 16});
  x = b.clamp(x, -120, 120);
  for (int block = 0; block < 2; ++block) {
    ir::Value* wide = b.rescalePerChannel(b.conv(x, 64, {1, 1}), DType::Int8, 42, -5);
    ir::Value* moved =
        b.rescalePerChannel(b.depthwise(wide, {3, 3}, {1, 1}, {1, 1, 1, 1}, -5), DType::Int8, 40, 3);
    ir::Value* narrow = b.rescalePerChannel(b.conv(moved, 16, {1, 1}), DType::Int8, 43, 4);
    ir::Value* left = b.rescale(narrow, DType::Int32, 1518500250, 12, 4);
    ir::Value* right = b.rescale(x, DType::Int32, 1 << 30, 11, 0);
    x = b.rescale(b.make<tosa::Add>(left, right), DType::Int8, 1431655728, 50, 0, -3);
  }
  ir::Value* y = b.maxPool(x, {3, 3}, {2, 2}, {1, 0, 1, 0});
  return b.finish({b.rescalePerChannel(b.conv(y, 24, {3, 3}, {2, 2}, {1, 0, 1, 0}, -3), DType::Int8, 44, 7)});
}

TEST(Cascades, BottlenecksOnAllTargets) {
  const ir::Graph graph = bottlenecks();
  const auto inputs = randomInputs(graph, 3);
  for (const char* target : kStripedTargets) {
    EXPECT_EQ(differences(graph, target, "", inputs, false), "");
    EXPECT_EQ(differences(graph, target, "", inputs, false, Optimize::Size), "");
  }
  for (const char* mode : {"Sram_Only", "Shared_Sram", "Dedicated_Sram_256KB"}) {
    EXPECT_EQ(differences(graph, "ethos-u65-512", mode, inputs, false, Optimize::Size), "");
    EXPECT_EQ(differences(graph, "ethos-u85-256", mode, inputs, false, Optimize::Size), "");
  }
}

/// Layers that read halves of a map and write halves of another, which a layer reads as a whole.
ir::Graph branches() {
  TosaBuilder b;
  ir::Value* x = b.rescalePerChannel(
      b.conv(b.input(DType::Int8, {1, 40, 24, 4}), 64, {3, 3}, {1, 1}, {1, 1, 1, 1}), DType::Int8, 42, -5);
  ir::Value* left = b.slice(x, {0, 0, 0, 0}, {1, 40, 24, 32});
  ir::Value* right = b.slice(x, {0, 0, 0, 32}, {1, 40, 24, 32});
  left = b.rescalePerChannel(b.conv(left, 32, {3, 3}, {1, 1}, {1, 1, 1, 1}, -5), DType::Int8, 43, 3);
  right = b.rescalePerChannel(b.conv(right, 32, {1, 1}, {1, 1}, {0, 0, 0, 0}, -5), DType::Int8, 42, 3);
  ir::Value* joined = b.concat({left, right}, 3);
  ir::Value* y = b.rescalePerChannel(b.conv(joined, 8, {3, 3}, {2, 2}, {1, 0, 1, 0}, 3), DType::Int8, 44, 0);
  return b.finish({y});
}

TEST(Cascades, HoldSomeRowsOfMapsThatAreReadOrWrittenInParts) {
  const ir::Graph graph = branches();
  const auto inputs = randomInputs(graph, 4);
  for (const char* target : kStripedTargets) {
    EXPECT_EQ(differences(graph, target, "", inputs, false, Optimize::Size), "");
    compiler::Options options;
    options.optimize = Optimize::Size;
    const auto machine = require(npu::makeMachine(target, "", "Sram_Only"));
    EXPECT_LT(require(compiler::compile(graph, machine, options)).arenaBytes, 40 * 24 * 64 / 2) << target;
  }
}

TEST(Cascades, MayContainPassesThatWriteDifferentRowsOfOneMap) {
  TosaBuilder b;
  ir::Value* x = b.conv(b.input(DType::Int8, {1, 40, 24, 4}), 64, {3, 3}, {1, 1}, {1, 1, 1, 1});
  x = b.rescalePerChannel(x, DType::Int8, 42, -5);
  ir::Value* upper = b.conv(x, 32, {3, 3}, {2, 1}, {1, 0, 1, 1}, -5);  // half of the rows
  upper = b.rescalePerChannel(upper, DType::Int8, 43, 3);
  ir::Value* lower = b.rescalePerChannel(b.conv(x, 32, {1, 1}, {1, 1}, {0, 0, 0, 0}, -5), DType::Int8, 42, 3);
  ir::Value* alone = b.conv(lower, 8, {3, 3}, {2, 2}, {1, 0, 1, 0}, 3);
  ir::Value* both = b.maxPool(b.concat({upper, lower}, 1), {2, 2}, {2, 2}, {0, 0, 0, 0});
  const ir::Graph graph = b.finish({b.rescalePerChannel(alone, DType::Int8, 44, 0), both});
  const auto inputs = randomInputs(graph, 6);
  for (const char* target : kStripedTargets) {
    EXPECT_EQ(differences(graph, target, "", inputs, false, Optimize::Size), "");
    EXPECT_EQ(differences(graph, target, "Sram_Only", inputs, false, Optimize::Size), "");
  }
  // Who reads the lower rows needs none of the upper ones.
  const npu::Machine machine = require(npu::makeMachine("ethos-u55-128", "", "Sram_Only"));
  const ir::Graph npu = require(compiler::lowerToNpu(graph, machine));
  const compiler::Schedule schedule = require(compiler::schedule(npu, machine, {}));
  std::vector<LiveRange> ranges;
  for (const compiler::Buffer& buffer : schedule.storage->buffers)
    ranges.push_back({buffer.bytes, 0, static_cast<int32_t>(schedule.passes.size()) - 1});
  const auto problem = compiler::cascadeProblem(schedule, ranges, npu::Area::Arena,
                                                compiler::InPlace::SameLayout, compiler::RollingMaps::Parts);
  for (const compiler::CascadePass& pass : problem.passes) EXPECT_EQ(pass.joined, -1);
}

TEST(Cascades, ContainResultsThatWouldOverwriteTheirInputsOutsideOfThem) {
  // Squeeze and excitation with maps larger than the cache: only in a cascade, the product stays in it.
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 112, 112, 32});
  x = b.rescalePerChannel(b.depthwise(x, {3, 3}, {1, 1}, {1, 1, 1, 1}), DType::Int8, 40, 0);
  ir::Value* mean = b.averagePool(x, {112, 112}, {1, 1}, {0, 0, 0, 0}, 0);
  ir::Value* factors = b.rescalePerChannel(b.conv(mean, 32, {1, 1}), DType::Int8, 40, 0);
  ir::Value* product =
      b.mul(b.rescale(x, DType::Int32, 1 << 30, 30), b.rescale(factors, DType::Int32, 1 << 30, 30));
  product = b.rescale(product, DType::Int8, 1 << 30, 36);
  const ir::Graph graph = b.finish({b.rescalePerChannel(b.conv(product, 16, {1, 1}), DType::Int8, 42, 0)});
  const npu::Machine machine = require(npu::makeMachine("ethos-u65-512", "", "Dedicated_Sram_384KB"));
  const ir::Graph npu = require(compiler::lowerToNpu(graph, machine));
  const compiler::Schedule schedule = require(compiler::schedule(npu, machine, {}));
  int products = 0;
  for (const compiler::Pass& pass : schedule.passes) {
    if (pass.operation.kind != npu::OperationKind::Elementwise) continue;
    ++products;
    EXPECT_GT(schedule.groups[static_cast<size_t>(pass.group)].rows, 0);
  }
  EXPECT_EQ(products, 1);
  EXPECT_EQ(differences(graph, "ethos-u65-512", "Dedicated_Sram_384KB", randomInputs(graph, 5), false), "");
}

TEST(Cascades, ArenaLimitIsKeptOrExplained) {
  const ir::Graph graph = bottlenecks();
  for (const char* target : {"ethos-u55-128", "ethos-u85-256"}) {
    auto machine = require(npu::makeMachine(target, "", "Sram_Only"));
    compiler::Options options;
    auto fast = require(compiler::compile(graph, machine, options));
    options.optimize = Optimize::Size;
    auto small = require(compiler::compile(graph, machine, options));
    EXPECT_LT(small.arenaBytes * 2, fast.arenaBytes);
    // A limit in between: no more cycles than the smallest.
    options.optimize = Optimize::Performance;
    options.arenaLimit = (small.arenaBytes + fast.arenaBytes) / 2;
    auto middle = require(compiler::compile(graph, machine, options));
    EXPECT_LE(middle.arenaBytes, options.arenaLimit);
    EXPECT_LE(middle.cycles, small.cycles);
    options.arenaLimit = 1000;
    const std::string none = errorOf(compiler::compile(graph, machine, options));
    EXPECT_NE(none.find("the limit is 1000"), std::string::npos) << none;
    EXPECT_NE(none.find("live at"), std::string::npos);
  }
}

TEST(Chains, AdditionsAreChainedToThePrecedingConvolution) {
  const ir::Graph graph = bottlenecks();
  auto machine = require(npu::makeMachine("ethos-u85-128", "", ""));
  auto program = require(compiler::compile(graph, machine));
  int chained = 0;
  for (const compiler::OperationRecord& record : program.operations) {
    const auto* op = std::get_if<npu::KernelOperation>(&record.operation);
    chained += op && op->ofm.storage == npu::Storage::Chained;
  }
  EXPECT_EQ(chained, 2);
}

TEST(InPlace, ElementwiseResultsOverwriteTheirInputs) {
  TosaBuilder b;
  ir::Value* x = b.input(DType::Int8, {1, 16, 16, 32});
  ir::Value* y = b.maxPool(x, {3, 3}, {1, 1}, {1, 1, 1, 1});
  for (int i = 0; i < 3; ++i) {
    ir::Value* left = b.rescale(y, DType::Int32, 1518500250, 12, 4);
    ir::Value* right = b.rescale(x, DType::Int32, 1 << 30, 11, 0);
    y = b.rescale(b.make<tosa::Add>(left, right), DType::Int8, 1431655728, 50, 0, -3);
  }
  const ir::Graph graph = b.finish({b.maxPool(y, {2, 2}, {2, 2}, {0, 0, 0, 0})});
  const auto inputs = randomInputs(graph, 9);
  for (const char* target : kStripedTargets) EXPECT_EQ(differences(graph, target, "", inputs), "");
  auto machine = require(npu::makeMachine("ethos-u55-128", "", "Sram_Only"));
  auto program = require(compiler::compile(graph, machine));
  EXPECT_EQ(program.arenaBytes, 2 * 16 * 16 * 32);  // the input and one more feature map
}

/// A decoder's cache: an input of which some rows are replaced is an output.
TEST(InPlace, ScatteredRowsAreWrittenIntoTheirTable) {
  TosaBuilder b;
  ir::Value* cache = b.reshape(b.input(DType::Int8, {1, 4, 64, 32}), {4, 64, 32});
  ir::Value* indices = b.input(DType::Int32, {4, 1});
  ir::Value* written = b.make<tosa::Scatter>(cache, indices, b.input(DType::Int8, {4, 1, 32}));
  ir::Value* read = b.make<tosa::ReduceMax>(written, 1, tosa::NanMode::PROPAGATE);
  const ir::Graph graph = b.finish({b.reshape(written, {1, 4, 64, 32}), read});
  std::vector<Tensor> inputs = randomInputs(graph, 9);
  inputs[1] = Tensor::from({4, 1}, std::vector<int32_t>{0, 63, 5, 5});
  for (const char* mode : {"Sram_Only", "Shared_Sram", "Dedicated_Sram"}) {
    EXPECT_EQ(differences(graph, "ethos-u85-256", mode, inputs), "");
    auto program = require(compiler::compile(graph, require(npu::makeMachine("ethos-u85-256", "", mode))));
    EXPECT_LT(program.arenaBytes, 3 * 64 * 32 * 4 / 2) << mode;
    for (const compiler::OperationRecord& record : program.operations) {
      const auto* dma = std::get_if<npu::DmaOperation>(&record.operation);
      EXPECT_FALSE(dma && dma->length == 4 * 64 * 32) << mode;
    }
  }
}

}  // namespace
}  // namespace carina::test
