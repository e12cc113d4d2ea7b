// SPDX-License-Identifier: Apache-2.0
// The graphs of real networks, at every stage, survive being printed in full and read back.
#include <gtest/gtest.h>

#include "compiler/legalize/legalize.hpp"
#include "compiler/storage/storage.hpp"
#include "cpu/kernel_form.hpp"
#include "ir/invalid_node.hpp"
#include "ir/printer.hpp"
#include "lower_tfl/lower.hpp"
#include "pipeline/graph_file.hpp"
#include "pipeline/passes.hpp"
#include "pipeline/pipeline.hpp"
#include "support/fixtures.hpp"
#include "support/same_graph.hpp"

namespace carina::pipeline {
namespace {

class GraphText : public testing::Test {
 protected:
  void TearDown() override { EXPECT_GT(graphs_, 0); }

  void readsBack(const ir::Graph& graph, const std::filesystem::path& file, std::string_view stage) {
    ++graphs_;
    const std::string text = ir::print(graph, {.exact = true});
    const auto again = ir::parse(text, allOperators());
    ASSERT_TRUE(again.ok()) << file << " after " << stage << ": " << again.error().str();
    EXPECT_EQ(test::GraphDifference::between(graph, *again), "") << file << " after " << stage;
    EXPECT_EQ(ir::print(*again, {.exact = true}), text) << file << " after " << stage;
  }

  void npuReadsBack(const ir::Graph& tosa, const std::filesystem::path& file) {
    for (const char* name : {"ethos-u55-128", "ethos-u85-256"}) {
      auto npu = compiler::legalize(tosa, **npu::findTarget(name));
      if (!npu.ok() || !compiler::makeAddressable(*npu).ok()) continue;  // not on this target
      readsBack(*npu, file, "npu");
    }
  }

  /// From the reader to the parts for NPU and CPU; stops at the stage that refuses the file.
  void allStages(const std::filesystem::path& file) {
    Options options;
    options.model = file;
    options.target = "ethos-u55-128";
    options.madeUpSamples = true;
    const auto build = pipeline::build(options);
    if (!build.ok()) return;
    if (build->source) readsBack(*build->source, file, "decompose");
    if (build->simulation) readsBack(*build->simulation, file, "quantize");
    readsBack(build->graph(), file, "partition");
    for (const partition::Delegate& delegate : build->partitioned.delegates) {
      readsBack(delegate.tosa, file, "tosa");
      npuReadsBack(delegate.tosa, file);
    }
    ir::Graph cpu = build->graph().clone();
    if (ir::rejectInvalidNodes("", [&] { return cpu::toKernelForm(cpu); }).ok())
      readsBack(cpu, file, "kernel form");
  }

  void read(const std::filesystem::path& file) {
    if (const auto graph = readGraph(file); graph.ok()) readsBack(*graph, file, "read");
  }

  int graphs_ = 0;
};

TEST_F(GraphText, NetworksReadBack) {
  for (const auto& file : test::filesIn(test::modelFile("").parent_path(), ".pt2")) {
    read(file);
    allStages(file);
  }
}

TEST_F(GraphText, OperatorsReadBack) {
  for (const char* folder : {"aten", "odd", "pt2"}) {
    for (const auto& file : test::filesIn(test::dataDir() / folder, ".pt2")) {
      read(file);
      allStages(file);
    }
  }
}

TEST_F(GraphText, QuantizedNetworksReadBack) {
  for (const auto& file : test::filesIn(test::dataDir() / "qdq", ".pt2")) {
    read(file);
    allStages(file);
  }
}

TEST_F(GraphText, TosaReadsBack) {
  for (const auto& file : test::filesIn(test::dataDir() / "tosa", ".tosa")) {
    const auto graph = readGraph(file);
    if (!graph.ok()) continue;
    readsBack(*graph, file, "read");
    npuReadsBack(*graph, file);
  }
}

TEST_F(GraphText, TensorFlowLiteReadsBack) {
  for (const auto& file : test::filesIn(test::dataDir() / "tflite", ".tflite")) {
    const auto graph = readGraph(file);
    if (!graph.ok()) continue;
    readsBack(*graph, file, "read");
    const auto lowered = ir::rejectInvalidNodes("", [&] { return lower_tfl::lowerToTosa(*graph); });
    if (!lowered.ok()) continue;
    readsBack(lowered->tosa, file, "tosa");
    npuReadsBack(lowered->tosa, file);
  }
}

TEST_F(GraphText, FixturesReadBack) {
  const auto fixtures = test::fixturesDir();
  if (!fixtures) {
    ++graphs_;
    GTEST_SKIP() << "the large fixtures are absent (CARINA_FIXTURES)";
  }
  for (const char* folder : {"defects", "hostile", "models", "ops", "ops_torch26", "special", "trained"}) {
    for (const char* suffix : {".pt2", ".tosa", ".tflite"}) {
      for (const auto& file : test::filesIn(*fixtures / "fixtures" / folder, suffix)) read(file);
    }
  }
}

}  // namespace
}  // namespace carina::pipeline
