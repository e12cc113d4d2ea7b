// SPDX-License-Identifier: Apache-2.0
// The private peripheral bus at 0xe0000000, for both worlds: interrupt controller, system control block,
// SysTick, cycle counters, registers of the memory protection unit, caches (none).
#pragma once

#include <algorithm>
#include <array>
#include <map>

#include "platform/board.hpp"
#include "platform/interrupts.hpp"
#include "platform/tcm_gate.hpp"
#include "platform/timers.hpp"

namespace carina::platform {

/// Fault state that exceptions set and handlers read; banked by world where there are two. The BusFault bits
/// of CFSR are in the Secure one.
struct FaultRegisters {
  uint32_t cfsr[2] = {}, mmfar[2] = {};
  uint32_t hfsr = 0, dfsr = 0, bfar = 0, sfsr = 0, sfar = 0;
};

class SystemSpace {
 public:
  SystemSpace(const Board& board, const Clock& clock, Interrupts& interrupts, Core& core);

  /// `address` in the private peripheral bus; `size` 1, 2 or 4 bytes that do not cross a word.
  uint32_t read(uint32_t address, uint32_t size);
  void write(uint32_t address, uint32_t size, uint32_t value);

  /// The part that a word belongs to, if it is not modelled and writes have no effect; empty if it is
  /// modelled. Such words read as 0, which indicates for all of them that the part is disabled or absent.
  static std::string_view absentPart(uint32_t address);

  /// Whether the running code must not access an address: unprivileged code must not, except STIR if CCR
  /// allows it.
  bool refuses(uint32_t address, bool write) const;

  uint32_t vectorTable(World world) const { return vectorTable_[world]; }
  void setVectorTable(uint32_t address) { vectorTable_[kSecure] = vectorTable_[kNonSecure] = address; }
  /// SACFG.NSCCFG: which Secure memory may hold callable gateways: bit 0 code, bit 1 data memory.
  void setCallable(uint32_t bits);
  FaultRegisters& faults() { return faults_; }
  void advance(uint64_t now) {
    for (SysTick& sysTick : sysTicks_) sysTick.advance(now);
  }
  uint64_t nextEvent() const { return std::min(sysTicks_[0].nextEvent(), sysTicks_[1].nextEvent()); }
  /// Whether debug events currently raise DebugMonitor: DEMCR.MON_EN is set and nothing more urgent executes.
  bool monitors() const;
  /// Whether DebugMonitor is raised after each instruction (DEMCR.MON_STEP).
  bool monitorSteps() const { return (monitor_ & kMonitorStep) != 0 && monitors(); }
  /// SCR.SLEEPONEXIT: a return to Thread mode waits for the next interrupt.
  bool sleepOnExit() const { return (systemControl_ & 1u << 1) != 0; }
  bool sevOnPend() const { return (systemControl_ & 1u << 4) != 0; }
  /// Firmware has requested a reset.
  bool resetRequested() const { return resetRequested_; }
  /// Code may have been changed through another address: caches were invalidated, or vectors moved.
  bool codeChanged() const { return codeChanged_; }
  bool takeCodeChanged() {
    const bool changed = codeChanged_;
    codeChanged_ = false;
    return changed;
  }

 private:
  uint32_t readWord(World world, uint32_t address);
  void writeWord(World world, uint32_t address, uint32_t value);
  uint32_t readInterrupts(World world, uint32_t offset) const;
  void writeInterrupts(World world, uint32_t offset, uint32_t value);
  uint32_t regionAt(World world, uint32_t address) const;
  uint32_t readMpu(World world, uint32_t address) const;
  void writeMpu(World world, uint32_t address, uint32_t value);
  uint32_t readSau(uint32_t address) const;
  void writeSau(uint32_t address, uint32_t value);
  uint32_t readDemcr(World world) const;
  void writeDemcr(World world, uint32_t value);
  uint32_t readIcsr(World world) const;
  void writeIcsr(World world, uint32_t value);
  uint32_t readAircr(World world) const;
  void writeAircr(World world, uint32_t value);
  uint32_t readShcsr(World world) const;
  void writeShcsr(World world, uint32_t value);
  uint32_t readPriorities(World world, uint32_t first) const;
  void writePriorities(World world, uint32_t first, uint32_t value);
  /// Bits of CFSR that are visible to a world.
  uint32_t visibleFaults(World world) const;
  /// A register that keeps what is written.
  uint32_t stored(World world, uint32_t address) const;
  void store(World world, uint32_t address, uint32_t value);

  const Board& board_;
  Interrupts& interrupts_;
  Core& core_;
  std::array<SysTick, 2> sysTicks_;
  CycleCounters counters_;
  FaultRegisters faults_;
  std::array<TcmGate, 2> tcmGates_;  // of instructions, of data
  static constexpr uint32_t kMonitorStep = 1u << 18;
  uint32_t vectorTable_[2] = {}, systemControl_ = 0, monitor_ = 0;  // of DEMCR: MON_EN, MON_STEP, MON_REQ
  bool resetRequested_ = false, codeChanged_ = false, secureReset_ = false;
  uint32_t regionNumber_[2] = {}, sauRegion_ = 0;
  std::map<uint32_t, uint32_t> stored_[2];  // registers that keep what is written
};

}  // namespace carina::platform
