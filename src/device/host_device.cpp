// SPDX-License-Identifier: Apache-2.0
#include "device/host_device.hpp"

#include <algorithm>

namespace carina::device {

bool HostDevice::map(const void* host, size_t bytes, rt::Access access, uint64_t* busAddress) {
  constexpr uint64_t kPage = 4096;
  const uint64_t limit =
      npu_.machine().target->architecture().addressBits == 32 ? uint64_t{1} << 32 : uint64_t{1} << 40;
  if (mapped_.empty()) next_ = kBase;
  if (bytes == 0 || bytes > limit - next_) return false;
  // An unmapped guard page follows each buffer: overrunning it is a bus fault.
  *busAddress = next_;
  next_ += (bytes + 2 * kPage - 1) / kPage * kPage;
  if (access == rt::Access::Read) {
    memory_.map(*busAddress, std::span(static_cast<const std::byte*>(host), bytes));
  } else {
    memory_.map(*busAddress, std::span(static_cast<std::byte*>(const_cast<void*>(host)), bytes), true);
  }
  mapped_.emplace(host, Mapping{*busAddress, bytes, access});
  return true;
}

void HostDevice::unmap(const void* host, size_t) {
  const auto entry = mapped_.find(host);
  if (entry == mapped_.end()) return;
  memory_.unmap(entry->second.address);
  mapped_.erase(entry);
}

rt::Wait HostDevice::wait(uint32_t) {
  uint64_t memory = 0;
  for (const auto& [host, mapping] : mapped_) memory += mapping.bytes;
  const int64_t left = budget_ == nullptr ? options_.maxRunWork : budget_->left();
  npu_.setLimits(std::min(options_.maxRunWork, left),
                 std::min(options_.maxOperationBytes, npu::operationBytesFor(memory)));
  npu_.run();
  stats_ = npu_.stats();
  if (budget_ != nullptr) budget_->spend(stats_.work);
  fault_ = npu_.fault();
  findings_ = npu_.findings();
  return npu_.interrupt() ? rt::Wait::Interrupt : rt::Wait::Timeout;
}

}  // namespace carina::device
