// SPDX-License-Identifier: Apache-2.0
// Peripherals that are little more than registers: timing adapters, the FPGA I/O block, the board's
// configuration controller.
#pragma once

#include <array>

#include "platform/clock.hpp"
#include "platform/device.hpp"

namespace carina::platform {

/// Shapes the traffic of one NPU port; the platform reads the settings back.
class TimingAdapter final : public Peripheral {
 public:
  static constexpr uint32_t kSize = 0x3c;

  uint32_t read(uint32_t offset) override;
  void write(uint32_t offset, uint32_t value) override;

  uint32_t maxReads() const { return registers_[0]; }
  uint32_t maxWrites() const { return registers_[1]; }
  uint32_t readLatency() const { return registers_[3]; }
  uint32_t writeLatency() const { return registers_[4]; }
  uint32_t pulseOn() const { return registers_[5]; }
  uint32_t pulseOff() const { return registers_[6]; }
  /// 64-bit words in each pulse period; 0 = no limit.
  uint32_t words() const { return registers_[7]; }
  /// Whether firmware has set anything.
  bool written() const { return written_; }

 private:
  std::array<uint32_t, kSize / 4> registers_{};
  bool written_ = false;
};

/// LEDs, buttons and free-running counters of the MPS boards.
class FpgaIo final : public Peripheral {
 public:
  explicit FpgaIo(const Clock& clock) : clock_(clock) {}
  uint32_t read(uint32_t offset) override;
  void write(uint32_t offset, uint32_t value) override;

  static constexpr uint32_t kButtons = 0x08, kSwitches = 0x28;
  /// Presses or sets one of kButtons or kSwitches.
  void drive(uint32_t what, uint32_t number, bool high) {
    uint32_t& levels = registers_[what / 4];
    levels = (levels & ~(1u << number)) | (high ? 1u << number : 0);
  }

 private:
  /// Ticks of `offset`'s counter since reset.
  uint64_t ticks(uint32_t offset) const;

  const Clock& clock_;
  std::array<uint32_t, 0x50 / 4> registers_{};
  std::array<uint64_t, 0x50 / 4> base_{};
};

/// The serial configuration controller (SCC): configuration words, clocks, and the board's identity.
class ConfigurationController final : public Peripheral {
 public:
  explicit ConfigurationController(uint32_t id) : id_(id) {}
  uint32_t read(uint32_t offset) override;
  void write(uint32_t offset, uint32_t value) override;

 private:
  uint32_t id_;
  std::array<uint32_t, 0xac / 4> registers_{};  // up to SYS_CFGCTRL
  bool complete_ = false;
};

}  // namespace carina::platform
