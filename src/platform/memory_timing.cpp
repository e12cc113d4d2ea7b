// SPDX-License-Identifier: Apache-2.0
#include "platform/memory_timing.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "base/result.hpp"
#include "platform/parse_number.hpp"

namespace carina::platform {
namespace {

constexpr uint32_t kMostCycles = 10'000;

/// "boot ROM" is boot-rom.
std::string optionName(const RamBlock& memory) {
  std::string name(memory.name);
  for (char& c : name) c = c == ' ' ? '-' : static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return name;
}

bool isTightlyCoupled(const RamBlock& memory) {
  return memory.name == "ITCM" || memory.name == "DTCM";
}

std::string knownNames(const Board& board) {
  std::string names;
  for (const RamBlock& memory : board.ram) {
    if (!isTightlyCoupled(memory)) names += optionName(memory) + ", ";
  }
  return names + "cache";
}

Result<uint32_t> numberWithin(std::string_view text, std::string_view name, uint32_t least, uint32_t most) {
  const auto value = parseNumber<uint32_t>(text);
  if (value && *value >= least && *value <= most) return *value;
  return fail(Code::BadOption, "{}={} is not a number from {} to {}", name, text, least, most);
}

}  // namespace

Result<MemoryTiming> parseMemoryTiming(std::string_view text, const Board& board) {
  MemoryTiming timing;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view entry = text.substr(0, comma);
    text = comma == text.npos ? std::string_view() : text.substr(comma + 1);
    const size_t equals = entry.find('=');
    const std::string_view name = entry.substr(0, equals);
    const std::string_view value = equals == entry.npos ? std::string_view() : entry.substr(equals + 1);
    if (name == "cache") {
      CARINA_TRY(timing.cacheKiB,
                 numberWithin(value, name, cpu_m::WaitStates::kMinCache, cpu_m::WaitStates::kMaxCache));
      if (!std::has_single_bit(timing.cacheKiB))
        return fail(Code::BadOption, "a cache cannot have {} KiB", timing.cacheKiB)
            .withRemedy("choose 4, 8, 16, 32 or 64");
      continue;
    }
    const auto memory = std::find_if(board.ram.begin(), board.ram.end(),
                                     [name](const RamBlock& block) { return optionName(block) == name; });
    if (memory == board.ram.end())
      return fail(Code::BadOption, "'{}' is not a memory of {}", name, board.name)
          .withRemedy("write NAME=CYCLES with one of " + knownNames(board));
    if (isTightlyCoupled(*memory))
      return fail(Code::BadOption, "{} is tightly coupled: it has no wait states", memory->name)
          .withRemedy("leave it out");
    CARINA_TRY(const uint32_t cycles, numberWithin(value, name, 0, kMostCycles));
    timing.entries.push_back({&*memory, cycles});
  }
  return timing;
}

std::optional<cpu_m::WaitStates> waitStatesOf(const MemoryTiming& timing) {
  std::optional<cpu_m::WaitStates> waits;
  for (const MemoryTiming::Entry& entry : timing.entries) {
    if (entry.cycles == 0) continue;
    if (!waits) waits.emplace(timing.cacheKiB);
    waits->add(entry.memory->address, entry.memory->size, entry.cycles);
    if (entry.memory->alias != entry.memory->address)
      waits->add(entry.memory->alias, entry.memory->size, entry.cycles);
  }
  return waits;
}

}  // namespace carina::platform
