// SPDX-License-Identifier: Apache-2.0
// The map of ports and blocks is that of Arm's board support packages for these subsystems.
#include "platform/access_gates.hpp"

#include <algorithm>
#include <bit>

#include "base/check.hpp"
#include "platform/peripherals.hpp"

namespace carina::platform {
namespace {

// Offsets in SACFG; NSACFG has the unprivileged bits of Non-secure code where SACFG has those of Secure code.
constexpr uint32_t kLock = 0x00, kResponse = 0x10, kCallable = 0x14, kMemoryStatus = 0x1c,
                   kPeripheralStatus = 0x20, kPeripheralClear = 0x24, kPeripheralEnable = 0x28,
                   kFirstPort = 0x50, kPortsEnd = 0xd0;
/// Offset from a bank's Non-secure register to its unprivileged one.
constexpr uint32_t kUnprivileged = 0x40;
constexpr uint32_t kBusErrors = 1;  // of kResponse

constexpr uint32_t kMemoryInterrupt = 9, kPeripheralInterrupt = 10;
constexpr uint32_t kAccessRegisters = 0x40080000, kGateRegisters = 0x1000;
/// Bits of kMemoryStatus, in the order of the controllers: two of the internal memory, then the expansions.
constexpr std::array<uint8_t, 5> kMemoryBits = {0, 1, 16, 17, 18};

// Registers of a memory's controller.
constexpr uint32_t kGateControl = 0x00, kGateLastWord = 0x10, kGateBlockSize = 0x14, kGateIndex = 0x18,
                   kGateTable = 0x1c, kGateStatus = 0x20, kGateClear = 0x24, kGateEnable = 0x28,
                   kGateInfo1 = 0x2c, kGateInfo2 = 0x30, kGateSet = 0x34, kGateIdentity = 0xfe0;
constexpr uint32_t kGateBusError = 1u << 4, kGateRequest = 1u << 6, kGateAcknowledge = 1u << 7,
                   kGateIncrement = 1u << 8, kGatedResponse = 1u << 16, kGatingPresent = 1u << 23,
                   kLockDown = 1u << 31;
constexpr uint32_t kGateIdentityValue = 0x65;  // SIE-300

/// What differs between the boards.
struct BoardMap {
  std::string_view board;
  uint32_t internal;   // bytes of each half of the internal memory
  uint32_t qspiBlock;  // bytes
  uint32_t shields;    // two-wire and serial buses
  uint32_t gpio;
  bool npuPort;  // the NPU's registers are behind a port
};
constexpr BoardMap kBoardMaps[] = {
    {"corstone-300", 1 * MiB, 64 * KiB, 0x49200000, 0x41100000, true},
    {"corstone-310", 2 * MiB, 256 * KiB, 0x49200000, 0x41100000, false},
    {"corstone-315", 2 * MiB, 256 * KiB, 0x48100000, 0x40100000, false},
    {"corstone-320", 2 * MiB, 256 * KiB, 0x48100000, 0x40100000, false},
};

const BoardMap& mapOf(const Board& board) {
  const auto* at = std::find_if(std::begin(kBoardMaps), std::end(kBoardMaps),
                                [&](const BoardMap& map) { return map.board == board.name; });
  CARINA_CHECK(at != std::end(kBoardMaps), "every board has a map");
  return *at;
}

const RamBlock& blockNamed(const Board& board, std::string_view name) {
  const auto at = std::find_if(board.ram.begin(), board.ram.end(),
                               [&](const RamBlock& block) { return block.name == name; });
  CARINA_CHECK(at != board.ram.end(), "every board has these memories");
  return *at;
}

/// The addresses of the controllers' registers (without bit 28), and the memories behind them.
std::vector<std::pair<uint32_t, MemoryGate::Place>> memoriesOf(const Board& board) {
  const BoardMap& map = mapOf(board);
  const auto whole = [&](std::string_view name, uint32_t block) {
    const RamBlock& ram = blockNamed(board, name);
    return MemoryGate::Place{ram.address, ram.alias, static_cast<uint32_t>(ram.size), block};
  };
  MemoryGate::Place first = whole("SRAM", 16 * KiB), second = first;
  first.size = second.size = map.internal;
  second.address += map.internal;
  second.alias += map.internal;
  return {{0x40083000, first},
          {0x40084000, second},
          {0x47000000, whole("BRAM", 16 * KiB)},
          {0x47001000, whole("QSPI", map.qspiBlock)},
          {0x47002000, whole("DDR", 1 * MiB)}};
}

}  // namespace

// --- memories

MemoryGate::MemoryGate(Place place, std::function<void()> changed, std::function<void()> interrupt)
    : place_(place),
      changed_(std::move(changed)),
      interrupt_(std::move(interrupt)),
      blocks_(std::max(1u, place.size / place.block / 32)),
      control_(kGateIncrement) {}

std::optional<uint32_t> MemoryGate::offsetOf(uint32_t address) const {
  for (const uint32_t base : {place_.address, place_.alias})
    if (address >= base && address - base < place_.size) return address - base;
  return std::nullopt;
}

bool MemoryGate::open(uint32_t offset, bool secure) const {
  const uint32_t block = offset / place_.block;
  return ((blocks_[block / 32] >> block % 32 & 1) != 0) != secure;
}

bool MemoryGate::refuse(uint32_t address, bool secure) {
  if (status_ == 0) {
    info1_ = address;
    info2_ = secure ? 1u << 17 : 1u << 16;  // bit 17: Non-secure block; bit 16: Non-secure transaction
  }
  status_ = 1;
  interrupt_();
  return (control_ & kGateBusError) != 0;
}

uint32_t MemoryGate::read(uint32_t offset) {
  switch (offset) {
    case kGateControl:
      return control_ | kGatingPresent | ((control_ & kGateRequest) != 0 ? kGateAcknowledge : 0);
    case kGateLastWord:
      return static_cast<uint32_t>(blocks_.size()) - 1;
    case kGateBlockSize:
      return static_cast<uint32_t>(std::countr_zero(place_.block)) - 5;
    case kGateIndex:
      return index_;
    case kGateTable: {
      const uint32_t value = index_ < blocks_.size() ? blocks_[index_] : 0;
      if ((control_ & kGateIncrement) != 0) index_ = (index_ + 1) % static_cast<uint32_t>(blocks_.size());
      return value;
    }
    case kGateStatus:
      return status_;
    case kGateEnable:
      return enabled_;
    case kGateInfo1:
      return info1_;
    case kGateInfo2:
      return info2_;
    case kGateIdentity:
      return kGateIdentityValue;
    default:
      return 0;
  }
}

void MemoryGate::write(uint32_t offset, uint32_t value) {
  const bool locked = (control_ & kLockDown) != 0;
  switch (offset) {
    case kGateControl:
      if (!locked)
        control_ = value & (kGateBusError | kGateRequest | kGateIncrement | kGatedResponse | kLockDown);
      break;
    case kGateIndex:
      index_ = value;
      break;
    case kGateTable:
      if (!locked && index_ < blocks_.size() && blocks_[index_] != value) {
        blocks_[index_] = value;
        changed_();
      }
      if ((control_ & kGateIncrement) != 0) index_ = (index_ + 1) % static_cast<uint32_t>(blocks_.size());
      break;
    case kGateClear:
      if ((value & 1) != 0) status_ = 0;
      break;
    case kGateEnable:
      if (!locked) enabled_ = value & 1;
      break;
    case kGateSet:
      status_ |= value & 1;
      break;
    default:
      return;
  }
  interrupt_();
}

// --- peripherals

std::vector<AccessGates::Ports> AccessGates::portsOf(const Board& board) {
  constexpr Bank kMainExpansion0{0x60, 20}, kPeripheral0{0x70, 0}, kExpansion0{0x80, 4}, kExpansion1{0x84, 5},
      kExpansion2{0x88, 6};
  const BoardMap& map = mapOf(board);
  std::vector<Ports> ports = {
      {0x48000000, kDeviceFrame, 3, kPeripheral0, 0},        // system timers 0 to 2
      {0x48003000, kDeviceFrame, 1, kPeripheral0, 5},        // and 3
      {0x48040000, kDeviceFrame, 2, kPeripheral0, 6, true},  // the Non-secure watchdog
      {map.gpio, kDeviceFrame, 4, kMainExpansion0, 0},
      {map.shields, kDeviceFrame, 7, kExpansion1, 0},
      {map.shields + 8 * kDeviceFrame, kDeviceFrame, 1, kExpansion1, 8},
      {board.scc, kDeviceFrame, 9, kExpansion2, 0},                       // SCC, I2S, FPGA I/O, UART 0 to 5
      {board.scc + 10 * kDeviceFrame, kDeviceFrame, 2, kExpansion2, 10},  // display, clock
      {0x4ff00000, 0x10000, 8, kExpansion2, 12, true},                    // virtual streams
      {0x4fef0000, 0x10000, 1, kExpansion2, 13},
      {0x4fee0000, 0x10000, 1, kExpansion2, 14},
  };
  if (map.npuPort) ports.push_back({board.npu, kDeviceFrame, 1, kExpansion0, 4});
  if (board.timingAdapter[0] != 0)
    ports.push_back({board.timingAdapter[0] & ~(kDeviceFrame - 1), kDeviceFrame, 1, kExpansion0, 5});
  return ports;
}

AccessGates::AccessGates(const Board& board, Core& core, Interrupts& interrupts,
                         std::function<void(uint32_t bits)> setCallable)
    : core_(core), interrupts_(interrupts), setCallable_(std::move(setCallable)), ports_(portsOf(board)) {
  for (Ports& ports : ports_) ports.base &= ~kSecureBit;
  for (const auto& [registers, place] : memoriesOf(board)) {
    memories_.emplace_back(
        place, [this] { core_.gatesChanged(); }, [this] { updateInterrupts(); });
    memoryRegisters_.push_back(registers);
  }
}

void AccessGates::addTo(Peripherals& peripherals) {
  peripherals.addSecure(kAccessRegisters, kGateRegisters, "sacfg", secureRegisters_);
  peripherals.add(kAccessRegisters, kGateRegisters, "nsacfg", otherRegisters_);
  for (size_t i = 0; i < memories_.size(); ++i)
    peripherals.addSecure(memoryRegisters_[i], kGateRegisters, fmt::format("mpc{}", i), memories_[i]);
}

void AccessGates::close() {
  closed_ = true;
  core_.setGates(this);
}

std::optional<AccessGates::Port> AccessGates::portOf(uint32_t address) const {
  const uint32_t plain = address & ~kSecureBit;
  for (const Ports& ports : ports_) {
    if (plain < ports.base || plain - ports.base >= ports.stride * ports.count) continue;
    const uint32_t number = ports.together ? 0 : (plain - ports.base) / ports.stride;
    return Port{ports.bank, 1u << (ports.first + number)};
  }
  return std::nullopt;
}

bool AccessGates::open(uint32_t address, bool secure) const {
  for (const MemoryGate& memory : memories_)
    if (const auto offset = memory.offsetOf(address)) return memory.open(*offset, secure);
  return true;
}

void AccessGates::busError(uint32_t address, bool write) {
  throw cpu_m::Trap{write ? StopReason::WriteFault : StopReason::ReadFault, address};
}

bool AccessGates::refused(uint32_t address, bool secure) {
  for (MemoryGate& memory : memories_) {
    if (!memory.offsetOf(address)) continue;
    const bool error = memory.refuse(address, secure);
    return error || (word(true, kResponse) & kBusErrors) != 0;
  }
  return false;
}

void AccessGates::refuse(uint32_t address, bool write, bool secure) {
  if (refused(address, secure)) busError(address, write);
}

uint64_t AccessGates::blockEnd(uint32_t address) const {
  uint64_t end = uint64_t{address | 0xfff} + 1;  // memories end on page boundaries
  for (const MemoryGate& memory : memories_) {
    if (const auto offset = memory.offsetOf(address))
      end = uint64_t{address} + (memory.blockEnd(*offset) - *offset);
  }
  return end;
}

bool AccessGates::passes(uint32_t address, bool write) {
  if (!closed_) return true;
  const auto port = portOf(address);
  if (!port) return true;
  const bool secure = core_.sau().attribution(address).secure;
  const bool privileged = core_.memory.context() != core_.unprivilegedContext();
  const bool nonSecurePort = (word(true, port->bank.offset) & port->bit) != 0;
  const bool unprivilegedPort = (word(!nonSecurePort, port->bank.offset + kUnprivileged) & port->bit) != 0;
  if (nonSecurePort != secure && (privileged || unprivilegedPort)) return true;
  registers_[1][kPeripheralStatus / 4] |= 1u << port->bank.interrupt;
  updateInterrupts();
  if ((word(true, kResponse) & kBusErrors) != 0) busError(address, write);
  return false;
}

uint32_t AccessGates::readRegister(bool secure, uint32_t offset) const {
  if (offset >= kSize) return 0;
  if (!secure || offset != kMemoryStatus) return word(secure, offset);
  uint32_t status = 0;
  for (size_t i = 0; i < memories_.size(); ++i)
    status |= (memories_[i].interrupting() ? 1u : 0u) << kMemoryBits[i];
  return status;
}

void AccessGates::writeRegister(bool secure, uint32_t offset, uint32_t value) {
  if (offset >= kSize) return;
  uint32_t& target = registers_[secure ? 1 : 0][offset / 4];
  if (!secure) {
    if (offset >= kFirstPort + kUnprivileged && offset < kPortsEnd) target = value;
    return;
  }
  const bool locked = (word(true, kLock) & 1) != 0;
  if (offset == kPeripheralClear) {
    registers_[1][kPeripheralStatus / 4] &= ~value;
  } else if (offset == kLock) {
    target |= value & 1;
  } else if (offset != kMemoryStatus && offset != kPeripheralStatus &&
             !(locked && (offset == kCallable || (offset >= kFirstPort && offset < kPortsEnd)))) {
    target = value;
    if (offset == kCallable) setCallable_(value);
  }
  updateInterrupts();
}

void AccessGates::updateInterrupts() {
  const bool memory = std::any_of(memories_.begin(), memories_.end(),
                                  [](const MemoryGate& gate) { return gate.interrupting(); });
  interrupts_.setLine(kMemoryInterrupt, memory);
  interrupts_.setLine(kPeripheralInterrupt,
                      (word(true, kPeripheralStatus) & word(true, kPeripheralEnable)) != 0);
}

}  // namespace carina::platform
