// SPDX-License-Identifier: Apache-2.0
// The checker's view of table memory (table_tracker.hpp).
#include "npu/model/table_tracker.hpp"

#include <algorithm>

#include "npu/isa/blockconfig.hpp"
#include "npu/model/operation_fault.hpp"
#include "npu/model/output_stage.hpp"

namespace carina::npu::model {
namespace {

constexpr uint64_t kSlotBytes = 256;

uint64_t tableBase(const Target& target) {
  return target.tableMemoryStart();
}

bool meet(TableRange a, TableRange b) {
  return a.first <= b.last && b.first <= a.last;
}

bool isChained(const KernelOperation& op) {
  return op.ifm.storage == Storage::Chained || (op.ifm2 && op.ifm2->storage == Storage::Chained);
}

}  // namespace

std::optional<TableRange> tableRange(const Target& target, const Activation& activation) {
  if (!usesTableMemory(target, activation)) return std::nullopt;
  const uint64_t first = tableBase(target) + uint64_t{activation.slot} * kSlotBytes;
  return TableRange{first, first + static_cast<uint64_t>(tableBytes(activation.table)) - 1};
}

void TableTracker::forget() {
  known_ = false;
  pieces_.clear();
  chainOpen_ = false;
  chainTables_.clear();
}

void TableTracker::add(const DmaOperation& dma, uint32_t offset) {
  if (!dma.destination.internal || dma.length == 0) return;
  const uint64_t base = tableBase(target_);
  const bool plain = dma.dimensions <= 1 && dma.destinationDimensions <= 1 && !dma.source.indexed;
  if (!plain || dma.length > kTableMemoryBytes || dma.destination.address < base) {
    forget();  // tables assembled by strided DMAs are not tracked
    return;
  }
  if (chainOpen_) {
    report_(offset, fmt::format("a table is loaded between the operations of the chain that begins at offset "
                                "0x{:x}, which run at the same time",
                                chainStart_));
  }
  Load load;
  load.offset = offset;
  load.source = {dma.source.region, dma.source.address, dma.length};
  load.address = dma.destination.address;
  sources_.insert(load.source);
  const uint64_t length = load.source.length;
  const TableRange written{load.address, load.address + length - 1};
  write(written, std::move(load));
  if (!severalTables(length)) return;
  const auto ready = std::stable_partition(waiting_.begin(), waiting_.end(),
                                           [&](const SharedTable& s) { return s.length != length; });
  for (auto it = ready; it != waiting_.end(); ++it) reportShared(*it);
  waiting_.erase(ready, waiting_.end());
}

void TableTracker::write(TableRange range, Load load) {
  std::vector<Piece> kept;
  for (const Piece& piece : pieces_) {
    if (!meet(piece.range, range)) {
      kept.push_back(piece);
      continue;
    }
    Load& old = loads_[piece.load];
    if (old.table && !old.used) {
      report_(
          load.offset,
          fmt::format("{} overwrite{} the table that was loaded at offset 0x{:x} before any operation has "
                      "used it",
                      load.table ? "this load" : "the accumulators of this operation", load.table ? "s" : "",
                      old.offset));
      old.used = true;  // report once
    }
    if (piece.range.first < range.first) kept.push_back({{piece.range.first, range.first - 1}, piece.load});
    if (piece.range.last > range.last) kept.push_back({{range.last + 1, piece.range.last}, piece.load});
  }
  kept.push_back({range, loads_.size()});
  pieces_ = std::move(kept);
  loads_.push_back(std::move(load));
}

bool TableTracker::severalTables(uint64_t length) const {
  return std::count_if(sources_.begin(), sources_.end(),
                       [&](const Source& source) { return source.length == length; }) > 1;
}

void TableTracker::reportShared(const SharedTable& shared) {
  report_(shared.earlier,
          fmt::format("this operation and the one at offset 0x{:x} of the same chain both use the table in "
                      "slot {}, loaded at offset 0x{:x}, though the stream has other tables of its size: "
                      "unless both compute the same function, one of them computes the other's",
                      shared.later, shared.slot, shared.loaded));
}

/// Operations of a U85 chain run at the same time: nothing can be loaded between them.
void TableTracker::followChain(const KernelOperation& op, uint32_t offset, std::optional<TableRange> range) {
  if (!isChained(op)) {
    chainTables_.clear();
    chainStart_ = offset;
  }
  if (range) {
    for (const Member& member : chainTables_) {
      if (!meet(member.range, *range)) continue;
      SharedTable shared{member.offset, offset, 0, range->last - range->first + 1, op.activation.slot};
      for (const Piece& piece : pieces_) {
        if (meet(piece.range, *range)) shared.loaded = loads_[piece.load].offset;
      }
      if (severalTables(shared.length)) {
        reportShared(shared);
      } else {
        waiting_.push_back(shared);
      }
      break;
    }
    chainTables_.push_back({*range, offset});
  }
  chainOpen_ = op.ofm.storage == Storage::Chained;
}

void TableTracker::add(const KernelOperation& op, uint32_t offset) {
  const std::optional<TableRange> range = tableRange(target_, op.activation);
  if (range) {
    use(*range, op, offset);
  } else if (target_.tablesShareAccumulators()) {
    // U55-32/64: accumulators (for elementwise operations: the inputs) are in the same banks as tables.
    Load accumulators;
    accumulators.offset = offset;
    accumulators.table = false;
    const uint64_t base = tableBase(target_);
    write({base, base + kTableMemoryBytes - 1}, std::move(accumulators));
  }
  if (target_.architecture().chains) followChain(op, offset, range);
}

void TableTracker::use(TableRange range, const KernelOperation& op, uint32_t offset) {
  const auto say = [&](std::string why) {
    report_(offset, fmt::format("table slot {}: {}", op.activation.slot, why));
  };
  std::vector<Piece> found;
  uint64_t covered = 0;
  for (const Piece& piece : pieces_) {
    if (!meet(piece.range, range)) continue;
    found.push_back(piece);
    covered += std::min(piece.range.last, range.last) - std::max(piece.range.first, range.first) + 1;
  }
  const uint64_t bytes = range.last - range.first + 1;
  for (const Piece& piece : found) {
    const Load& load = loads_[piece.load];
    if (!load.table) {
      return say(
          fmt::format("the accumulators of the operation at offset 0x{:x} have overwritten it, and no table "
                      "has been loaded since",
                      load.offset));
    }
  }
  if (covered < bytes) {
    if (known_ && covered == 0) say("no table was loaded");
    if (covered > 0) {
      say(
          fmt::format("the operation reads a table of {} bytes, but the load at offset 0x{:x} put {} bytes "
                      "there",
                      bytes, loads_[found.front().load].offset, covered));
    }
    return;
  }
  // A table may be loaded in pieces that are contiguous in memory.
  const Load& first = loads_[found.front().load];
  const auto origin = [](const Load& load) { return load.source.address - load.address; };
  for (const Piece& piece : found) {
    const Load& load = loads_[piece.load];
    if (load.source.region == first.source.region && origin(load) == origin(first)) continue;
    return say(fmt::format("holds parts of the tables that were loaded at offsets 0x{:x} and 0x{:x}",
                           first.offset, load.offset));
  }
  for (const Piece& piece : found) {
    Load& load = loads_[piece.load];
    load.used = true;
    bool known = false;
    for (size_t i = 0; i < load.uses.size(); ++i) {
      if (!meet(load.uses[i], range)) continue;
      known = true;
      if (load.uses[i].first == range.first && load.uses[i].last == range.last) continue;
      return say(
          fmt::format("the table loaded at offset 0x{:x} has {} bytes from slot {} for the operation at "
                      "offset 0x{:x}, but {} bytes for this one",
                      load.offset, load.uses[i].last - load.uses[i].first + 1,
                      (load.uses[i].first - tableBase(target_)) / kSlotBytes, load.usesOffsets[i], bytes));
    }
    if (known) continue;
    load.uses.push_back(range);
    load.usesOffsets.push_back(offset);
  }
}

}  // namespace carina::npu::model
