// SPDX-License-Identifier: Apache-2.0
// The NPU as the driver sees it: registers, memory that it can reach, an interrupt. Suits bare metal, an
// in-process model and an operating system's driver.
#pragma once

#include "carina/span.hpp"

namespace carina::rt {

enum class Access : uint8_t { Read, Write, ReadWrite };
enum class Wait : uint8_t { Interrupt, Timeout };

class Device {
 public:
  /// Register access; `offset` in bytes from the start of the register block, a multiple of 4.
  virtual uint32_t read32(uint32_t offset) = 0;
  virtual void write32(uint32_t offset, uint32_t value) = 0;

  /// Makes `bytes` bytes of host memory reachable by the NPU and returns their bus address; false if that is
  /// impossible. The address keeps the alignment of `host` to at least 16. Every map is followed by an unmap.
  virtual bool map(const void* host, size_t bytes, Access access, uint64_t* busAddress) = 0;
  virtual void unmap(const void* host, size_t bytes) = 0;

  /// Returns when the NPU's interrupt line is (or was) raised, or after `milliseconds` (kForever: never).
  static constexpr uint32_t kForever = 0xffffffffu;
  virtual Wait wait(uint32_t milliseconds) = 0;

  /// Cache maintenance: before the NPU reads what the CPU wrote, and before the CPU reads what the NPU wrote.
  virtual void clean(const void*, size_t) {}
  virtual void invalidate(void*, size_t) {}

 protected:
  ~Device() = default;
};

}  // namespace carina::rt
