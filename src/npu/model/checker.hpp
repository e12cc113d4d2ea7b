// SPDX-License-Identifier: Apache-2.0
// Looks for mistakes in a command stream that a functional run cannot see: accesses to memory that an
// unfinished operation still uses (missing waits, too large BLOCKDEP), misaligned addresses, illegal blocks,
// reads of memory that nothing has written (ethosu-command-stream 2.2, 2.3, 4.2, 8).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "npu/model.hpp"

namespace carina::npu::model {

class Checker {
 public:
  explicit Checker(const Target& target) : target_(target) {}

  /// Marks a region as holding data from the start (constants, inputs placed by the caller).
  void assumeInitialized(uint8_t region) { initializedRegions_.insert(region); }
  void assumeInitialized(uint8_t region, uint64_t offset, uint64_t length);
  /// What is known of a region beforehand; unknown ones may be of any size.
  void setRegion(uint8_t region, uint64_t bytes, bool writable) { regions_[region] = {bytes, writable}; }

  /// Every operation in stream order. `unset`: registers it reads that no command has set.
  void add(const Operation& operation, uint32_t offset, std::span<const std::string_view> unset);

  std::vector<Finding> take() { return std::move(findings_); }
  const std::vector<Finding>& findings() const { return findings_; }

 private:
  struct Use {
    int32_t space = 0;  // region, or kInternal
    uint64_t first = 0, last = 0;
    bool write = false;
    const char* what = "";
  };
  struct Pending {
    std::vector<Use> uses;
    uint32_t offset = 0;
    KernelOperation operation;  // kernels only
  };

  std::vector<Use> usesOf(const KernelOperation& op) const;
  std::vector<Use> usesOf(const DmaOperation& op) const;
  void reportConflicts(const std::vector<Use>& uses, const std::deque<Pending>& pending, uint32_t offset,
                       const char* kind, const char* remedy);
  void checkAlignment(const KernelOperation& op, uint32_t offset);
  void checkAlignment(const DmaOperation& op, uint32_t offset);
  void checkBlock(const KernelOperation& op, uint32_t offset);
  void checkBlockDependency(const KernelOperation& op, uint32_t offset);
  void checkInitialized(const std::vector<Use>& uses, uint32_t offset);
  void checkRegions(const std::vector<Use>& uses, uint32_t offset);
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
  std::vector<Finding> findings_;
};

}  // namespace carina::npu::model
