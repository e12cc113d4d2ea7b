// SPDX-License-Identifier: Apache-2.0
#include "platform/npu_port.hpp"

#include <algorithm>
#include <cstring>

namespace carina::platform {

template <typename Visit>
void NpuPort::eachBlock(uint64_t address, uint64_t length, Visit visit) const {
  for (uint64_t from = address, end = address + length; from < end;) {
    const uint64_t to = std::min(end, gates_->blockEnd(static_cast<uint32_t>(from)));
    visit(from, to - from);
    from = to;
  }
}

std::byte* NpuPort::resolve(uint64_t address, uint64_t length, npu::Access access) {
  std::byte* const bytes = bus_.resolve(address, length, access);
  if (bytes == nullptr || gates_ == nullptr) return bytes;
  bool refused = false, error = false;
  eachBlock(address, length, [&](uint64_t from, uint64_t) {
    if (open(from)) return;
    refused = true;
    error = gates_->refused(static_cast<uint32_t>(from), secure_()) || error;
  });
  if (!refused) return bytes;
  uint64_t held = 0;
  for (const StandIn& standIn : standIns_) held += standIn.bytes.size();
  if (error || length > kMostBytes - held) return nullptr;
  StandIn& standIn = standIns_.emplace_back(StandIn{address, access, std::vector<std::byte>(length)});
  eachBlock(address, length, [&](uint64_t from, uint64_t size) {
    if (open(from)) std::memcpy(standIn.bytes.data() + (from - address), bytes + (from - address), size);
  });
  return standIn.bytes.data();
}

void NpuPort::settle() {
  for (const StandIn& standIn : standIns_) {
    if (standIn.access != npu::Access::Write) continue;
    std::byte* const to = bus_.resolve(standIn.address, standIn.bytes.size(), npu::Access::Write);
    eachBlock(standIn.address, standIn.bytes.size(), [&](uint64_t from, uint64_t size) {
      const uint64_t at = from - standIn.address;
      if (open(from)) std::memcpy(to + at, standIn.bytes.data() + at, size);
    });
  }
  // They are no longer written.
  for (StandIn& standIn : standIns_) standIn.access = npu::Access::Read;
}

}  // namespace carina::platform
