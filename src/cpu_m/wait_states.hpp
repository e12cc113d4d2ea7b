// SPDX-License-Identifier: Apache-2.0
// What memories behind the bus cost: cycles until they answer, with the caches of level 1 in front of them.
// Only counts: what is read is always what was written.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "cpu_m/state.hpp"

namespace carina::cpu_m {

class WaitStates {
 public:
  static constexpr uint32_t kLine = 32;                        // bytes
  static constexpr uint32_t kBeat = 8;                         // bytes of the bus
  static constexpr uint32_t kLeastCache = 4, kMostCache = 64;  // KiB

  /// Caches of so many KiB each; a power of two from kLeastCache to kMostCache.
  explicit WaitStates(uint32_t cacheKiB = 32);

  /// The first beat from [address, address + size) comes `cycles` later than from a tightly coupled memory.
  void add(uint32_t address, uint64_t size, uint32_t cycles) {
    regions_.push_back({address, address + size, cycles});
  }
  /// CCR.IC and CCR.DC of a world.
  void setCaches(World world, bool instructions, bool data) {
    instructionsCached_[world] = instructions;
    dataCached_[world] = data;
  }
  /// Whether an access to the address may wait at all.
  bool concerns(uint32_t address) const { return cyclesOf(address) != 0; }

  /// Cycles that a load waits: those of its memory, unless its line is cached; a line that is fetched has as
  /// many beats more as it is long.
  uint32_t load(uint32_t address, World world);
  /// Stores go to a buffer and wait for nothing; a cached line is there afterwards.
  void store(uint32_t address, World world);
  /// Cycles that instructions at [begin, end) wait: for each line that is not cached, or for each beat.
  uint32_t fetch(uint32_t begin, uint32_t end, World world);

 private:
  struct Region {
    uint64_t begin, end;
    uint32_t cycles;
  };
  /// Which lines are cached: sets of ways, which are replaced in turn.
  class Cache {
   public:
    Cache(uint32_t bytes, uint32_t ways);
    /// Whether the line was there; it is afterwards.
    bool touch(uint32_t address);

   private:
    uint32_t ways_, sets_;
    std::vector<uint32_t> lines_;  // [set][way], the number of a line; kNone
    std::vector<uint8_t> next_;    // [set], the way that is replaced
  };
  uint32_t cyclesOf(uint32_t address) const;

  std::vector<Region> regions_;
  Cache instructions_, data_;
  std::array<bool, 2> instructionsCached_{}, dataCached_{};
};

}  // namespace carina::cpu_m
