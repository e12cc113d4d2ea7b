// SPDX-License-Identifier: Apache-2.0
// The NPU in the address space of a Cortex-M: memory-mapped registers, its interrupt or polling, caches.
#pragma once

#include "carina/device.hpp"
#include "firmware/platform.hpp"

namespace carina::firmware {

class NpuDevice final : public rt::Device {
 public:
  NpuDevice(const Platform& platform, bool poll);
  ~NpuDevice() = default;

  uint32_t read32(uint32_t offset) override;
  void write32(uint32_t offset, uint32_t value) override;
  /// Bus addresses are the CPU's.
  bool map(const void* host, size_t bytes, rt::Access access, uint64_t* busAddress) override;
  void unmap(const void*, size_t) override {}
  rt::Wait wait(uint32_t milliseconds) override;
  void clean(const void* data, size_t bytes) override;
  void invalidate(void* data, size_t bytes) override;

  /// CPU cycles spent in wait().
  uint64_t waited() const { return waited_; }

 private:
  bool sleep(uint64_t cycles);
  bool poll(uint64_t cycles);

  const Platform& platform_;
  bool poll_;
  uint64_t waited_ = 0;
};

}  // namespace carina::firmware
