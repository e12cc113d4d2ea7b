// SPDX-License-Identifier: Apache-2.0
// MappedMemory and the text forms of the model's public types (model.hpp).
#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"
#include "npu/model/model.hpp"

namespace carina::npu {

void MappedMemory::map(uint64_t address, std::span<std::byte> bytes, bool writable) {
  if (bytes.empty()) return;
  CARINA_CHECK(address + bytes.size() > address, "a mapping ends below 2^64");
  const auto at = std::lower_bound(ranges_.begin(), ranges_.end(), address,
                                   [](const Range& range, uint64_t a) { return range.address < a; });
  CARINA_CHECK(at == ranges_.end() || address + bytes.size() <= at->address, "mappings do not overlap");
  CARINA_CHECK(at == ranges_.begin() || (at - 1)->address + (at - 1)->length <= address,
               "mappings do not overlap");
  ranges_.insert(at, Range{address, bytes.size(), bytes.data(), writable});
}

void MappedMemory::map(uint64_t address, std::span<const std::byte> bytes) {
  // Read-only ranges are never handed out for writing, so the bytes are not modified.
  map(address, {const_cast<std::byte*>(bytes.data()), bytes.size()}, false);
}

void MappedMemory::unmap(uint64_t address) {
  std::erase_if(ranges_, [&](const Range& range) { return range.address == address; });
}

std::byte* MappedMemory::resolve(uint64_t address, uint64_t length, Access access) {
  auto at = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                             [](uint64_t a, const Range& range) { return a < range.address; });
  if (at == ranges_.begin()) return nullptr;
  --at;
  const uint64_t offset = address - at->address;
  if (offset >= at->length || length > at->length - offset) return nullptr;
  if (access == Access::Write && !at->writable) return nullptr;
  return at->bytes + offset;
}

const char* faultKindName(FaultKind kind) {
  switch (kind) {
    case FaultKind::Parse:
      return "illegal command";
    case FaultKind::Bus:
      return "bus fault";
    case FaultKind::WeightStream:
      return "weight stream fault";
    case FaultKind::Branch:
      return "illegal branch";
    case FaultKind::Limit:
      return "model limit";
  }
  return "?";
}

std::string Fault::str() const {
  return fmt::format("{} at offset 0x{:x}: {}", faultKindName(kind), offset, reason);
}

}  // namespace carina::npu
