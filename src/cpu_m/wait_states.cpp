// SPDX-License-Identifier: Apache-2.0
// The caches are those of the Technical Reference Manuals of Cortex-M55 and M85: lines of 32 bytes, two ways
// for instructions, four for data, 4 to 64 KiB, behind a bus of 64 bits.
#include "cpu_m/wait_states.hpp"

namespace carina::cpu_m {
namespace {

constexpr uint32_t kNone = ~0u;
constexpr uint32_t kInstructionWays = 2, kDataWays = 4;
/// Beats of a line after its first one.
constexpr uint32_t kRest = WaitStates::kLine / WaitStates::kBeat - 1;

}  // namespace

WaitStates::Cache::Cache(uint32_t bytes, uint32_t ways)
    : ways_(ways), sets_(bytes / kLine / ways), lines_(size_t{ways} * sets_, kNone), next_(sets_) {}

bool WaitStates::Cache::touch(uint32_t address) {
  const uint32_t line = address / kLine, set = line % sets_;
  uint32_t* const ways = &lines_[size_t{set} * ways_];
  for (uint32_t way = 0; way < ways_; ++way) {
    if (ways[way] == line) return true;
  }
  ways[next_[set]] = line;
  next_[set] = static_cast<uint8_t>((next_[set] + 1u) % ways_);
  return false;
}

WaitStates::WaitStates(uint32_t cacheKiB)
    : instructions_(cacheKiB * 1024, kInstructionWays), data_(cacheKiB * 1024, kDataWays) {}

uint32_t WaitStates::cyclesOf(uint32_t address) const {
  for (const Region& region : regions_) {
    if (address >= region.begin && address < region.end) return region.cycles;
  }
  return 0;
}

uint32_t WaitStates::load(uint32_t address, World world) {
  const uint32_t cycles = cyclesOf(address);
  if (cycles == 0 || !dataCached_[world]) return cycles;
  return data_.touch(address) ? 0 : cycles + kRest;
}

void WaitStates::store(uint32_t address, World world) {
  if (dataCached_[world] && concerns(address)) data_.touch(address);
}

uint32_t WaitStates::fetch(uint32_t begin, uint32_t end, World world) {
  const uint32_t cycles = cyclesOf(begin);
  if (cycles == 0) return 0;
  const bool cached = instructionsCached_[world];
  const uint32_t step = cached ? kLine : kBeat;
  uint32_t result = 0;
  for (uint64_t at = begin & ~(step - 1); at < end; at += step) {
    if (!cached) result += cycles;
    if (cached && !instructions_.touch(static_cast<uint32_t>(at))) result += cycles + kRest;
  }
  return result;
}

}  // namespace carina::cpu_m
