// SPDX-License-Identifier: Apache-2.0
// The private peripheral bus at 0xe0000000: interrupt controller, system control block, SysTick, cycle
// counters, registers of the memory protection unit, caches (none).
#pragma once

#include <map>

#include "platform/board.hpp"
#include "platform/interrupts.hpp"
#include "platform/timers.hpp"

namespace carina::platform {

/// Fault state that handlers read and exceptions set.
struct FaultRegisters {
  uint32_t cfsr = 0, hfsr = 0, dfsr = 0, mmfar = 0, bfar = 0;
};

class SystemSpace {
 public:
  SystemSpace(const Board& board, const Clock& clock, Interrupts& interrupts, Core& core);

  /// `address` in the private peripheral bus; `size` 1, 2 or 4 bytes that do not cross a word.
  uint32_t read(uint32_t address, uint32_t size);
  void write(uint32_t address, uint32_t size, uint32_t value);

  uint32_t vectorTable() const { return vectorTable_; }
  void setVectorTable(uint32_t address) { vectorTable_ = address; }
  FaultRegisters& faults() { return faults_; }
  SysTick& sysTick() { return sysTick_; }
  const SysTick& sysTick() const { return sysTick_; }
  bool sevOnPend() const { return (systemControl_ & 1u << 4) != 0; }
  /// Firmware has asked for a reset.
  bool resetRequested() const { return resetRequested_; }
  /// Code may have been changed through another address: caches were invalidated, vectors moved.
  bool codeChanged() const { return codeChanged_; }
  bool takeCodeChanged() {
    const bool changed = codeChanged_;
    codeChanged_ = false;
    return changed;
  }

 private:
  uint32_t readWord(uint32_t address);
  void writeWord(uint32_t address, uint32_t value);
  uint32_t readInterrupts(uint32_t offset) const;
  void writeInterrupts(uint32_t offset, uint32_t value);
  uint32_t regionAt(uint32_t address) const;
  uint32_t readMpu(uint32_t address) const;
  void writeMpu(uint32_t address, uint32_t value);
  uint32_t readIcsr() const;
  uint32_t readShcsr() const;
  void writeShcsr(uint32_t value);

  const Board& board_;
  Interrupts& interrupts_;
  Core& core_;
  SysTick sysTick_;
  CycleCounters counters_;
  FaultRegisters faults_;
  uint32_t vectorTable_ = 0, systemControl_ = 0;
  bool resetRequested_ = false, codeChanged_ = false;
  uint32_t regionNumber_ = 0;
  std::map<uint32_t, uint32_t> stored_;  // registers that keep what is written and do nothing
};

}  // namespace carina::platform
