// SPDX-License-Identifier: Apache-2.0
// COND_IF and WHILE_LOOP in command streams: blocks, places and branches, compared with the TOSA interpreter.
#include <gtest/gtest.h>

#include "compiler/flow/flow.hpp"
#include "compiler/program_runner.hpp"
#include "ir/parser.hpp"
#include "npu/isa/stream.hpp"
#include "npu/model/model.hpp"
#include "support/require.hpp"
#include "tosa/interpreter.hpp"
#include "tosa/tosa.hpp"

namespace carina::test {
namespace {

ir::Graph parsed(std::string_view text) {
  ir::OperatorSet operators;
  operators.find = [](std::string_view name) { return tosa::findOperator(name); };
  operators.names = [] { return std::vector<std::string>(); };
  return require(ir::parse(text, operators));
}

Tensor int8s(Shape shape, std::initializer_list<int> values) {
  Tensor tensor = Tensor::zeros(DType::Int8, std::move(shape));
  int64_t i = 0;
  for (const int value : values) tensor.setIntegerAt(i++, value);
  return tensor;
}

Tensor number(DType type, int64_t value) {
  Tensor tensor = Tensor::zeros(type, {});
  tensor.setIntegerAt(0, value);
  return tensor;
}

/// On the smallest, a medium and the largest U85, in fast and in slow memory.
void expectSame(const ir::Graph& graph, std::vector<Tensor> inputs) {
  for (const char* target : {"ethos-u85-128", "ethos-u85-256", "ethos-u85-2048"}) {
    for (const char* mode : {"Sram_Only", "Shared_Sram", "Dedicated_Sram"})
      EXPECT_EQ(differences(graph, target, mode, inputs, false), "");
  }
}

constexpr std::string_view kChoice = R"(
graph @main(%p: bool[], %x: i8[2,4], %y: i8[2,4]) -> (%r, %s) {
  %r: i8[2,4], %s: i8[2,4] = tosa.COND_IF(%p, [%x, %y])
    graph @yes(%a: i8[2,4], %b: i8[2,4]) -> (%c, %a) {
      %c: i8[2,4] = tosa.BITWISE_OR(%a, %b)
    }
    graph @no(%d: i8[2,4], %e: i8[2,4]) -> (%f, %f) {
      %f: i8[2,4] = tosa.BITWISE_AND(%d, %e)
    }
}
)";

TEST(ControlFlow, EitherSideRuns) {
  const ir::Graph graph = parsed(kChoice);
  for (const int p : {0, 1}) {
    expectSame(graph, {number(DType::Bool, p), randomTensor(DType::Int8, {2, 4}, 1),
                       randomTensor(DType::Int8, {2, 4}, 2)});
  }
}

TEST(ControlFlow, BranchesTargetTheSides) {
  const ir::Graph graph = parsed(kChoice);
  const auto machine = npu::makeMachine("ethos-u85-256", "", "");
  const auto program = require(compiler::compile(graph, *machine));
  ASSERT_EQ(program.branches.size(), 1u);
  EXPECT_FALSE(program.branches[0].isLoop);
  EXPECT_LT(program.branches[0].begin, program.branches[0].middle);
  EXPECT_LT(program.branches[0].middle, program.branches[0].end);
  const auto operations = require(npu::decodeStream(program.commands, *machine->target));
  std::vector<npu::Branch> branches;
  for (const npu::PlacedOperation& placed : operations) {
    if (const auto* branch = std::get_if<npu::Branch>(&placed.operation)) branches.push_back(*branch);
  }
  ASSERT_EQ(branches.size(), 2u);
  EXPECT_TRUE(branches[0].ifResult);
  EXPECT_EQ(branches[0].target, program.branches[0].middle);
  EXPECT_FALSE(branches[1].ifResult);
  EXPECT_EQ(branches[1].target, program.branches[0].end);
}

TEST(ControlFlow, PredicatesAreComputed) {
  const ir::Graph graph = parsed(R"(
graph @main(%x: i32[1,4]) -> (%r) {
  %zero: i32[1,1] = [0]
  %sum: i32[1,1] = tosa.REDUCE_SUM(%x) {axis = 1}
  %p: bool[1,1] = tosa.GREATER(%sum, %zero)
  %r: i32[1,4] = tosa.COND_IF(%p, [%x, %sum])
    graph @yes(%a: i32[1,4], %t: i32[1,1]) -> (%b) {
      %b: i32[1,4] = tosa.ADD(%a, %t)
    }
    graph @no(%c: i32[1,4], %u: i32[1,1]) -> (%d) {
      %d: i32[1,4] = tosa.SUB(%c, %u)
    }
}
)");
  for (uint64_t seed = 1; seed < 5; ++seed) expectSame(graph, {randomTensor(DType::Int32, {1, 4}, seed)});
}

TEST(ControlFlow, TablesAreLoadedOnEachPath) {
  // Tables are used before, in one side of and after the COND_IF; after it, the side that ran is unknown.
  std::string table = "[";
  for (int i = 0; i < 256; ++i) table += std::to_string((i * 37 + 11) % 256 - 128) + (i < 255 ? ", " : "]");
  const std::string text = R"(
graph @main(%p: bool[], %x: i8[3,5]) -> (%z) {
  %t: i8[256] = )" + table +
                           R"(
  %u: i8[3,5] = tosa.TABLE(%x, %t)
  %y: i8[3,5] = tosa.COND_IF(%p, [%u])
    graph @yes(%a: i8[3,5]) -> (%b) {
      %one: i8[256] = )" + table +
                           R"(
      %v: i8[3,5] = tosa.TABLE(%a, %one)
      %b: i8[3,5] = tosa.TABLE(%v, %one)
    }
    graph @no(%c: i8[3,5]) -> (%d) {
      %d: i8[3,5] = tosa.BITWISE_NOT(%c)
    }
  %z: i8[3,5] = tosa.TABLE(%y, %t)
}
)";
  const ir::Graph graph = parsed(text);
  for (const int p : {0, 1})
    expectSame(graph, {number(DType::Bool, p), randomTensor(DType::Int8, {3, 5}, 7)});
}

TEST(ControlFlow, TripCountsDependOnData) {
  const ir::Graph graph = parsed(R"(
graph @main(%n: i32[], %x: i8[2]) -> (%i, %y) {
  %ones: i8[2] = [1, 1]
  %i: i32[], %k: i8[2], %y: i8[2] = tosa.WHILE_LOOP([%n, %ones, %x])
    graph @test(%a: i32[], %b: i8[2], %c: i8[2]) -> (%more) {
      %zero: i32[] = [0]
      %more: bool[] = tosa.GREATER(%a, %zero)
    }
    graph @body(%d: i32[], %e: i8[2], %f: i8[2]) -> (%g, %e, %h) {
      %one: i32[] = [1]
      %g: i32[] = tosa.SUB(%d, %one)
      %h: i8[2] = tosa.BITWISE_OR(%e, %f)
    }
}
)");
  for (const int64_t tripCount : {0, 1, 2, 7})
    expectSame(graph, {number(DType::Int32, tripCount), int8s({2}, {-9, 100})});
}

TEST(ControlFlow, CarriedValuesAreSwapped) {
  const ir::Graph graph = parsed(R"(
graph @main(%n: i32[], %x: i8[3], %y: i8[3]) -> (%a, %b) {
  %i: i32[], %a: i8[3], %b: i8[3] = tosa.WHILE_LOOP([%n, %x, %y])
    graph @test(%j: i32[], %c: i8[3], %d: i8[3]) -> (%more) {
      %zero: i32[] = [0]
      %more: bool[] = tosa.GREATER(%j, %zero)
    }
    graph @body(%k: i32[], %e: i8[3], %f: i8[3]) -> (%l, %f, %e) {
      %one: i32[] = [1]
      %l: i32[] = tosa.SUB(%k, %one)
    }
}
)");
  for (const int64_t tripCount : {0, 1, 2, 3})
    expectSame(graph, {number(DType::Int32, tripCount), int8s({3}, {1, 2, 3}), int8s({3}, {4, 5, 6})});
}

constexpr std::string_view kSlices = R"(
graph @main(%x: i8[1,12,16]) -> (%y, %h) {
  %first: i32[1,1] = [0]
  %empty: i8[1,12,16] = splat 0
  %state: i8[1,1,16] = splat 5
  %i: i32[1,1], %xs: i8[1,12,16], %y: i8[1,12,16], %h: i8[1,1,16] = tosa.WHILE_LOOP([%first, %x, %empty, %state])
    graph @test(%a: i32[1,1], %b: i8[1,12,16], %c: i8[1,12,16], %d: i8[1,1,16]) -> (%more) {
      %end: i32[1,1] = [12]
      %more: bool[1,1] = tosa.GREATER(%end, %a)
    }
    graph @body(%e: i32[1,1], %f: i8[1,12,16], %g: i8[1,12,16], %s: i8[1,1,16]) -> (%next, %f, %written, %m) {
      %one: i32[1,1] = [1]
      %row: i8[1,1,16] = tosa.GATHER(%f, %e)
      %m: i8[1,1,16] = tosa.BITWISE_OR(%row, %s)
      %written: i8[1,12,16] = tosa.SCATTER(%g, %e, %m)
      %next: i32[1,1] = tosa.ADD(%e, %one)
    }
}
)";

TEST(ControlFlow, SlicesAreReadAndWrittenByIndex) {
  const ir::Graph graph = parsed(kSlices);
  expectSame(graph, {randomTensor(DType::Int8, {1, 12, 16}, 3)});
  EXPECT_EQ(compiler::tripCountOf(*graph.firstNode()), 12);
  const auto machine = npu::makeMachine("ethos-u85-256", "", "");
  const auto program = require(compiler::compile(graph, *machine));
  // Rows written so far are not copied: each iteration moves a single row.
  int64_t moved = 0;
  for (const compiler::OperationRecord& record : program.operations) {
    if (record.wordOffset * 4 < program.branches[0].begin || record.wordOffset * 4 > program.branches[0].end)
      continue;
    if (const auto* dma = std::get_if<npu::DmaOperation>(&record.operation))
      moved = std::max<int64_t>(moved, static_cast<int64_t>(dma->length));
  }
  EXPECT_EQ(moved, 16);
  EXPECT_EQ(program.branches[0].turns, 12);
  // The code that leads into the loop runs once.
  const std::vector<npu::CountedLoop> loops = compiler::countedLoops(program);
  ASSERT_EQ(loops.size(), 1u);
  EXPECT_GT(loops[0].begin, program.branches[0].begin);
  EXPECT_GE(program.cycles, 12 * program.branches[0].first);
}

TEST(ControlFlow, ConditionalsAndLoopsNest) {
  const ir::Graph graph = parsed(R"(
graph @main(%p: bool[], %x: i32[2], %n: i32[]) -> (%r, %z) {
  %two: i32[2] = [2, 2]
  %before: i32[2] = tosa.ADD(%x, %two)
  %r: i32[2], %z: i32[] = tosa.COND_IF(%p, [%before, %n])
    graph @yes(%a: i32[2], %m: i32[]) -> (%b, %left) {
      %left: i32[], %b: i32[2] = tosa.WHILE_LOOP([%m, %a])
        graph @test(%i: i32[], %c: i32[2]) -> (%more) {
          %zero: i32[] = [0]
          %more: bool[] = tosa.GREATER(%i, %zero)
        }
        graph @body(%j: i32[], %d: i32[2]) -> (%k, %e) {
          %one: i32[] = [1]
          %three: i32[] = [3]
          %k: i32[] = tosa.SUB(%j, %one)
          %late: bool[] = tosa.GREATER(%three, %k)
          %e: i32[2] = tosa.COND_IF(%late, [%d])
            graph @end(%f: i32[2]) -> (%g) {
              %g: i32[2] = tosa.ADD(%f, %f)
            }
            graph @start(%h: i32[2]) -> (%l) {
              %four: i32[2] = [4, 5]
              %l: i32[2] = tosa.SUB(%h, %four)
            }
        }
    }
    graph @no(%o: i32[2], %q: i32[]) -> (%o, %q) {
    }
}
)");
  for (const int p : {0, 1}) {
    for (const int64_t tripCount : {0, 2, 6}) {
      Tensor x = Tensor::zeros(DType::Int32, {2});
      x.setIntegerAt(0, 7);
      x.setIntegerAt(1, -300);
      expectSame(graph, {number(DType::Bool, p), x, number(DType::Int32, tripCount)});
    }
  }
}

TEST(ControlFlow, SidesMayHaveWeights) {
  const ir::Graph graph = parsed(R"(
graph @main(%p: bool[], %x: i8[1,6,6,8]) -> (%y) {
  %y: i8[1,6,6,8] = tosa.COND_IF(%p, [%x])
    graph @yes(%a: i8[1,6,6,8]) -> (%r) {
      %w: i8[8,3,3,8] = splat 3
      %b: i32[8] = splat 100
      %z: i8[1] = [0]
      %zw: i8[1] = [0]
      %m: i32[1] = [1073741824]
      %s: i8[1] = [36]
      %zi: i32[1] = [0]
      %zo: i8[1] = [0]
      %c: i32[1,6,6,8] = tosa.CONV2D(%a, %w, %b, %z, %zw) {pad = [1, 1, 1, 1], stride = [1, 1], dilation = [1, 1], acc_type = i32}
      %r: i8[1,6,6,8] = tosa.RESCALE(%c, %m, %s, %zi, %zo) {scale32 = True, rounding_mode = SINGLE_ROUND, per_channel = False}
    }
    graph @no(%d: i8[1,6,6,8]) -> (%d) {
    }
}
)");
  for (const int p : {0, 1})
    expectSame(graph, {number(DType::Bool, p), randomTensor(DType::Int8, {1, 6, 6, 8}, 11)});
}

TEST(ControlFlow, EndlessLoopsEndWithAFault) {
  const ir::Graph graph = parsed(R"(
graph @main(%x: i32[1]) -> (%y) {
  %y: i32[1] = tosa.WHILE_LOOP([%x])
    graph @test(%a: i32[1]) -> (%more) {
      %more: bool[1] = tosa.EQUAL(%a, %a)
    }
    graph @body(%b: i32[1]) -> (%c) {
      %one: i32[1] = [1]
      %c: i32[1] = tosa.BITWISE_XOR(%b, %one)
    }
}
)");
  const auto machine = npu::makeMachine("ethos-u85-256", "", "");
  const auto program = require(compiler::compile(graph, *machine));
  EXPECT_EQ(program.branches[0].turns, -1);
  std::vector<std::byte> constants = program.constants, arena(static_cast<size_t>(program.arenaBytes));
  std::vector<npu::RegionBytes> regions(3);
  regions[0] = {constants, false};
  regions[1] = {arena, true};
  npu::ModelOptions options;
  options.maxCommands = 5000;
  const npu::RunResult result = npu::runStream(program.commands, program.machine, regions, options);
  ASSERT_TRUE(result.fault);
  EXPECT_EQ(result.fault->kind, npu::FaultKind::Limit);
}

TEST(ControlFlow, OnlyU85SupportsBranches) {
  const ir::Graph graph = parsed(kChoice);
  for (const char* target : {"ethos-u55-128", "ethos-u65-256"}) {
    const auto machine = npu::makeMachine(target, "", "");
    const auto program = compiler::compile(graph, *machine);
    ASSERT_FALSE(program.ok());
    EXPECT_EQ(program.error().code(), Code::MissingCapability);
    EXPECT_NE(program.error().message().find("no command that branches"), std::string::npos);
  }
}

TEST(ControlFlow, UnsupportedNodesOfASideAreNamed) {
  const ir::Graph graph = parsed(R"(
graph @main(%p: bool[], %x: i8[4]) -> (%y) {
  %y: i8[4] = tosa.COND_IF(%p, [%x])
    graph @yes(%a: i8[4]) -> (%b) {
      %f: f32[4] = tosa.CAST(%a)
      %b: i8[4] = tosa.CAST(%f)
    }
    graph @no(%c: i8[4]) -> (%c) {
    }
}
)");
  const auto machine = npu::makeMachine("ethos-u85-256", "", "");
  const auto program = compiler::compile(graph, *machine);
  ASSERT_FALSE(program.ok());
  EXPECT_NE(program.error().message().find("f32"), std::string::npos) << program.error().str();
  EXPECT_FALSE(program.error().diagnostics()[0].place.empty());
}

}  // namespace
}  // namespace carina::test
