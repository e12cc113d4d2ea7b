// SPDX-License-Identifier: Apache-2.0
#include "platform/gdb_packets.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

namespace carina::platform {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

/// 16 bytes of memory at 0x1000.
class FakeTarget final : public DebugTarget {
 public:
  State& registers() override { return registers_; }
  bool read(uint32_t address, std::span<std::byte> bytes) override {
    if (!inside(address, bytes.size())) return false;
    std::copy_n(std::as_bytes(std::span(memory)).begin() + (address - 0x1000), bytes.size(), bytes.begin());
    return true;
  }
  bool write(uint32_t address, std::span<const std::byte> bytes) override {
    if (!inside(address, bytes.size())) return false;
    std::copy(bytes.begin(), bytes.end(),
              std::as_writable_bytes(std::span(memory)).begin() + (address - 0x1000));
    return true;
  }
  bool setBreakpoint(uint32_t address) override {
    return inside(address, 2) && breakpoints.insert(address).second;
  }
  void clearBreakpoint(uint32_t address) override { breakpoints.erase(address); }
  bool setWatchpoint(const WatchedRange& range) override {
    if (!inside(range.address, range.size)) return false;
    watchpoints.push_back(range);
    return true;
  }
  void clearWatchpoint(const WatchedRange& range) override {
    watchpoints.erase(std::remove(watchpoints.begin(), watchpoints.end(), range), watchpoints.end());
  }
  WatchedRange accessed() const override { return watchpoints.back(); }

  std::array<uint8_t, 16> memory{};
  std::set<uint32_t> breakpoints;
  std::vector<WatchedRange> watchpoints;

 private:
  bool inside(uint32_t address, size_t size) const {
    return address >= 0x1000 && address - 0x1000 <= memory.size() &&
           size <= memory.size() - (address - 0x1000);
  }
  State registers_{};
};

class GdbPackets : public testing::Test {
 protected:
  PacketAnswer answer(std::string_view packet) {
    return answerPacket(packet, DebugEvent::Breakpoint, target);
  }
  std::string text(std::string_view packet) { return answer(packet).text; }
  static std::vector<PacketReader::Item> read(std::string_view bytes) {
    PacketReader reader;
    std::vector<PacketReader::Item> items;
    for (const char byte : bytes) {
      if (auto item = reader.feed(byte)) items.push_back(*item);
    }
    return items;
  }
  FakeTarget target;
};

TEST_F(GdbPackets, Watchpoints) {
  EXPECT_EQ(text("Z2,1004,4"), "OK");
  EXPECT_EQ(text("Z3,1008,1"), "OK");
  EXPECT_EQ(text("Z4,100c,2"), "OK");
  EXPECT_THAT(target.watchpoints,
              ElementsAre(WatchedRange{0x1004, 4, false, true}, WatchedRange{0x1008, 1, true, false},
                          WatchedRange{0x100c, 2, true, true}));
  EXPECT_EQ(answerPacket("?", DebugEvent::Watchpoint, target).text, "T05awatch:100c;thread:1;");
  EXPECT_EQ(text("z4,100c,2"), "OK");
  EXPECT_EQ(answerPacket("?", DebugEvent::Watchpoint, target).text, "T05rwatch:1008;thread:1;");
  EXPECT_EQ(text("z3,1008,1"), "OK");
  EXPECT_EQ(answerPacket("?", DebugEvent::Watchpoint, target).text, "T05watch:1004;thread:1;");
  EXPECT_EQ(text("Z2,ffff0000,4"), "E14");
  EXPECT_EQ(text("Z2,1004"), "E01");
  EXPECT_EQ(text("Z2"), "E01");
}

TEST_F(GdbPackets, Frames) {
  EXPECT_EQ(framePacket("OK"), "$OK#9a");
  EXPECT_EQ(framePacket(""), "$#00");
  EXPECT_EQ(framePacket("}#"), "$}]}\x03#5a");
}

TEST_F(GdbPackets, ReadsWhatItFrames) {
  const std::string payload = "X1000,4:}$#*";
  const auto items = read("+" + framePacket(payload) + "\x03-" + framePacket("?"));
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0].kind, PacketReader::Kind::Packet);
  EXPECT_EQ(items[0].payload, payload);
  EXPECT_EQ(items[1].kind, PacketReader::Kind::Interrupt);
  EXPECT_EQ(items[2].payload, "?");
}

TEST_F(GdbPackets, DamagedPackets) {
  for (const char* bytes : {"$OK#9b", "$OK#zz", "$OK#9"}) {
    const auto items = read(std::string(bytes) + "$?#3f");
    ASSERT_FALSE(items.empty()) << bytes;
    EXPECT_EQ(items[0].kind, PacketReader::Kind::Damaged) << bytes;
  }
  const auto items = read("$" + std::string(2 * PacketReader::kMaxPacket, 'a'));
  ASSERT_FALSE(items.empty());
  EXPECT_EQ(items[0].kind, PacketReader::Kind::Damaged);
}

TEST_F(GdbPackets, Questions) {
  EXPECT_EQ(text("?"), "T05thread:1;");
  EXPECT_THAT(text("qSupported:multiprocess+;swbreak+"), HasSubstr("qXfer:features:read+"));
  EXPECT_EQ(text("qfThreadInfo"), "m1");
  EXPECT_EQ(text("Hg0"), "OK");
  EXPECT_EQ(text("qUnheardOf"), "");
  EXPECT_EQ(text("vMustReplyEmpty"), "");
  EXPECT_TRUE(answer("QStartNoAckMode").withoutAcknowledge);
}

TEST_F(GdbPackets, DescriptionInParts) {
  std::string whole;
  for (bool more = true; more;) {
    const std::string part = text(fmt::format("qXfer:features:read:target.xml:{:x},64", whole.size()));
    ASSERT_THAT(part, testing::AnyOf(StartsWith("m"), StartsWith("l")));
    more = part[0] == 'm';
    whole += part.substr(1);
  }
  EXPECT_THAT(whole, StartsWith("<?xml"));
  EXPECT_THAT(whole, HasSubstr("org.gnu.gdb.arm.m-profile"));
  EXPECT_THAT(whole, testing::EndsWith("</target>\n"));
  EXPECT_EQ(text("qXfer:features:read:target.xml:ffffffff,64"), "l");
  EXPECT_EQ(text("qXfer:features:read:target.xml:0"), "E01");
}

TEST_F(GdbPackets, Registers) {
  State& registers = target.registers();
  registers.r[0] = 0x12345678;
  registers.pc = 0x10000218;
  registers.setStackPointer(registers.world, 0, 0x30080000);
  registers.setStackPointer(registers.world, 1, 0x30001000);
  registers.setElement<uint32_t>(1, 0x3f800000);
  EXPECT_EQ(text("p0"), "78563412");
  EXPECT_EQ(text("pf"), "18020010");
  EXPECT_EQ(text("pd"), "00000830");
  EXPECT_EQ(text("P13=02000000"), "OK");  // CONTROL: threads use the process stack
  EXPECT_EQ(text("pd"), "00100030");
  EXPECT_EQ(text("P10=03000001"), "OK");  // XPSR: handlers use the main one
  EXPECT_EQ(text("pd"), "00000830");
  EXPECT_EQ(text("p17"), "000000000000803f");  // d0
  EXPECT_EQ(text("P28=0f00f000"), "OK");       // VPR
  EXPECT_EQ(registers.vpr, 0xf0000fu);
  registers.setStackPointer(kNonSecure, 1, 0x20001000);
  EXPECT_EQ(text("p2a"), "00100020");  // PSP_NS
  EXPECT_EQ(text("P29=00200020"), "OK");
  EXPECT_EQ(registers.stackPointer(kNonSecure, 0), 0x20002000u);
  EXPECT_EQ(text("p2b"), "00000830");  // MSP_S, the active one
  EXPECT_EQ(text("P0=01020304"), "OK");
  EXPECT_EQ(registers.r[0], 0x04030201u);
  EXPECT_EQ(text("Pd=00f00730"), "OK");
  EXPECT_EQ(registers.stackPointer(registers.world, 0), 0x3007f000u);
  for (const char* bad : {"p39", "p", "pzz", "P39=00000000", "P0=00", "P0", "P0=0102030g", "p100000000"})
    EXPECT_EQ(text(bad), "E01") << bad;
}

TEST_F(GdbPackets, AllRegistersAtOnce) {
  target.registers().r[7] = 7;
  target.registers().fpscr = 0x01000000;
  const std::string all = text("g");
  EXPECT_EQ(all.size(), 2 * (23 * 4 + 16 * 8 + 18 * 4u));
  target.registers() = {};
  EXPECT_EQ(text("G" + all), "OK");
  EXPECT_EQ(target.registers().r[7], 7u);
  EXPECT_EQ(target.registers().fpscr, 0x01000000u);
  EXPECT_EQ(text("G" + all.substr(2)), "E01");
  EXPECT_EQ(text("G"), "E01");
}

TEST_F(GdbPackets, Memory) {
  EXPECT_EQ(text("M1002,3:0a0b0c"), "OK");
  EXPECT_EQ(text("m1000,6"), "00000a0b0c00");
  EXPECT_EQ(text(std::string_view("X1000,2:\0#", 10)), "OK");
  EXPECT_EQ(text("m1001,1"), "23");
  EXPECT_EQ(text("X1000,0:"), "OK");
  EXPECT_EQ(text("m100f,2"), "E14");
  EXPECT_EQ(text("Mffffffff,1:00"), "E14");
  for (const char* bad :
       {"m", "m1000", "m1000,", "m1000,1001", "M1000,2:00", "M1000,1:0", "M1000,1", "X1000,2:a"})
    EXPECT_EQ(text(bad), "E01") << bad;
}

TEST_F(GdbPackets, Breakpoints) {
  EXPECT_EQ(text("Z0,1004,2"), "OK");
  EXPECT_EQ(text("Z1,1008,2"), "OK");
  EXPECT_THAT(target.breakpoints, ElementsAre(0x1004, 0x1008));
  EXPECT_EQ(text("z0,1004,2"), "OK");
  EXPECT_EQ(text("z1,1008,2"), "OK");
  EXPECT_THAT(target.breakpoints, IsEmpty());
  EXPECT_EQ(text("Z0,2000,2"), "E14");
  EXPECT_EQ(text("Z5,1004,4"), "");  // there is no such kind
  EXPECT_EQ(text("Z0,1004"), "E01");
  EXPECT_EQ(text("Z"), "E01");
}

TEST_F(GdbPackets, Resuming) {
  using Next = Debugger::Next;
  EXPECT_EQ(answer("c").next, Next::Continue);
  EXPECT_TRUE(answer("c").silent);
  EXPECT_EQ(answer("vCont;s:1;c").next, Next::Step);
  EXPECT_EQ(answer("C05").next, Next::Continue);
  EXPECT_EQ(answer("bs").next, Next::StepBack);
  EXPECT_EQ(answer("bc").next, Next::ContinueBack);
  EXPECT_EQ(answer("bx").next, std::nullopt);
  EXPECT_EQ(answer("k").next, Next::Kill);
  const PacketAnswer detached = answer("D");
  EXPECT_EQ(detached.next, Next::Detach);
  EXPECT_EQ(detached.text, "OK");
  EXPECT_EQ(answer("s1003").next, Next::Step);
  EXPECT_EQ(target.registers().pc, 0x1002u);
  EXPECT_EQ(answer("m1000,1").next, std::nullopt);
}

TEST_F(GdbPackets, RegistersOfBothWorlds) {
  EXPECT_THAT(text("qXfer:features:read:target.xml:0,ffff"), HasSubstr("name=\"control_ns\""));
  State& s = target.registers();
  s.stackLimit[kSecure][1] = 0x1000;
  s.basepri[kNonSecure] = 0x40;
  // After those of the Security Extension: msplim_s, psplim_s, primask_s, basepri_s, faultmask_s, control_s,
  // ...
  EXPECT_EQ(text("p2e"), "00100000");
  EXPECT_EQ(text("p36"), "40000000");
  EXPECT_EQ(text("P37=01000000"), "OK");
  EXPECT_EQ(s.faultmask[kNonSecure], 1u);
  // Another stack pointer becomes the active one.
  s.r[13] = 0x100;
  s.sp[kSecure][1] = 0x200;
  EXPECT_EQ(text("P32=02000000"), "OK");
  EXPECT_EQ(s.r[13], 0x200u);
  EXPECT_EQ(text("p39"), "E01");
  // All at once: CONTROL under its usual name takes effect, its unchanged twin does not.
  std::string all = text("g");
  const size_t control = 2 * 4 * 19;
  ASSERT_EQ(all.substr(control, 8), "02000000");
  all.replace(control, 8, "00000000");
  EXPECT_EQ(text("G" + all), "OK");
  EXPECT_EQ(s.control[kSecure], 0u);
}

}  // namespace
}  // namespace carina::platform
