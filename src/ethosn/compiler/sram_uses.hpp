// SPDX-License-Identifier: Apache-2.0
// Until when the bytes of an SRAM bank are in use by commands that have been emitted: what overwrites them
// waits for that and for nothing else, so that transfers of a pass overlap with the passes in front of it.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "ethosn/stream/command_stream.hpp"

namespace carina::ethosn::compiler {

/// Counters, and the values at which all uses are over (0: none).
using Until = std::array<uint32_t, kCounters>;

/// Addresses are bytes of a bank; all banks are used alike.
class SramUses {
 public:
  /// Of any byte in [from, to).
  Until until(int64_t from, int64_t to) const;
  /// The bytes have a further use.
  void add(int64_t from, int64_t to, const Until& until) { put(from, to, until, true); }
  /// The bytes are overwritten by something that has waited for what was there: nothing but its own uses
  /// counts.
  void replace(int64_t from, int64_t to, const Until& until) { put(from, to, until, false); }

 private:
  struct Range {
    int64_t to = 0;
    Until until{};
  };
  void splitAt(int64_t address);
  void put(int64_t from, int64_t to, const Until& until, bool keep);

  std::map<int64_t, Range> ranges_;  // by their first byte; apart from each other
};

}  // namespace carina::ethosn::compiler
