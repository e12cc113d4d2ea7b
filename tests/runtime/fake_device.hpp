// SPDX-License-Identifier: Apache-2.0
// A device that only records the driver's accesses, and payloads that do nothing.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "carina/ethosu_driver.hpp"
#include "format/ethosu_payload.hpp"
#include "format/ethosu_registers.hpp"

namespace carina::rt {

namespace reg = format::ethosu_reg;
namespace status = format::ethosu_status;

constexpr uint32_t kU55Config128 = 0x00001807, kU85Config256 = 0x20000118;

class FakeDevice final : public Device {
 public:
  FakeDevice(uint32_t config, uint32_t id) : config_(config), id_(id) {}
  ~FakeDevice() = default;

  uint32_t read32(uint32_t offset) override {
    switch (offset) {
      case reg::kConfig:
        return config_;
      case reg::kId:
        return id_;
      case reg::kStatus:
        return stuckInReset ? status::kResetStatus : state_;
      case reg::kQRead:
        return queueRead;
      case reg::kProt:
        return granted.value_or(registers[reg::kReset]);
      default:
        return registers[offset];
    }
  }
  void write32(uint32_t offset, uint32_t value) override {
    writes.emplace_back(offset, value);
    registers[offset] = value;
    if (offset == reg::kReset) state_ = 0;
    if (offset == reg::kCmd && (value & 1u) != 0) state_ = status::kRunning;
  }
  bool map(const void*, size_t, Access, uint64_t* address) override {
    if (mapsLeft-- == 0) return false;
    ++mapped;
    *address = next_;
    next_ += 0x100000000u;
    return true;
  }
  void unmap(const void*, size_t) override { --mapped; }
  /// Ends the running job.
  void end() { state_ = outcome; }
  Wait wait(uint32_t) override {
    if (silent) return Wait::Timeout;
    if (spurious > 0) {
      --spurious;
      return Wait::Interrupt;
    }
    state_ = outcome;
    registers[format::ethosuPmuBase(static_cast<format::EthosUProduct>(config_ >> 28)) + reg::kPmCcntrLo] =
        1234;
    return Wait::Interrupt;
  }
  void clean(const void* data, size_t bytes) override { cleaned.emplace_back(data, bytes); }
  void invalidate(void* data, size_t bytes) override { invalidated.emplace_back(data, bytes); }
  bool wrote(uint32_t offset, uint32_t value) const {
    for (const auto& write : writes) {
      if (write.first == offset && write.second == value) return true;
    }
    return false;
  }

  std::vector<std::pair<uint32_t, uint32_t>> writes;
  std::vector<std::pair<const void*, size_t>> cleaned, invalidated;
  std::map<uint32_t, uint32_t> registers;
  uint32_t outcome = status::kCmdEndReached | status::kIrqRaised;
  uint32_t queueRead = 0;
  bool stuckInReset = false, silent = false;
  std::optional<uint32_t> granted;
  int mapped = 0, mapsLeft = 100, spurious = 0;

 private:
  uint32_t config_, id_;
  uint32_t state_ = 0;
  uint64_t next_ = 0x40000000;
};

/// COP1 with one STOP.
struct alignas(16) Payload {
  uint32_t words[9];
  Bytes bytes() const { return {reinterpret_cast<const uint8_t*>(words), sizeof(words)}; }
};
inline Payload payloadFor(uint32_t config, uint32_t id) {
  return {{format::kCop1Fourcc, format::kCop1OptimizerConfigWord, config, id, 5, 5, 5,
           format::cop1Word(format::Cop1Action::CommandStream, 1), 0xffff0000u}};
}
struct alignas(16) Buffer {
  uint8_t bytes[64];
};

}  // namespace carina::rt
