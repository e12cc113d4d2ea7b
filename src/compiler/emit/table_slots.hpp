// SPDX-License-Identifier: Apache-2.0
// Which lookup tables are in the on-chip table memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace carina::compiler {

constexpr size_t kTableSlots = 8;
constexpr int64_t kTableSlotBytes = 256;

/// A table in the constants.
struct StoredTable {
  int64_t constant = -1;  // offset; -1: none
  int64_t bytes = 0;      // a multiple of the slot size, or less

  int64_t end() const { return constant + bytes; }
  size_t slots() const { return static_cast<size_t>(std::max<int64_t>(bytes / kTableSlotBytes, 1)); }
  bool operator==(const StoredTable&) const = default;
};

/// Slots of 256 bytes, replaced least recently used first.
class TableSlots {
 public:
  struct Place {
    uint8_t slot = 0;
    bool load = false;
  };

  /// Returns where the first of the tables is from now on, and whether they have to be loaded, all of them
  /// into consecutive slots. Together they take at most kTableSlots slots; if there are several, each takes
  /// one.
  Place use(std::span<const StoredTable> tables) {
    ++clock_;
    if (const size_t slot = find(tables.front()); slot < kTableSlots) {
      mark(slot, tables.front().slots());
      return {static_cast<uint8_t>(slot), false};
    }
    const size_t size = tables.size() == 1 ? tables.front().slots() : tables.size();
    // A wide table is at a multiple of its size.
    const size_t step = tables.size() == 1 ? size : 1;
    size_t best = 0;
    int64_t oldest = clock_ + 1;
    for (size_t s = 0; s + size <= kTableSlots; s += step) {
      const int64_t age = *std::max_element(used_.begin() + static_cast<std::ptrdiff_t>(s),
                                            used_.begin() + static_cast<std::ptrdiff_t>(s + size));
      if (age < oldest) {
        oldest = age;
        best = s;
      }
    }
    for (size_t s = 0; s < best + size; ++s) {
      if (s + content_[s].slots() > best) content_[s] = {};  // in these slots, or extending into them
    }
    for (size_t n = 0; n < tables.size(); ++n) content_[best + n] = tables[n];
    mark(best, size);
    return {static_cast<uint8_t>(best), true};
  }

  bool holds(const StoredTable& table) const { return find(table) < kTableSlots; }

  /// Marks a table that is present as needed again soon. Returns whether it was not marked before.
  bool touch(const StoredTable& table) {
    const size_t slot = find(table);
    const bool fresh = used_[slot] != clock_ + 1;
    for (size_t s = slot; s < slot + table.slots(); ++s) used_[s] = clock_ + 1;
    return fresh;
  }

  void forget() { content_.fill({}); }

 private:
  size_t find(const StoredTable& table) const {
    return static_cast<size_t>(std::find(content_.begin(), content_.end(), table) - content_.begin());
  }
  void mark(size_t slot, size_t size) {
    for (size_t s = slot; s < slot + size; ++s) used_[s] = clock_;
  }

  std::array<StoredTable, kTableSlots> content_{};  // each at its first slot
  std::array<int64_t, kTableSlots> used_{};
  int64_t clock_ = 0;
};

}  // namespace carina::compiler
