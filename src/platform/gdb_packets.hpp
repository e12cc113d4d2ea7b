// SPDX-License-Identifier: Apache-2.0
// GDB's remote serial protocol: what each packet asks for, and the answer. Packets come from a socket and are
// not trusted. The protocol: "Debugging with GDB", appendix "Remote Serial Protocol".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "platform/debugger.hpp"

namespace carina::platform {

/// "$payload#checksum", with what needs it escaped.
std::string framePacket(std::string_view payload);

/// Takes packets out of the bytes of a connection.
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
  std::optional<Debugger::Next> next = {};  // the core goes on
  bool silent = false;                      // the answer comes when the core stops again
  bool withoutAcknowledge = false;          // from the next packet on
};

/// What `packet` asks for while the core stands still because of `event`.
PacketAnswer answerPacket(std::string_view packet, DebugEvent event, DebugTarget& target);
/// "T05...": why the core stands still.
std::string stopReply(DebugEvent event, const DebugTarget& target);
/// "O...": a line for GDB's console.
std::string consolePacket(std::string_view line);

}  // namespace carina::platform
