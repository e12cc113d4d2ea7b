// SPDX-License-Identifier: Apache-2.0
// GDB's remote serial protocol: packets and their answers. Packets come from a socket and are untrusted. The
// protocol: "Debugging with GDB", appendix "Remote Serial Protocol".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "platform/debugger.hpp"

namespace carina::platform {

/// "$payload#checksum", escaped where needed.
std::string framePacket(std::string_view payload);

/// Extracts packets from the bytes of a connection.
class PacketReader {
 public:
  /// Longer packets are dropped.
  static constexpr size_t kMaxPacket = 0x4000;

  enum class Kind : uint8_t {
    Packet,
    Damaged,    // its checksum is wrong
    Interrupt,  // Ctrl-C
  };
  struct Item {
    Kind kind;
    std::string payload;  // without escapes
  };
  /// The next item once a byte completes it.
  std::optional<Item> feed(char byte);

 private:
  enum class State : uint8_t { Between, Payload, FirstDigit, SecondDigit } state_ = State::Between;
  std::string payload_;
  unsigned sum_ = 0, given_ = 0;
  bool escaped_ = false;
};

struct PacketAnswer {
  std::string text;                         // may be empty: not supported
  std::optional<Debugger::Next> next = {};  // the core resumes
  bool silent = false;                      // the answer is sent when the core stops again
  bool withoutAcknowledge = false;          // from the next packet on
};

/// Executes `packet` while the core is stopped because of `event`.
PacketAnswer answerPacket(std::string_view packet, DebugEvent event, DebugTarget& target);
/// "T05...": why the core is stopped.
std::string stopReply(DebugEvent event, const DebugTarget& target);
/// "O...": a line for GDB's console.
std::string consolePacket(std::string_view line);

}  // namespace carina::platform
