// SPDX-License-Identifier: Apache-2.0
// The part of the checker that tracks lookup tables: what the table memory holds, and whether each operation
// finds its table there (ethosu-command-stream 7.3).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "npu/isa/operation.hpp"
#include "npu/targets/target.hpp"

namespace carina::npu::model {

/// Bytes [first, last] of internal memory (SHRAM or LUT RAM).
struct TableRange {
  uint64_t first = 0, last = 0;
};
/// Location of the table of `activation`; nothing if it uses no table memory.
std::optional<TableRange> tableRange(const Target& target, const Activation& activation);

class TableTracker {
 public:
  /// Called with the byte offset of the faulty command, and the reason.
  using Report = std::function<void(uint32_t offset, std::string message)>;

  TableTracker(const Target& target, Report report) : target_(target), report_(std::move(report)) {}

  /// A DMA; those that do not write internal memory are ignored.
  void add(const DmaOperation& dma, uint32_t offset);
  void add(const KernelOperation& op, uint32_t offset);
  /// Marks the contents of the table memory as unknown: another path may lead to the next command.
  void forget();

 private:
  struct Source {
    uint8_t region = 0;
    uint64_t address = 0, length = 0;
    friend auto operator<=>(const Source&, const Source&) = default;  // NOLINT(modernize-use-nullptr)
  };
  /// One table load, or the accumulators of an operation that occupy table memory.
  struct Load {
    uint32_t offset = 0;  // of the command
    bool table = true;
    bool used = false;
    Source source;
    uint64_t address = 0;               // where it was loaded to
    std::vector<TableRange> uses;       // distinct ranges of it that operations used
    std::vector<uint32_t> usesOffsets;  // the first operation of each
  };
  /// A piece of table memory that still holds what `load` put there.
  struct Piece {
    TableRange range;
    size_t load = 0;
  };
  struct SharedTable {
    uint32_t earlier = 0, later = 0, loaded = 0;
    uint64_t length = 0;
    uint32_t slot = 0;
  };

  void write(TableRange range, Load load);
  void use(TableRange range, const KernelOperation& op, uint32_t offset);
  void followChain(const KernelOperation& op, uint32_t offset, std::optional<TableRange> range);
  void reportShared(const SharedTable& shared);
  /// Whether different tables of this size have been loaded so far.
  bool severalTables(uint64_t length) const;

  const Target& target_;
  Report report_;
  bool known_ = true;  // false after a branch: memory that no load has filled since is not reported
  std::vector<Load> loads_;
  std::vector<Piece> pieces_;  // disjoint
  std::set<Source> sources_;
  bool chainOpen_ = false;
  uint32_t chainStart_ = 0;
  struct Member {
    TableRange range;
    uint32_t offset = 0;
  };
  std::vector<Member> chainTables_;
  std::vector<SharedTable> waiting_;
};

}  // namespace carina::npu::model
