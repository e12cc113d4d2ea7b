// SPDX-License-Identifier: Apache-2.0
#include "platform/system_space.hpp"

namespace carina::platform {
namespace {

// Addresses, by the names of the architecture manual.
constexpr uint32_t kDwt = 0xe0001000, kPmu = 0xe0003000, kPmuEnd = 0xe0004000;
constexpr uint32_t kSysTickBase = 0xe000e010, kSysTickEnd = 0xe000e020;
constexpr uint32_t kNvic = 0xe000e100, kNvicEnd = 0xe000e600;
constexpr uint32_t kIctr = 0xe000e004;
constexpr uint32_t kCpuid = 0xe000ed00, kIcsr = 0xe000ed04, kVtor = 0xe000ed08, kAircr = 0xe000ed0c,
                   kScr = 0xe000ed10, kCcr = 0xe000ed14, kShpr1 = 0xe000ed18, kShpr3 = 0xe000ed20,
                   kShcsr = 0xe000ed24, kCfsr = 0xe000ed28, kHfsr = 0xe000ed2c, kDfsr = 0xe000ed30,
                   kMmfar = 0xe000ed34, kBfar = 0xe000ed38, kCpacr = 0xe000ed88;
constexpr uint32_t kMpuType = 0xe000ed90, kMpuControl = 0xe000ed94, kMpuNumber = 0xe000ed98,
                   kMpuBase = 0xe000ed9c, kMpuEnd = 0xe000edbc;
constexpr uint32_t kDemcr = 0xe000edfc;
constexpr uint32_t kStir = 0xe000ef00, kFpccr = 0xe000ef34, kFpdscr = 0xe000ef3c;
constexpr uint32_t kMvfr0 = 0xe000ef40, kMvfr1 = 0xe000ef44, kMvfr2 = 0xe000ef48;
constexpr uint32_t kIciallu = 0xe000ef50, kIcimvau = 0xe000ef58;
constexpr uint32_t kUnalignedTrap = 1u << 3, kDivideTrap = 1u << 4;  // of CCR
constexpr uint32_t kFpdscrBits = 0x07c80000;                         // AHP, DN, FZ, RMode, FZ16
constexpr uint32_t kNoTail = 0x00040000;                             // LTPSIZE
constexpr uint32_t kCcrReset = 0x201;                                // bit 9: stack alignment, always on
constexpr uint32_t kPriorityRegisters = 0x300;                       // from kNvic

// Register banks of the interrupt controller, 64 bytes each.
enum Bank : uint32_t { kSetEnable, kClearEnable = 2, kSetPending = 4, kClearPending = 6, kActiveBits = 8 };

bool isPriority(uint32_t address) {
  return (address >= kNvic + kPriorityRegisters && address < kNvicEnd - 0x10) ||
         (address >= kShpr1 && address <= kShpr3);
}

/// Registers that store what is written; the value they have after reset.
const std::map<uint32_t, uint32_t>& storedAtReset() {
  static const std::map<uint32_t, uint32_t> table = {
      {kCcr, kCcrReset},
      {kCpacr, 0x00f00000},
      {0xe000ed84, 0} /* CSSELR */,
      {0xe000edc0, 0} /* MAIR0 */,
      {0xe000edc4, 0} /* MAIR1 */,
      {kFpccr, 0xc0000004},
      {0xe000ef38, 0} /* FPCAR */,
      {kFpdscr, kNoTail},
      {0xe000ed8c, 0} /* NSACR */,
      {0xe000edd0, 0} /* SAU_CTRL */,
      {0xe000e008, 0} /* ACTLR */,
      {0xe000ed3c, 0} /* AFSR */,
      {0xe001e300, 0} /* CPDLPSTATE */,
      {0xe001e304, 0} /* DPDLPSTATE */,
  };
  return table;
}

}  // namespace

SystemSpace::SystemSpace(const Board& board, const Clock& clock, Interrupts& interrupts, Core& core)
    : board_(board), interrupts_(interrupts), core_(core), sysTick_(clock, interrupts), counters_(clock) {
  core_.setCoprocessorAccess(readWord(kCpacr));
  core_.setDefaultFpscr(readWord(kFpdscr));
}

uint32_t SystemSpace::read(uint32_t address, uint32_t size) {
  const uint32_t shift = 8 * (address & 3);
  const uint32_t word = readWord(address & ~3u) >> shift;
  return size == 4 ? word : word & ((1u << 8 * size) - 1);
}

void SystemSpace::write(uint32_t address, uint32_t size, uint32_t value) {
  const uint32_t word = address & ~3u, shift = 8 * (address & 3);
  if (size == 4) {
    writeWord(word, value);
    return;
  }
  const uint32_t mask = (1u << 8 * size) - 1;
  // Priorities are bytes; elsewhere the bytes not written count as 0, which write-one-to-clear registers
  // like.
  const uint32_t rest = isPriority(word) ? readWord(word) & ~(mask << shift) : 0;
  writeWord(word, rest | (value & mask) << shift);
}

// --- interrupt controller

uint32_t SystemSpace::readInterrupts(uint32_t offset) const {
  uint32_t value = 0;
  if (offset >= kPriorityRegisters) {
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t line = offset - kPriorityRegisters + i;
      if (line < kInterruptLines) value |= uint32_t{interrupts_.priority(kExternal + line)} << 8 * i;
    }
    return value;
  }
  const uint32_t bank = offset / 64;
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t line = offset % 64 * 8 + i;
    if (line >= kInterruptLines) break;
    const uint32_t exception = kExternal + line;
    const bool on = bank / 2 == 0   ? interrupts_.enabled(exception)
                    : bank / 2 == 2 ? interrupts_.pending(exception)
                    : bank / 2 == 4 ? interrupts_.isActive(exception)
                                    : false;
    value |= (on ? 1u : 0u) << i;
  }
  return value;
}

void SystemSpace::writeInterrupts(uint32_t offset, uint32_t value) {
  if (offset >= kPriorityRegisters) {
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t line = offset - kPriorityRegisters + i;
      if (line < kInterruptLines)
        interrupts_.setPriority(kExternal + line, static_cast<uint8_t>(value >> 8 * i));
    }
    return;
  }
  const uint32_t bank = offset / 64;
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t line = offset % 64 * 8 + i;
    if (line >= kInterruptLines) break;
    if ((value >> i & 1) == 0) continue;
    const uint32_t exception = kExternal + line;
    if (bank == kSetEnable) interrupts_.enable(exception, true);
    if (bank == kClearEnable) interrupts_.enable(exception, false);
    if (bank == kSetPending) interrupts_.pend(exception);
    if (bank == kClearPending) interrupts_.unpend(exception);
  }
}

// --- system control block

uint32_t SystemSpace::readIcsr() const {
  const auto& active = interrupts_.active();
  uint32_t value = active.empty() ? 0 : active.back();
  if (active.size() <= 1) value |= 1u << 11;  // RETTOBASE
  if (const auto next = interrupts_.first()) value |= *next << 12;
  bool external = false;
  for (uint32_t line = 0; line < kInterruptLines && !external; ++line)
    external = interrupts_.pending(kExternal + line);
  if (external) value |= 1u << 22;
  if (interrupts_.pending(kSysTick)) value |= 1u << 26;
  if (interrupts_.pending(kPendSv)) value |= 1u << 28;
  if (interrupts_.pending(kNmi)) value |= 1u << 31;
  return value;
}

uint32_t SystemSpace::readShcsr() const {
  uint32_t value = 0;
  const auto set = [&](bool on, uint32_t bit) { value |= (on ? 1u : 0u) << bit; };
  set(interrupts_.isActive(kMemManage), 0);
  set(interrupts_.isActive(kBusFault), 1);
  set(interrupts_.isActive(kHardFault), 2);
  set(interrupts_.isActive(kUsageFault), 3);
  set(interrupts_.isActive(kSvcall), 7);
  set(interrupts_.isActive(kPendSv), 10);
  set(interrupts_.isActive(kSysTick), 11);
  set(interrupts_.enabled(kMemManage), 16);
  set(interrupts_.enabled(kBusFault), 17);
  set(interrupts_.enabled(kUsageFault), 18);
  return value;
}

void SystemSpace::writeShcsr(uint32_t value) {
  interrupts_.enable(kMemManage, (value >> 16 & 1) != 0);
  interrupts_.enable(kBusFault, (value >> 17 & 1) != 0);
  interrupts_.enable(kUsageFault, (value >> 18 & 1) != 0);
}

// --- memory protection unit

uint32_t SystemSpace::regionAt(uint32_t address) const {
  // The first pair is the selected region, the alias pairs are its neighbours in the group of four.
  const uint32_t pair = (address - kMpuBase) / 8;
  return pair == 0 ? regionNumber_ : (regionNumber_ & ~3u) + pair;
}

uint32_t SystemSpace::readMpu(uint32_t address) const {
  if (address == kMpuControl) return core_.mpu().control;
  if (address == kMpuNumber) return regionNumber_;
  const cpu_m::Mpu::Region& region = core_.mpu().regions[regionAt(address)];
  return address % 8 == kMpuBase % 8 ? region.base : region.limit;
}

void SystemSpace::writeMpu(uint32_t address, uint32_t value) {
  if (address == kMpuControl) {
    core_.changeMpu().control = value & 7;
  } else if (address == kMpuNumber) {
    regionNumber_ = value % cpu_m::Mpu::kRegions;
  } else {
    cpu_m::Mpu::Region& region = core_.changeMpu().regions[regionAt(address)];
    (address % 8 == kMpuBase % 8 ? region.base : region.limit) = value;
  }
}

// --- all words

uint32_t SystemSpace::readWord(uint32_t address) {
  if (address >= kSysTickBase && address < kSysTickEnd) return sysTick_.read(address - kSysTickBase);
  if (address >= kNvic && address < kNvicEnd) return readInterrupts(address - kNvic);
  if (address >= kDwt && address < kDwt + 0x1000) return counters_.readDwt(address - kDwt);
  if (address >= kPmu && address < kPmuEnd) return counters_.readPmu(address - kPmu);
  if (address >= kMpuControl && address < kMpuEnd) return readMpu(address);
  if (address >= kShpr1 && address <= kShpr3) {
    uint32_t value = 0;
    for (uint32_t i = 0; i < 4; ++i)
      value |= uint32_t{interrupts_.priority(4 + address - kShpr1 + i)} << 8 * i;
    return value;
  }
  switch (address) {
    case kIctr:
      return kInterruptLines / 32 - 1;
    case kCpuid:
      return board_.cpuid;
    case kIcsr:
      return readIcsr();
    case kVtor:
      return vectorTable_;
    case kAircr:
      return 0xfa050000u | interrupts_.priorityGroup() << 8;
    case kScr:
      return systemControl_;
    case kShcsr:
      return readShcsr();
    case kCfsr:
      return faults_.cfsr;
    case kHfsr:
      return faults_.hfsr;
    case kDfsr:
      return faults_.dfsr;
    case kMmfar:
      return faults_.mmfar;
    case kBfar:
      return faults_.bfar;
    case kMpuType:
      return cpu_m::Mpu::kRegions << 8;
    case kDemcr:
      return counters_.demcr();
    // Single and double precision, half precision and MVE with floating point.
    case kMvfr0:
      return 0x10110221;
    case kMvfr1:
      return 0x12100211;
    case kMvfr2:
      return 0x00000040;
    default:
      break;
  }
  if (const auto at = stored_.find(address); at != stored_.end()) return at->second;
  const auto at = storedAtReset().find(address);
  return at == storedAtReset().end() ? 0 : at->second;
}

void SystemSpace::writeWord(uint32_t address, uint32_t value) {
  if (address >= kSysTickBase && address < kSysTickEnd) {
    sysTick_.write(address - kSysTickBase, value);
    return;
  }
  if (address >= kNvic && address < kNvicEnd) {
    writeInterrupts(address - kNvic, value);
    return;
  }
  if (address >= kDwt && address < kDwt + 0x1000) {
    counters_.writeDwt(address - kDwt, value);
    return;
  }
  if (address >= kPmu && address < kPmuEnd) {
    counters_.writePmu(address - kPmu, value);
    return;
  }
  if (address >= kMpuControl && address < kMpuEnd) {
    writeMpu(address, value);
    return;
  }
  if (address >= kShpr1 && address <= kShpr3) {
    for (uint32_t i = 0; i < 4; ++i)
      interrupts_.setPriority(4 + address - kShpr1 + i, static_cast<uint8_t>(value >> 8 * i));
    return;
  }
  switch (address) {
    case kIcsr:
      if ((value >> 31 & 1) != 0) interrupts_.pend(kNmi);
      if ((value >> 28 & 1) != 0) interrupts_.pend(kPendSv);
      if ((value >> 27 & 1) != 0) interrupts_.unpend(kPendSv);
      if ((value >> 26 & 1) != 0) interrupts_.pend(kSysTick);
      if ((value >> 25 & 1) != 0) interrupts_.unpend(kSysTick);
      return;
    case kVtor:
      vectorTable_ = value & ~0x7fu;
      codeChanged_ = true;
      return;
    case kAircr:
      if (value >> 16 != 0x05fa) return;
      interrupts_.setPriorityGroup(value >> 8 & 7);
      if ((value & 1u << 2) != 0) resetRequested_ = true;
      return;
    case kScr:
      systemControl_ = value & 0x1e;
      return;
    case kShcsr:
      writeShcsr(value);
      return;
    case kCfsr:
      faults_.cfsr &= ~value;
      return;
    case kHfsr:
      faults_.hfsr &= ~value;
      return;
    case kDfsr:
      faults_.dfsr &= ~value;
      return;
    case kMmfar:
      faults_.mmfar = value;
      return;
    case kBfar:
      faults_.bfar = value;
      return;
    case kDemcr:
      counters_.writeDemcr(value);
      return;
    case kStir:
      if ((value & 0x1ff) < kInterruptLines) interrupts_.pend(kExternal + (value & 0x1ff));
      return;
    case kIciallu:
    case kIcimvau:
      codeChanged_ = true;
      return;
    default:
      break;
  }
  if (storedAtReset().count(address) == 0) return;
  stored_[address] = value;
  if (address == kCpacr) core_.setCoprocessorAccess(value);
  if (address == kFpdscr) core_.setDefaultFpscr((value & kFpdscrBits) | kNoTail);
  if (address == kCcr) {
    core_.memory.setUnalignedTraps((value & kUnalignedTrap) != 0);
    core_.setDivideTraps((value & kDivideTrap) != 0);
  }
}

}  // namespace carina::platform
