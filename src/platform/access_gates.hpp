// SPDX-License-Identifier: Apache-2.0
// Access control between the core and the board, by the security and privilege of transactions: memory
// protection controllers (MPC), peripheral protection controllers (PPC), and the registers of the subsystem
// that configure them (SACFG and NSACFG).
//
// The security of a transaction is that of its address (SAU and board); without an SAU, everything is Secure.
// Each block of a memory and each peripheral accepts either Secure or Non-secure transactions, never both.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "platform/board.hpp"
#include "platform/cpu.hpp"
#include "platform/device.hpp"
#include "platform/interrupts.hpp"

namespace carina::platform {

class Peripherals;

/// The protection controller of a memory: one bit per block marks it as Non-secure.
class MemoryGate final : public Peripheral {
 public:
  struct Place {
    uint32_t address, alias, size, block;  // in bytes; the same memory at two addresses
  };
  /// `changed` is called when blocks have changed, `interrupt` when its interrupt may have.
  MemoryGate(Place place, std::function<void()> changed, std::function<void()> interrupt);

  uint32_t read(uint32_t offset) override;
  void write(uint32_t offset, uint32_t value) override;

  /// The offset of an address in the memory; nullopt if it is outside.
  std::optional<uint32_t> offsetOf(uint32_t address) const;
  bool open(uint32_t offset, bool secure) const;
  /// The end of the block that contains an offset.
  uint32_t blockEnd(uint32_t offset) const { return (offset / place_.block + 1) * place_.block; }
  /// Records a rejected transaction; true: it causes a bus error.
  bool refuse(uint32_t address, bool secure);
  bool interrupting() const { return (status_ & enabled_) != 0; }

 private:
  Place place_;
  std::function<void()> changed_, interrupt_;
  std::vector<uint32_t> blocks_;  // a bit each, 1 = Non-secure
  uint32_t control_, index_ = 0, status_ = 0, enabled_ = 0, info1_ = 0, info2_ = 0;
};

class AccessGates final : public cpu_m::Gates {
 public:
  /// `setCallable` receives the value of NSCCFG.
  AccessGates(const Board& board, Core& core, Interrupts& interrupts,
              std::function<void(uint32_t bits)> setCallable);

  /// Adds the registers.
  void addTo(Peripherals& peripherals);
  /// Starts enforcing the settings of the registers.
  void close();

  bool open(uint32_t address, bool secure) const override;
  void refuse(uint32_t address, bool write, bool secure) override;
  /// Records a transaction of any master that a memory rejected; true: it causes a bus error.
  bool refused(uint32_t address, bool secure);
  /// The first address after `address` at which the result of open() may change.
  uint64_t blockEnd(uint32_t address) const;
  /// Checks an access of the running code to a peripheral; false: it is RAZ/WI. Throws ReadFault or
  /// WriteFault if the board responds with a bus error.
  bool passes(uint32_t address, bool write);

 private:
  /// A bank of PPC bits: the offset of its Non-secure register in SACFG, and its bit in the interrupt
  /// registers.
  struct Bank {
    uint16_t offset;
    uint8_t interrupt;
  };
  /// Peripherals controlled by a bank: `count` frames of `stride` bytes from `base` (without bit 28) on, each
  /// by its own bit from `first` on, or all by that bit if `together`.
  struct Ports {
    uint32_t base, stride, count;
    Bank bank;
    uint8_t first;
    bool together = false;
  };
  struct Port {
    Bank bank;
    uint32_t bit;
  };
  class Registers final : public Peripheral {
   public:
    Registers(AccessGates& gates, bool secure) : gates_(gates), secure_(secure) {}
    uint32_t read(uint32_t offset) override { return gates_.readRegister(secure_, offset); }
    void write(uint32_t offset, uint32_t value) override { gates_.writeRegister(secure_, offset, value); }

   private:
    AccessGates& gates_;
    bool secure_;
  };

  static constexpr uint32_t kSize = 0x100;
  static std::vector<Ports> portsOf(const Board& board);
  std::optional<Port> portOf(uint32_t address) const;
  uint32_t readRegister(bool secure, uint32_t offset) const;
  void writeRegister(bool secure, uint32_t offset, uint32_t value);
  void updateInterrupts();
  uint32_t word(bool secure, uint32_t offset) const { return registers_[secure ? 1 : 0][offset / 4]; }
  [[noreturn]] static void busError(uint32_t address, bool write);

  Core& core_;
  Interrupts& interrupts_;
  std::function<void(uint32_t bits)> setCallable_;
  std::vector<Ports> ports_;
  std::vector<MemoryGate> memories_;
  std::vector<uint32_t> memoryRegisters_;                       // addresses of their registers
  std::array<std::array<uint32_t, kSize / 4>, 2> registers_{};  // NSACFG, SACFG
  Registers secureRegisters_{*this, true}, otherRegisters_{*this, false};
  bool closed_ = false;
};

}  // namespace carina::platform
