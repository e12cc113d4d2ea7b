// SPDX-License-Identifier: Apache-2.0
// Wait states of the memories behind the bus, with level 1 caches in front of them. Models cycles only: reads
// always return the latest write.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "cpu_m/state.hpp"

namespace carina::cpu_m {

class WaitStates {
 public:
  static constexpr uint32_t kLine = 32;                     // bytes
  static constexpr uint32_t kBeat = 8;                      // bytes; bus width
  static constexpr uint32_t kMinCache = 4, kMaxCache = 64;  // KiB

  /// Size of each cache in KiB, a power of two from kMinCache to kMaxCache.
  explicit WaitStates(uint32_t cacheKiB = 32);

  /// The first beat from [address, address + size) arrives `cycles` later than from a tightly coupled memory.
  void add(uint32_t address, uint64_t size, uint32_t cycles) {
    regions_.push_back({address, address + size, cycles});
  }
  /// CCR.IC and CCR.DC of a world.
  void setCaches(World world, bool instructions, bool data) {
    instructionsCached_[world] = instructions;
    dataCached_[world] = data;
  }
  /// Whether accesses to the address may wait.
  bool concerns(uint32_t address) const { return cyclesOf(address) != 0; }

  /// Cycles that a load waits: those of its memory, unless its line is cached; a line fill adds the remaining
  /// beats of the line.
  uint32_t load(uint32_t address, World world);
  /// Stores are buffered and do not wait; if the data cache is on, they allocate their line.
  void store(uint32_t address, World world);
  /// Cycles that fetching [begin, end) waits: per line that is not cached or, without the cache, per beat.
  uint32_t fetch(uint32_t begin, uint32_t end, World world);

 private:
  struct Region {
    uint64_t begin, end;
    uint32_t cycles;
  };
  /// Which lines are cached: set-associative, with round-robin replacement.
  class Cache {
   public:
    Cache(uint32_t bytes, uint32_t ways);
    /// Returns whether the line was cached; it is afterwards.
    bool touch(uint32_t address);

   private:
    uint32_t ways_, sets_;
    std::vector<uint32_t> lines_;  // [set][way], line number or kNone
    std::vector<uint8_t> next_;    // [set], the way to replace next
  };
  uint32_t cyclesOf(uint32_t address) const;

  std::vector<Region> regions_;
  Cache instructions_, data_;
  std::array<bool, 2> instructionsCached_{}, dataCached_{};
};

}  // namespace carina::cpu_m
