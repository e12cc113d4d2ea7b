// SPDX-License-Identifier: Apache-2.0
#include "platform/access_gates.hpp"

#include <gtest/gtest.h>

#include "platform/peripherals.hpp"

namespace carina::platform {
namespace {

constexpr uint32_t kControl = 0x00, kLastWord = 0x10, kBlockSize = 0x14, kIndex = 0x18, kTable = 0x1c,
                   kStatus = 0x20, kClear = 0x24, kEnable = 0x28, kInfo1 = 0x2c, kInfo2 = 0x30, kSet = 0x34;

struct Gate {
  int changes = 0, interrupts = 0;
  // 2 MiB in blocks of 16 KiB: four words.
  MemoryGate gate{
      {0x31000000, 0x21000000, 0x200000, 0x4000}, [this] { ++changes; }, [this] { ++interrupts; }};
};

TEST(MemoryGate, OpensBlocksByTable) {
  Gate g;
  EXPECT_EQ(g.gate.read(kLastWord), 3u);
  EXPECT_EQ(g.gate.read(kBlockSize), 9u) << "1 << (9 + 5) bytes";
  EXPECT_EQ(g.gate.offsetOf(0x21000010), 0x10u);
  EXPECT_EQ(g.gate.offsetOf(0x311fffff), 0x1fffffu);
  EXPECT_FALSE(g.gate.offsetOf(0x31200000));
  EXPECT_TRUE(g.gate.open(0, true));
  EXPECT_FALSE(g.gate.open(0, false));
  // The index increments automatically and wraps around.
  g.gate.write(kIndex, 3);
  g.gate.write(kTable, 1u << 31);
  g.gate.write(kTable, 2);
  EXPECT_EQ(g.changes, 2);
  EXPECT_EQ(g.gate.read(kIndex), 1u);
  EXPECT_TRUE(g.gate.open(0x1fc000, false));
  EXPECT_FALSE(g.gate.open(0x1fc000, true)) << "a Non-secure block rejects Secure transactions";
  EXPECT_TRUE(g.gate.open(0x4000, false));
  EXPECT_FALSE(g.gate.open(0x8000, false));
  g.gate.write(kControl, 0);
  g.gate.write(kIndex, 0);
  EXPECT_EQ(g.gate.read(kTable), 2u);
  EXPECT_EQ(g.gate.read(kIndex), 0u) << "the index does not increment";
  g.gate.write(kIndex, 99);
  EXPECT_EQ(g.gate.read(kTable), 0u);
  g.gate.write(kTable, 1);
  EXPECT_EQ(g.changes, 2) << "no such word";
}

TEST(MemoryGate, RefusalsInterruptAndAreRecordedOnce) {
  Gate g;
  EXPECT_FALSE(g.gate.refuse(0x21000004, false)) << "no bus error";
  EXPECT_FALSE(g.gate.interrupting());
  g.gate.write(kEnable, 1);
  EXPECT_TRUE(g.gate.interrupting());
  EXPECT_FALSE(g.gate.refuse(0x31000008, true));
  EXPECT_EQ(g.gate.read(kStatus), 1u);
  EXPECT_EQ(g.gate.read(kInfo1), 0x21000004u) << "the first refusal";
  EXPECT_EQ(g.gate.read(kInfo2), 1u << 16);
  g.gate.write(kClear, 1);
  EXPECT_FALSE(g.gate.interrupting());
  g.gate.write(kSet, 1);
  EXPECT_TRUE(g.gate.interrupting());
  g.gate.write(kControl, 1u << 4 | 1u << 6);
  EXPECT_TRUE(g.gate.refuse(0x21000004, false)) << "a bus error";
  EXPECT_EQ(g.gate.read(kControl) & (1u << 7 | 1u << 23), 1u << 7 | 1u << 23) << "gating is acknowledged";
}

TEST(MemoryGate, LockingFreezesTheSettings) {
  Gate g;
  g.gate.write(kTable, 5);
  g.gate.write(kControl, 1u << 31 | 1u << 8);
  g.gate.write(kIndex, 0);
  g.gate.write(kTable, 0);
  g.gate.write(kControl, 0);
  g.gate.write(kEnable, 1);
  g.gate.write(kIndex, 0);
  EXPECT_EQ(g.gate.read(kTable), 5u);
  EXPECT_EQ(g.gate.read(kControl) >> 31, 1u);
  EXPECT_EQ(g.gate.read(kEnable), 0u);
}

TEST(AccessGates, EveryBoardHasItsPorts) {
  for (const Board& board : allBoards()) {
    Core core(board.features);
    Interrupts interrupts;
    Clock clock;
    SystemSpace system(board, clock, interrupts, core);
    Peripherals peripherals(system);
    uint32_t callable = 0;
    AccessGates gates(board, core, interrupts, [&](uint32_t bits) { callable = bits; });
    gates.addTo(peripherals);
    const uint32_t uart1 = board.uart0 + 0x1000;
    peripherals.writeFreely(0x50080088, 4, 1u << 4);
    EXPECT_TRUE(gates.passes(uart1, false)) << "not closed yet";
    gates.close();
    core.state.control[kSecure] = 0;
    core.memory.select(Core::contextOf(core.state));
    EXPECT_FALSE(gates.passes(uart1, false))
        << board.name << ": a Secure transaction to a Non-secure peripheral";
    EXPECT_TRUE(gates.passes(board.uart0, false));
    EXPECT_EQ(peripherals.readFreely(0x50080020, 4), 1u << 6);
    EXPECT_FALSE(interrupts.pending(kExternal + 10));
    peripherals.writeFreely(0x50080028, 4, 1u << 6);
    EXPECT_TRUE(interrupts.pending(kExternal + 10));
    peripherals.writeFreely(0x50080010, 4, 1);
    EXPECT_THROW(gates.passes(uart1, true), cpu_m::Trap);
    peripherals.writeFreely(0x50080014, 4, 3);
    EXPECT_EQ(callable, 3u);
    peripherals.writeFreely(0x50080000, 4, 1);  // locked
    peripherals.writeFreely(0x50080088, 4, 0);
    peripherals.writeFreely(0x50080014, 4, 0);
    EXPECT_EQ(peripherals.readFreely(0x50080088, 4), 1u << 4);
    EXPECT_EQ(callable, 3u);
    // The protection controllers of the memories read as drivers expect.
    for (const uint32_t base : {0x50083000u, 0x50084000u, 0x57000000u, 0x57001000u, 0x57002000u}) {
      EXPECT_EQ(peripherals.readFreely(base + 0xfe0, 4), 0x65u);
      EXPECT_NE(peripherals.readFreely(base + kBlockSize, 4), 0u);
    }
    EXPECT_TRUE(gates.open(board.ram.front().address, false)) << "tightly coupled memory";
    EXPECT_FALSE(gates.open(0x21000000, false));
  }
}

}  // namespace
}  // namespace carina::platform
