// SPDX-License-Identifier: Apache-2.0
// Two-wire buses (I2C) that firmware drives by bit-banging, and the devices on them: register files with an
// address each.
#pragma once

#include <array>
#include <functional>

#include "platform/device.hpp"
#include "platform/interrupts.hpp"

namespace carina::platform {

/// A device on such a bus. The first byte of a write selects the register that the next bytes are written to
/// or read from.
class WireDevice {
 public:
  virtual ~WireDevice() = default;
  virtual uint8_t read(uint8_t reg) = 0;
  virtual void write(uint8_t reg, uint8_t value) = 0;
  /// The register of the byte that follows the one of `reg`.
  virtual uint8_t next(uint8_t reg) const { return static_cast<uint8_t>(reg + 1); }
};

/// Keeps what is written: the settings of an audio codec.
class WireRegisters final : public WireDevice {
 public:
  uint8_t read(uint8_t reg) override { return values_[reg]; }
  void write(uint8_t reg, uint8_t value) override { values_[reg] = value; }

 private:
  std::array<uint8_t, 256> values_{};
};

/// The touch screen controller STMPE811 of the boards.
class TouchController final : public WireDevice {
 public:
  TouchController(Interrupts& interrupts, uint32_t interrupt)
      : interrupts_(interrupts), interrupt_(interrupt) {}
  uint8_t read(uint8_t reg) override;
  void write(uint8_t reg, uint8_t value) override;
  uint8_t next(uint8_t reg) const override;

  /// Touches the screen at (x, y), as measured by the controller: 0 to 4095 each.
  void press(uint32_t x, uint32_t y);
  void release();

 private:
  void reset();
  void raise(uint8_t causes);
  bool measures() const;

  Interrupts& interrupts_;
  uint32_t interrupt_;
  std::array<uint8_t, 256> registers_{};
  uint32_t x_ = 0, y_ = 0;
  bool pressed_ = false;
  uint32_t part_ = 0;  // bytes of a measurement already read
};

/// The bus: a register to set pins, one to clear them, both of which read the state of the pins.
class TwoWireBus final : public Peripheral {
 public:
  /// `address` has seven bits.
  TwoWireBus(WireDevice& device, uint8_t address) : device_(device), address_(address) {}
  uint32_t read(uint32_t offset) override;
  void write(uint32_t offset, uint32_t value) override;

 private:
  enum class Phase : uint8_t { Idle, Address, Register, Write, Read };
  void start();
  void clockRose();
  void clockFell();
  /// Handles a received byte; returns whether it is acknowledged.
  bool take(uint8_t byte);

  WireDevice& device_;
  uint8_t address_;
  bool clock_ = true, data_ = true;  // as the firmware drives them
  bool held_ = false;                // the device holds the data line low
  Phase phase_ = Phase::Idle;
  uint32_t bits_ = 0;  // of the byte, and then its acknowledgement
  uint8_t byte_ = 0, register_ = 0;
  bool sent_ = false;          // the device has sent the byte,
  bool acknowledged_ = false;  // and the firmware requests another one
};

}  // namespace carina::platform
