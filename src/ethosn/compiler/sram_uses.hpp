// SPDX-License-Identifier: Apache-2.0
// How long emitted commands use the bytes of an SRAM bank. Commands that overwrite them wait for that and for
// nothing else, so that transfers of a pass overlap with preceding passes.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "ethosn/stream/command_stream.hpp"

namespace carina::ethosn::compiler {

/// For each counter, the value at which all uses are over (0: none).
using Until = std::array<uint32_t, kCounters>;

/// Addresses are bytes in a bank; all banks are used alike.
class SramUses {
 public:
  /// The end of all uses of bytes in [from, to).
  Until until(int64_t from, int64_t to) const;
  /// Adds a use of the bytes.
  void add(int64_t from, int64_t to, const Until& until) { put(from, to, until, true); }
  /// Replaces the uses of bytes that are overwritten by something that has waited for the previous ones.
  void replace(int64_t from, int64_t to, const Until& until) { put(from, to, until, false); }

 private:
  struct Range {
    int64_t to = 0;
    Until until{};
  };
  void splitAt(int64_t address);
  void put(int64_t from, int64_t to, const Until& until, bool keep);

  std::map<int64_t, Range> ranges_;  // by their first byte; disjoint
};

}  // namespace carina::ethosn::compiler
