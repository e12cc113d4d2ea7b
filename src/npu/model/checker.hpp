// SPDX-License-Identifier: Apache-2.0
// Finds errors in a command stream that a functional run does not reveal: accesses to memory that an
// unfinished operation still uses (missing waits, BLOCKDEP too large), misaligned addresses, illegal blocks,
// reads of memory that nothing has written, missing tables, inconsistent feature maps (ethosu-command-stream
// 2.2, 2.3, 4.2, 8).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "npu/model/memory_uses.hpp"
#include "npu/model/model.hpp"
#include "npu/model/table_tracker.hpp"

namespace carina::npu::model {

class Checker {
 public:
  explicit Checker(const Target& target)
      : target_(target), tables_(target, [this](uint32_t offset, std::string message) {
          find(Finding::Kind::Table, offset, std::move(message));
        }) {}
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;

  /// Marks a region as holding data from the start (constants, inputs placed by the caller).
  void assumeInitialized(uint8_t region) { initializedRegions_.insert(region); }
  void assumeInitialized(uint8_t region, uint64_t offset, uint64_t length);
  /// Size and access of a region; regions that are not set may have any size.
  void setRegion(uint8_t region, uint64_t bytes, bool writable) { regions_[region] = {bytes, writable}; }

  /// To be called for every operation in stream order. `unset`: registers that it reads but no command has
  /// set.
  void add(const Operation& operation, uint32_t offset, std::span<const std::string_view> unset);

  /// All findings, in the order of the commands.
  std::vector<Finding> take();

 private:
  struct Pending {
    std::vector<MemoryUse> uses;
    uint32_t offset = 0;
    KernelOperation operation;  // kernels only
  };

  void reportConflicts(const std::vector<MemoryUse>& uses, const std::deque<Pending>& pending,
                       uint32_t offset, const char* kind, const char* remedy);
  void checkAlignment(const KernelOperation& op, uint32_t offset);
  void checkAlignment(const DmaOperation& op, uint32_t offset);
  void checkBlock(const KernelOperation& op, uint32_t offset);
  void checkFlag(uint32_t offset);
  void checkBlockDependency(const KernelOperation& op, uint32_t offset);
  void checkInitialized(const std::vector<MemoryUse>& uses, uint32_t offset);
  void checkRegions(const std::vector<MemoryUse>& uses, uint32_t offset);
  void find(Finding::Kind kind, uint32_t offset, std::string message);

  const Target& target_;
  std::deque<Pending> kernels_, dmas_;
  std::map<int32_t, std::map<uint64_t, uint64_t>> written_;  // per space: first -> last of disjoint ranges
  std::set<uint8_t> initializedRegions_;
  struct Region {
    uint64_t bytes;
    bool writable;
  };
  std::map<uint8_t, Region> regions_;
  bool flagKnown_ = false;  // the latest kernel operation wrote one element and so set the result flag
  TableTracker tables_;
  std::vector<Finding> findings_;
};

}  // namespace carina::npu::model
