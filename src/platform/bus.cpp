// SPDX-License-Identifier: Apache-2.0
#include "platform/bus.hpp"

#include <cstring>

namespace carina::platform {

Result<Bus> Bus::create(const Board& board) {
  uint64_t total = 0;
  for (const RamBlock& block : board.ram) total += block.size;
  CARINA_TRY(GuestMemory memory, GuestMemory::create(total));
  Bus bus(std::move(memory));
  uint64_t offset = 0;
  for (const RamBlock& block : board.ram) {
    bus.mappings_.push_back({&block, offset});
    offset += block.size;
  }
  return bus;
}

const Bus::Mapping* Bus::at(uint64_t address, uint64_t length, uint64_t* offset) const {
  for (const Mapping& mapping : mappings_) {
    for (const uint64_t base : {mapping.block->address, mapping.block->alias}) {
      if (address < base || address - base > mapping.block->size) continue;
      if (length > mapping.block->size - (address - base)) continue;
      *offset = mapping.offset + (address - base);
      return &mapping;
    }
  }
  return nullptr;
}

std::byte* Bus::find(uint64_t address, uint64_t length) const {
  uint64_t offset = 0;
  return at(address, length, &offset) == nullptr ? nullptr : memory_.bytes().data() + offset;
}

std::byte* Bus::resolve(uint64_t address, uint64_t length, npu::Access) {
  uint64_t offset = 0;
  const Mapping* mapping = at(address, length, &offset);
  return mapping == nullptr || !mapping->block->npu ? nullptr : memory_.bytes().data() + offset;
}

std::optional<uint32_t> Bus::load32(uint32_t address) const {
  const std::byte* from = find(address, 4);
  if (from == nullptr) return std::nullopt;
  uint32_t value = 0;
  std::memcpy(&value, from, 4);
  return value;
}

bool Bus::store32(uint32_t address, uint32_t value) const {
  std::byte* to = find(address, 4);
  if (to != nullptr) std::memcpy(to, &value, 4);
  return to != nullptr;
}

std::string_view Bus::nameOf(uint32_t address) const {
  uint64_t offset = 0;
  const Mapping* mapping = at(address, 1, &offset);
  return mapping == nullptr ? std::string_view{} : mapping->block->name;
}

}  // namespace carina::platform
