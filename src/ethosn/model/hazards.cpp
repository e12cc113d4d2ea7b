// SPDX-License-Identifier: Apache-2.0
#include "ethosn/model/hazards.hpp"

namespace carina::ethosn::model {
namespace {

/// Units of these read memory: loads (from DRAM), stores (from SRAM), MCE and PLE stripes, loads of PLE code.
constexpr std::array kReaders = {Counter::DmaRead, Counter::DmaWrite, Counter::MceStripe, Counter::PleStripe,
                                 Counter::PleCodeLoaded};

size_t readerSlot(Counter counter) {
  for (size_t i = 0; i < kReaders.size(); ++i) {
    if (kReaders[i] == counter) return i;
  }
  return 0;
}

/// Loads of PLE code are in the PLE's list, but have their own counter.
bool sameQueue(Counter a, Counter b) {
  const auto queue = [](Counter counter) {
    return counter == Counter::PleCodeLoaded ? Counter::PleStripe : counter;
  };
  return queue(a) == queue(b);
}

}  // namespace

std::optional<Conflict> AccessMap::touch(size_t first, size_t count, size_t step, Access access, bool write,
                                         const Clock& clock) {
  std::optional<Conflict> conflict;
  const size_t slot = readerSlot(access.counter);
  for (size_t i = 0, at = first; i < count && at < cells_.size(); ++i, at += step) {
    Cell& cell = cells_[at];
    const Access writer{static_cast<Counter>(cell.writer & 7), cell.writer >> 3};
    if (!conflict && writer.ordinal != 0 && !sameQueue(writer.counter, access.counter) &&
        clock.done[static_cast<size_t>(writer.counter)] < writer.ordinal) {
      conflict = Conflict{writer, true};
    }
    if (!write) {
      cell.readers[slot] = access.ordinal;
      continue;
    }
    for (size_t r = 0; r < kReaders.size(); ++r) {
      if (conflict || sameQueue(kReaders[r], access.counter) || cell.readers[r] == 0) continue;
      if (clock.done[static_cast<size_t>(kReaders[r])] < cell.readers[r]) {
        conflict = Conflict{{kReaders[r], cell.readers[r]}, false};
      }
    }
    cell.writer = access.ordinal << 3 | static_cast<uint32_t>(access.counter);
  }
  return conflict;
}

}  // namespace carina::ethosn::model
