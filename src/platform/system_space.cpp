// SPDX-License-Identifier: Apache-2.0
#include "platform/system_space.hpp"

#include <bit>

namespace carina::platform {
namespace {

// Addresses, named as in the architecture manual.
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
constexpr uint32_t kNsacr = 0xe000ed8c, kNonSecureFp = 1u << 10;
constexpr uint32_t kSauControl = 0xe000edd0, kSauType = 0xe000edd4, kSauNumber = 0xe000edd8,
                   kSauBase = 0xe000eddc, kSauLimit = 0xe000ede0, kSfsr = 0xe000ede4, kSfar = 0xe000ede8;
/// Where Secure code accesses the registers of the Non-secure world.
constexpr uint32_t kNonSecureAlias = 0xe002e000, kNonSecureAliasEnd = 0xe002f000, kAliasDistance = 0x20000;
/// Bits of AIRCR.
constexpr uint32_t kSecureReset = 1u << 3, kFaultsNonSecure = 1u << 13, kSecureFirst = 1u << 14;
constexpr uint32_t kBusFaultBits = 0xff00;  // of CFSR
/// Regions of 256 MiB with address bit 28 set, up to 0xdfffffff, are Secure on these boards.
constexpr uint16_t kSecureRegions = 0x2aaa;
constexpr uint32_t kDemcr = 0xe000edfc;
constexpr uint32_t kMonitorEnable = 1u << 16, kMonitorPending = 1u << 17, kMonitorRequest = 1u << 19,
                   kMonitorSecure = 1u << 20, kMonitorBits = 0x1fu << 16;
constexpr uint32_t kStir = 0xe000ef00, kFpccr = 0xe000ef34, kFpcar = 0xe000ef38, kFpdscr = 0xe000ef3c;
constexpr uint32_t kMvfr0 = 0xe000ef40, kMvfr1 = 0xe000ef44, kMvfr2 = 0xe000ef48;
/// ID_PFR0 to ID_ISAR5, as both cores have them without PACBTI.
constexpr uint32_t kIdentityRegisters = 0xe000ed40, kIdentityRegistersEnd = 0xe000ed78, kIsar5 = 0xe000ed74;
constexpr std::array<uint32_t, (kIdentityRegistersEnd - kIdentityRegisters) / 4> kIdentityWords = {
    0x20000030, 0x00000230, 0x10200000, 0x00000000, 0x00111040, 0x00000000, 0x01000000,
    0x00000011, 0x01103110, 0x02212000, 0x20232232, 0x01111131, 0x01310132, 0x00000000};
/// ID_ISAR5.PACBTI: with an implementation-defined algorithm.
constexpr uint32_t kPacBtiIdentity = 2u << 20;
constexpr uint32_t kItcmControl = 0xe001e010, kDtcmControl = 0xe001e014;
constexpr uint32_t kIciallu = 0xe000ef50, kIcimvau = 0xe000ef58;
constexpr uint32_t kUnalignedTrap = 1u << 3, kDivideTrap = 1u << 4, kDataCache = 1u << 16,
                   kInstructionCache = 1u << 17;  // of CCR
constexpr uint32_t kFpdscrBits = 0x07c80000;      // AHP, DN, FZ, RMode, FZ16
constexpr uint32_t kNoTail = 0x00040000;          // LTPSIZE
constexpr uint32_t kUrgentStackFree = 1u << 10;   // of CCR
constexpr uint32_t kUserSetsPending = 1u << 1;    // of CCR
constexpr uint32_t kCcrReset = 0x201;             // bit 9: stack alignment, always on
constexpr uint32_t kPriorityRegisters = 0x300;    // from kNvic

// Registers of the gates of the tightly coupled memories.
constexpr uint32_t kTcmGates = 0xe001e500, kTcmGateFrame = 0x100,
                   kTcmGatesEnd = kTcmGates + 2 * kTcmGateFrame;

// Register banks of the interrupt controller, 64 bytes each.
enum Bank : uint32_t {
  kSetEnable,
  kClearEnable = 2,
  kSetPending = 4,
  kClearPending = 6,
  kActiveBits = 8,
  kTargets = 10
};

/// Parts of the architecture that are not modelled.
struct AbsentPart {
  uint32_t begin, end;
  std::string_view name;
};
constexpr AbsentPart kAbsentParts[] = {
    {0xe0000000, 0xe0001000, "the instrumentation trace (ITM)"},
    {0xe0001008, 0xe000101c, "the profiling counters of DWT"},
    {0xe0001020, 0xe0001100, "the comparators of DWT"},
    {0xe0002000, 0xe0003000, "the breakpoint unit (FPB)"},
    {0xe0005000, 0xe0006000, "the error records (RAS)"},
    {0xe000edf0, 0xe000edfc, "halting debug (DHCSR, DCRSR, DCRDR)"},
    {0xe000ee04, 0xe000ee0c, "debug authentication (DAUTHCTRL, DSCSR)"},
    {0xe0040000, 0xe0044000, "trace and cross triggers (TPIU, ETM, CTI)"},
};

bool isPriority(uint32_t address) {
  return (address >= kNvic + kPriorityRegisters && address < kNvicEnd - 0x10) ||
         (address >= kShpr1 && address <= kShpr3);
}

/// ITCMCR or DTCMCR: the memory's size, as 2^(SZ + 9) bytes, and its enable bit, which is always set.
uint32_t tcmControl(const Board& board, std::string_view name) {
  for (const RamBlock& block : board.ram) {
    if (block.name == name) return (static_cast<uint32_t>(std::bit_width(block.size)) - 10) << 3 | 1;
  }
  return 0;
}

/// Registers that keep what is written, and their reset values.
const std::map<uint32_t, uint32_t>& storedAtReset() {
  static const std::map<uint32_t, uint32_t> table = {
      {kCcr, kCcrReset},
      {kCpacr, 0},
      {0xe000ed84, 0} /* CSSELR */,
      {0xe000edc0, 0} /* MAIR0 */,
      {0xe000edc4, 0} /* MAIR1 */,
      {kNsacr, 0},
      {0xe000e008, 0} /* ACTLR */,
      {0xe000ed3c, 0} /* AFSR */,
      {0xe001e300, 0} /* CPDLPSTATE */,
      {0xe001e304, 0} /* DPDLPSTATE */,
  };
  return table;
}

}  // namespace

std::string_view SystemSpace::absentPart(uint32_t address) {
  for (const AbsentPart& part : kAbsentParts) {
    if (address >= part.begin && address < part.end) return part.name;
  }
  return {};
}

SystemSpace::SystemSpace(const Board& board, const Clock& clock, Interrupts& interrupts, Core& core)
    : board_(board),
      interrupts_(interrupts),
      core_(core),
      sysTicks_{SysTick(clock, interrupts, kNonSecure), SysTick(clock, interrupts, kSecure)},
      counters_(clock) {
  core_.setCoprocessorAccess(stored(kSecure, kCpacr));
  core_.changeSau().secureRegions = kSecureRegions;
}

void SystemSpace::setCallable(uint32_t bits) {
  core_.changeSau().callableRegions = static_cast<uint16_t>((bits & 1) << 1 | (bits >> 1 & 1) << 3);
}

uint32_t SystemSpace::read(uint32_t address, uint32_t size) {
  World world = core_.state.world;
  if (address >= kNonSecureAlias && address < kNonSecureAliasEnd) {
    if (world == kNonSecure) return 0;
    world = kNonSecure;
    address -= kAliasDistance;
  }
  const uint32_t shift = 8 * (address & 3);
  const uint32_t word = readWord(world, address & ~3u) >> shift;
  return size == 4 ? word : word & ((1u << 8 * size) - 1);
}

void SystemSpace::write(uint32_t address, uint32_t size, uint32_t value) {
  World world = core_.state.world;
  if (address >= kNonSecureAlias && address < kNonSecureAliasEnd) {
    if (world == kNonSecure) return;
    world = kNonSecure;
    address -= kAliasDistance;
  }
  const uint32_t word = address & ~3u, shift = 8 * (address & 3);
  if (size == 4) {
    writeWord(world, word, value);
    return;
  }
  const uint32_t mask = (1u << 8 * size) - 1;
  // Priorities are bytes; elsewhere, the bytes not written count as 0, as write-one-to-clear registers
  // require.
  const uint32_t rest = isPriority(word) ? readWord(world, word) & ~(mask << shift) : 0;
  writeWord(world, word, rest | (value & mask) << shift);
}

// --- interrupt controller

uint32_t SystemSpace::readInterrupts(World world, uint32_t offset) const {
  uint32_t value = 0;
  // Secure interrupts do not exist for Non-secure code.
  const auto visible = [&](uint32_t line) {
    return line < kInterruptLines &&
           (world == kSecure || interrupts_.targetOf(kExternal + line) == kNonSecure);
  };
  if (offset >= kPriorityRegisters) {
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t line = offset - kPriorityRegisters + i;
      if (visible(line)) value |= uint32_t{interrupts_.priority(kExternal + line)} << 8 * i;
    }
    return value;
  }
  const uint32_t bank = offset / 64;
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t line = offset % 64 * 8 + i;
    if (!visible(line)) continue;
    const uint32_t exception = kExternal + line;
    const bool on = bank / 2 == 0      ? interrupts_.enabled(exception)
                    : bank / 2 == 2    ? interrupts_.pending(exception)
                    : bank / 2 == 4    ? interrupts_.isActive(exception)
                    : bank == kTargets ? world == kSecure && interrupts_.targetOf(exception) == kNonSecure
                                       : false;
    value |= (on ? 1u : 0u) << i;
  }
  return value;
}

void SystemSpace::writeInterrupts(World world, uint32_t offset, uint32_t value) {
  const auto visible = [&](uint32_t line) {
    return line < kInterruptLines &&
           (world == kSecure || interrupts_.targetOf(kExternal + line) == kNonSecure);
  };
  if (offset >= kPriorityRegisters) {
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t line = offset - kPriorityRegisters + i;
      if (visible(line)) interrupts_.setPriority(kExternal + line, static_cast<uint8_t>(value >> 8 * i));
    }
    return;
  }
  const uint32_t bank = offset / 64;
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t line = offset % 64 * 8 + i;
    if (!visible(line)) continue;
    const bool on = (value >> i & 1) != 0;
    if (bank == kTargets && world == kSecure) interrupts_.setTarget(line, on ? kNonSecure : kSecure);
    if (!on) continue;
    const uint32_t exception = kExternal + line;
    if (bank == kSetEnable) interrupts_.enable(exception, true);
    if (bank == kClearEnable) interrupts_.enable(exception, false);
    if (bank == kSetPending) interrupts_.pend(exception);
    if (bank == kClearPending) interrupts_.unpend(exception);
  }
}

uint32_t SystemSpace::readPriorities(World world, uint32_t first) const {
  uint32_t value = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t exception = ofWorld(first + i, world);
    if (interrupts_.targetOf(exception) == world || world == kSecure)
      value |= uint32_t{interrupts_.priority(exception)} << 8 * i;
  }
  return value;
}

void SystemSpace::writePriorities(World world, uint32_t first, uint32_t value) {
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t exception = ofWorld(first + i, world);
    if (interrupts_.targetOf(exception) == world || world == kSecure)
      interrupts_.setPriority(exception, static_cast<uint8_t>(value >> 8 * i));
  }
}

// --- system control block

uint32_t SystemSpace::readIcsr(World world) const {
  const auto& active = interrupts_.active();
  uint32_t value = core_.state.exception;
  if (active.size() <= 1) value |= 1u << 11;  // RETTOBASE
  if (const auto next = interrupts_.first()) {
    // To Non-secure code, a Secure exception is number 1.
    const bool hidden = world == kNonSecure && interrupts_.targetOf(*next) == kSecure;
    value |= (hidden ? 1 : numberOf(*next)) << 12;
  }
  bool external = false;
  for (uint32_t line = 0; line < kInterruptLines && !external; ++line)
    external = interrupts_.pending(kExternal + line);
  if (external) value |= 1u << 22;
  if (interrupts_.pending(ofWorld(kSysTick, world))) value |= 1u << 26;
  if (interrupts_.pending(ofWorld(kPendSv, world))) value |= 1u << 28;
  if (interrupts_.pending(kNmi) && interrupts_.targetOf(kNmi) <= world) value |= 1u << 31;
  return value;
}

void SystemSpace::writeIcsr(World world, uint32_t value) {
  const uint32_t pendSv = ofWorld(kPendSv, world), sysTick = ofWorld(kSysTick, world);
  if (interrupts_.targetOf(kNmi) <= world) {
    if ((value >> 31 & 1) != 0) interrupts_.pend(kNmi);
    if ((value >> 30 & 1) != 0) interrupts_.unpend(kNmi);
  }
  if ((value >> 28 & 1) != 0) interrupts_.pend(pendSv);
  if ((value >> 27 & 1) != 0) interrupts_.unpend(pendSv);
  if ((value >> 26 & 1) != 0) interrupts_.pend(sysTick);
  if ((value >> 25 & 1) != 0) interrupts_.unpend(sysTick);
}

// Secure code may be debugged on these boards, so DebugMonitor is Secure.

bool SystemSpace::monitors() const {
  return (monitor_ & kMonitorEnable) != 0 &&
         interrupts_.groupPriority(kDebugMonitor) < interrupts_.executionPriority(core_.state);
}

uint32_t SystemSpace::readDemcr(World world) const {
  const uint32_t trace = counters_.demcr();
  if (world == kNonSecure) return trace;
  return trace | monitor_ | kMonitorSecure | (interrupts_.pending(kDebugMonitor) ? kMonitorPending : 0);
}

void SystemSpace::writeDemcr(World world, uint32_t value) {
  counters_.writeDemcr(value & ~kMonitorBits);
  if (world == kNonSecure) return;
  monitor_ = value & (kMonitorEnable | kMonitorStep | kMonitorRequest);
  (value & kMonitorPending) != 0 ? interrupts_.pend(kDebugMonitor) : interrupts_.unpend(kDebugMonitor);
}

uint32_t SystemSpace::readAircr(World world) const {
  uint32_t value = 0xfa050000u | interrupts_.priorityGroup(world) << 8;
  if (interrupts_.faultsNonSecure()) value |= kFaultsNonSecure;
  if (interrupts_.secureFirst() && world == kSecure) value |= kSecureFirst;
  if (secureReset_ && world == kSecure) value |= kSecureReset;
  return value;
}

void SystemSpace::writeAircr(World world, uint32_t value) {
  if (value >> 16 != 0x05fa) return;
  interrupts_.setPriorityGroup(value >> 8 & 7, world);
  if ((value & 1u << 2) != 0 && (world == kSecure || !secureReset_)) resetRequested_ = true;
  if (world != kSecure) return;
  interrupts_.setFaultsNonSecure((value & kFaultsNonSecure) != 0);
  interrupts_.setSecureFirst((value & kSecureFirst) != 0);
  secureReset_ = (value & kSecureReset) != 0;
}

uint32_t SystemSpace::readShcsr(World world) const {
  uint32_t value = 0;
  const auto set = [&](bool on, uint32_t bit) { value |= (on ? 1u : 0u) << bit; };
  const auto active = [&](uint32_t number) { return interrupts_.isActive(ofWorld(number, world)); };
  const bool bus = world == kSecure || interrupts_.targetOf(kBusFault) == kNonSecure;
  const auto pending = [&](uint32_t number) { return interrupts_.pending(ofWorld(number, world)); };
  set(active(kMemManage), 0);
  set(bus && active(kBusFault), 1);
  set(active(kHardFault), 2);
  set(active(kUsageFault), 3);
  set(world == kSecure && active(kSecureFault), 4);
  set(active(kSvcall), 7);
  set(world == kSecure && active(kDebugMonitor), 8);
  set(active(kPendSv), 10);
  set(active(kSysTick), 11);
  set(pending(kUsageFault), 12);
  set(pending(kMemManage), 13);
  set(bus && pending(kBusFault), 14);
  set(pending(kSvcall), 15);
  set(world == kSecure && pending(kSecureFault), 20);
  set(pending(kHardFault) && (world == kSecure || interrupts_.faultsNonSecure()), 21);
  set(interrupts_.enabled(ofWorld(kMemManage, world)), 16);
  set(bus && interrupts_.enabled(kBusFault), 17);
  set(interrupts_.enabled(ofWorld(kUsageFault, world)), 18);
  set(world == kSecure && interrupts_.enabled(kSecureFault), 19);
  return value;
}

void SystemSpace::writeShcsr(World world, uint32_t value) {
  const auto bit = [&](uint32_t number) { return (value >> number & 1) != 0; };
  interrupts_.enable(ofWorld(kMemManage, world), bit(16));
  interrupts_.enable(ofWorld(kUsageFault, world), bit(18));
  if (world == kSecure || interrupts_.targetOf(kBusFault) == kNonSecure)
    interrupts_.enable(kBusFault, bit(17));
  if (world == kSecure) interrupts_.enable(kSecureFault, bit(19));
  const auto pend = [&](uint32_t number, bool on) {
    const uint32_t exception = ofWorld(number, world);
    on ? interrupts_.pend(exception) : interrupts_.unpend(exception);
  };
  pend(kUsageFault, bit(12));
  pend(kMemManage, bit(13));
  if (world == kSecure || interrupts_.targetOf(kBusFault) == kNonSecure) pend(kBusFault, bit(14));
  pend(kSvcall, bit(15));
  if (world == kSecure) pend(kSecureFault, bit(20));
}

uint32_t SystemSpace::visibleFaults(World world) const {
  return world == kSecure || interrupts_.targetOf(kBusFault) == kNonSecure ? ~0u : ~kBusFaultBits;
}

// --- memory protection and security attribution

uint32_t SystemSpace::regionAt(World world, uint32_t address) const {
  // The first pair is the selected region, the alias pairs are its neighbours in the group of four.
  const uint32_t pair = (address - kMpuBase) / 8;
  return pair == 0 ? regionNumber_[world] : (regionNumber_[world] & ~3u) + pair;
}

uint32_t SystemSpace::readMpu(World world, uint32_t address) const {
  if (address == kMpuControl) return core_.mpu(world).control;
  if (address == kMpuNumber) return regionNumber_[world];
  const cpu_m::Mpu::Region& region = core_.mpu(world).regions[regionAt(world, address)];
  return address % 8 == kMpuBase % 8 ? region.base : region.limit;
}

void SystemSpace::writeMpu(World world, uint32_t address, uint32_t value) {
  if (address == kMpuControl) {
    core_.changeMpu(world).control = value & 7;
  } else if (address == kMpuNumber) {
    regionNumber_[world] = value % cpu_m::Mpu::kRegions;
  } else {
    cpu_m::Mpu::Region& region = core_.changeMpu(world).regions[regionAt(world, address)];
    (address % 8 == kMpuBase % 8 ? region.base : region.limit) = value;
  }
}

uint32_t SystemSpace::readSau(uint32_t address) const {
  switch (address) {
    case kSauControl:
      return core_.sau().control;
    case kSauType:
      return cpu_m::Sau::kRegions;
    case kSauNumber:
      return sauRegion_;
    case kSauBase:
      return core_.sau().regions[sauRegion_].base;
    case kSauLimit:
      return core_.sau().regions[sauRegion_].limit;
    case kSfsr:
      return faults_.sfsr;
    default:
      return faults_.sfar;
  }
}

void SystemSpace::writeSau(uint32_t address, uint32_t value) {
  switch (address) {
    case kSauControl:
      core_.changeSau().control = value & 3;
      break;
    case kSauNumber:
      sauRegion_ = value % cpu_m::Sau::kRegions;
      break;
    case kSauBase:
      core_.changeSau().regions[sauRegion_].base = value & ~31u;
      break;
    case kSauLimit:
      core_.changeSau().regions[sauRegion_].limit = value & ~28u;
      break;
    case kSfsr:
      faults_.sfsr &= ~value;
      break;
    case kSfar:
      faults_.sfar = value;
      break;
    default:
      break;
  }
}

// --- all words

uint32_t SystemSpace::stored(World world, uint32_t address) const {
  if (const auto at = stored_[world].find(address); at != stored_[world].end()) return at->second;
  const auto at = storedAtReset().find(address);
  return at == storedAtReset().end() ? 0 : at->second;
}

void SystemSpace::store(World world, uint32_t address, uint32_t value) {
  if (storedAtReset().count(address) == 0 || (world == kNonSecure && address == kNsacr)) return;
  stored_[world][address] = value;
  if (address == kCpacr) core_.setCoprocessorAccess(world, value);
  if (address == kNsacr) core_.setNonSecureFloatingPoint((value & kNonSecureFp) != 0);
  if (address == kCcr) {
    core_.setArithmeticTraps(world, (value & kDivideTrap) != 0, (value & kUnalignedTrap) != 0);
    core_.setUrgentStackFree(world, (value & kUrgentStackFree) != 0);
    if (core_.waitStates() != nullptr)
      core_.waitStates()->setCaches(world, (value & kInstructionCache) != 0, (value & kDataCache) != 0);
  }
}

bool SystemSpace::refuses(uint32_t address, bool write) const {
  // The context determines how the access is made: LDRT and STRT are never privileged.
  if (core_.memory.context() != core_.unprivilegedContext()) return false;
  return !(write && address == kStir && (stored(core_.state.world, kCcr) & kUserSetsPending) != 0);
}

uint32_t SystemSpace::readWord(World world, uint32_t address) {
  if (address >= kTcmGates && address < kTcmGatesEnd)
    return world == kSecure ? tcmGates_[(address - kTcmGates) / kTcmGateFrame].read(address % kTcmGateFrame)
                            : 0;
  if (address >= kSysTickBase && address < kSysTickEnd) return sysTicks_[world].read(address - kSysTickBase);
  if (address >= kNvic && address < kNvicEnd) return readInterrupts(world, address - kNvic);
  if (address >= kDwt && address < kDwt + 0x1000) return counters_.readDwt(address - kDwt);
  if (address >= kPmu && address < kPmuEnd) return counters_.readPmu(address - kPmu);
  if (address >= kMpuControl && address < kMpuEnd) return readMpu(world, address);
  if (address >= kSauControl && address <= kSfar) return world == kSecure ? readSau(address) : 0;
  if (address >= kShpr1 && address <= kShpr3) return readPriorities(world, 4 + address - kShpr1);
  if (address >= kIdentityRegisters && address < kIdentityRegistersEnd) {
    const bool pacBti = address == kIsar5 && (board_.features & cpu_m::kPacBti) != 0;
    return kIdentityWords[(address - kIdentityRegisters) / 4] | (pacBti ? kPacBtiIdentity : 0);
  }
  switch (address) {
    case kIctr:
      return kInterruptLines / 32 - 1;
    case kCpuid:
      return board_.cpuid;
    case kItcmControl:
      return tcmControl(board_, "ITCM");
    case kDtcmControl:
      return tcmControl(board_, "DTCM");
    case kIcsr:
      return readIcsr(world);
    case kVtor:
      return vectorTable_[world];
    case kAircr:
      return readAircr(world);
    case kScr:
      return systemControl_;
    case kShcsr:
      return readShcsr(world);
    case kCfsr: {
      const uint32_t shared = faults_.cfsr[kSecure] & kBusFaultBits;
      return (faults_.cfsr[world] | shared) & visibleFaults(world);
    }
    case kHfsr:
      return faults_.hfsr;
    case kDfsr:
      return faults_.dfsr;
    case kMmfar:
      return faults_.mmfar[world];
    case kBfar:
      return (visibleFaults(world) & kBusFaultBits) != 0 ? faults_.bfar : 0;
    case kMpuType:
      return cpu_m::Mpu::kRegions << 8;
    case kDemcr:
      return readDemcr(world);
    case kFpccr:
      return core_.fp.control(world, interrupts_.faultsNonSecure());
    case kFpcar:
      return core_.fp.address(world);
    case kFpdscr:
      return core_.fp.defaultFpscr(world);
    // Single and double precision, half precision and MVE with floating point.
    case kMvfr0:
      return 0x10110221;
    case kMvfr1:
      return 0x12100211;
    case kMvfr2:
      return 0x00000040;
    default:
      return stored(world, address);
  }
}

void SystemSpace::writeWord(World world, uint32_t address, uint32_t value) {
  if (address >= kTcmGates && address < kTcmGatesEnd) {
    if (world == kSecure)
      tcmGates_[(address - kTcmGates) / kTcmGateFrame].write(address % kTcmGateFrame, value);
    return;
  }
  if (address >= kSysTickBase && address < kSysTickEnd)
    return sysTicks_[world].write(address - kSysTickBase, value);
  if (address >= kNvic && address < kNvicEnd) return writeInterrupts(world, address - kNvic, value);
  if (address >= kDwt && address < kDwt + 0x1000) return counters_.writeDwt(address - kDwt, value);
  if (address >= kPmu && address < kPmuEnd) return counters_.writePmu(address - kPmu, value);
  if (address >= kMpuControl && address < kMpuEnd) return writeMpu(world, address, value);
  if (address >= kSauControl && address <= kSfar) {
    if (world == kSecure) writeSau(address, value);
    return;
  }
  if (address >= kShpr1 && address <= kShpr3) return writePriorities(world, 4 + address - kShpr1, value);
  switch (address) {
    case kIcsr:
      return writeIcsr(world, value);
    case kVtor:
      vectorTable_[world] = value & ~0x7fu;
      codeChanged_ = true;
      return;
    case kAircr:
      return writeAircr(world, value);
    case kScr:
      systemControl_ = value & 0x1e;
      return;
    case kShcsr:
      return writeShcsr(world, value);
    case kCfsr:
      value &= visibleFaults(world);
      faults_.cfsr[world] &= ~value;
      faults_.cfsr[kSecure] &= ~(value & kBusFaultBits);
      return;
    case kHfsr:
      faults_.hfsr &= ~value;
      return;
    case kDfsr:
      faults_.dfsr &= ~value;
      return;
    case kMmfar:
      faults_.mmfar[world] = value;
      return;
    case kBfar:
      if ((visibleFaults(world) & kBusFaultBits) != 0) faults_.bfar = value;
      return;
    case kDemcr:
      return writeDemcr(world, value);
    case kFpccr:
      core_.fp.setControl(world, value, interrupts_.faultsNonSecure());
      core_.floatingPointChanged();
      return;
    case kFpcar:
      return core_.fp.setAddress(world, value);
    case kFpdscr:
      return core_.fp.setDefaultFpscr(world, (value & kFpdscrBits) | kNoTail);
    case kStir:
      writeInterrupts(world, kSetPending * 64 + (value & 0x1e0) / 8, 1u << (value & 31));
      return;
    case kIciallu:
    case kIcimvau:
      codeChanged_ = true;
      return;
    default:
      store(world, address, value);
      return;
  }
}

}  // namespace carina::platform
