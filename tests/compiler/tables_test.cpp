// SPDX-License-Identifier: Apache-2.0
// Lookup tables: which are in the table memory, and how many transfers load them.
#include <gtest/gtest.h>

#include "compiler/emit/table_slots.hpp"
#include "compiler/program_runner.hpp"
#include "compiler/tosa_graphs.hpp"
#include "support/require.hpp"

namespace carina::test {
namespace {

using compiler::StoredTable;
using compiler::TableSlots;

StoredTable narrow(int64_t n) {
  return {n * compiler::kTableSlotBytes, compiler::kTableSlotBytes};
}

TEST(TableSlots, KeepsTablesThatWereLoadedTogether) {
  TableSlots slots;
  const std::vector<StoredTable> three{narrow(0), narrow(1), narrow(2)};
  const auto first = slots.use(three);
  EXPECT_TRUE(first.load);
  for (int64_t n = 0; n < 3; ++n) {
    const auto place = slots.use(std::vector{narrow(n)});
    EXPECT_FALSE(place.load);
    EXPECT_EQ(place.slot, first.slot + n);
  }
}

TEST(TableSlots, ReplacesTheLeastRecentlyUsed) {
  TableSlots slots;
  for (int64_t n = 0; n < 8; ++n) slots.use(std::vector{narrow(n)});
  EXPECT_FALSE(slots.touch(narrow(0)) && slots.touch(narrow(0)));  // already marked the second time
  const auto place = slots.use(std::vector{narrow(8), narrow(9)});
  EXPECT_EQ(place.slot, 1);  // 0 is needed soon
  EXPECT_FALSE(slots.holds(narrow(1)));
  EXPECT_FALSE(slots.holds(narrow(2)));
  EXPECT_TRUE(slots.holds(narrow(0)));
  EXPECT_TRUE(slots.holds(narrow(3)));
}

TEST(TableSlots, WideTablesAndNarrowOnesReplaceEachOther) {
  TableSlots slots;
  const StoredTable wide{4096, 4 * compiler::kTableSlotBytes};
  EXPECT_EQ(slots.use(std::vector{wide}).slot, 0);
  slots.use(std::vector{narrow(0), narrow(1), narrow(2), narrow(3)});
  EXPECT_TRUE(slots.holds(wide));
  slots.use(std::vector{narrow(4)});
  EXPECT_FALSE(slots.holds(wide));
  EXPECT_TRUE(slots.use(std::vector{wide}).load);
  slots.forget();
  EXPECT_FALSE(slots.holds(wide));
}

/// `count` consecutive convolutions, each followed by its own table.
ir::Graph tables(int count) {
  TosaBuilder b;
  ir::Value* value = b.input(DType::Int8, {1, 4, 4, 8});
  for (int n = 0; n < count; ++n)
    value = b.table(b.rescale(b.conv(value, 8, {1, 1}), DType::Int8, 1 << 30, 38));
  return b.finish({value});
}

TEST(Tables, OfSeveralOperationsAreLoadedByOneTransfer) {
  struct Case {
    const char* target;
    int tables, transfers;
  };
  // There are eight slots; on the smallest variant the accumulators of every operation overwrite them.
  for (const Case& c : {Case{"ethos-u85-256", 5, 1},
                        {"ethos-u55-128", 5, 1},
                        {"ethos-u65-512", 8, 1},
                        {"ethos-u85-512", 12, 2},
                        {"ethos-u55-32", 3, 3}}) {
    SCOPED_TRACE(c.target);
    const ir::Graph graph = tables(c.tables);
    auto machine = require(npu::makeMachine(c.target, "", "Shared_Sram"));
    auto program = require(compiler::compile(graph, machine, compiler::Options{}));
    int transfers = 0;
    for (const auto& operation : program.operations) transfers += operation.kind == "DMA table" ? 1 : 0;
    EXPECT_EQ(transfers, c.transfers);
    EXPECT_EQ(differences(graph, c.target, "Shared_Sram", randomInputs(graph, 5)), "");
  }
}

}  // namespace
}  // namespace carina::test
