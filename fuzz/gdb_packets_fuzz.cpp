// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes from a debugger: no packet accesses anything beyond the target, and answers can be framed.
#include <array>
#include <cstring>

#include "platform/gdb_packets.hpp"
#include "target.hpp"

namespace carina::gdb_packets_fuzz {

namespace {

using namespace carina::platform;

/// 64 bytes of memory at 0x1000.
class Target final : public DebugTarget {
 public:
  State& registers() override { return registers_; }
  bool read(uint32_t address, std::span<std::byte> bytes) override {
    if (!inside(address, bytes.size())) return false;
    if (!bytes.empty()) std::memcpy(bytes.data(), &memory_[address - kBase], bytes.size());
    return true;
  }
  bool write(uint32_t address, std::span<const std::byte> bytes) override {
    if (!inside(address, bytes.size())) return false;
    if (!bytes.empty()) std::memcpy(&memory_[address - kBase], bytes.data(), bytes.size());
    return true;
  }
  bool setBreakpoint(uint32_t address) override { return inside(address, 2); }
  void clearBreakpoint(uint32_t) override {}
  bool setWatchpoint(const WatchedRange& range) override { return inside(range.address, range.size); }
  void clearWatchpoint(const WatchedRange&) override {}
  WatchedRange accessed() const override { return {kBase, 1, true, true}; }

 private:
  static constexpr uint32_t kBase = 0x1000;
  bool inside(uint32_t address, size_t size) const {
    return address >= kBase && address - kBase < memory_.size() && size <= memory_.size() - (address - kBase);
  }
  State registers_{};
  std::array<std::byte, 64> memory_{};
};

}  // namespace

CARINA_FUZZ_TARGET(gdb_packets) {
  Target target;
  PacketReader reader;
  for (size_t i = 0; i < size; ++i) {
    const auto item = reader.feed(static_cast<char>(data[i]));
    if (!item || item->kind != PacketReader::Kind::Packet) continue;
    const PacketAnswer answer = answerPacket(item->payload, DebugEvent::Breakpoint, target);
    PacketReader back;
    std::optional<PacketReader::Item> read;
    for (const char byte : framePacket(answer.text)) read = back.feed(byte);
    if (!read || read->kind != PacketReader::Kind::Packet || read->payload != answer.text) __builtin_trap();
  }
  // The same bytes as one packet, so that checksums do not stop the fuzzer.
  (void)answerPacket({reinterpret_cast<const char*>(data), size}, DebugEvent::Fault, target);
  return 0;
}

}  // namespace carina::gdb_packets_fuzz
