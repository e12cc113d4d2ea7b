// SPDX-License-Identifier: Apache-2.0
// The device behind its registers (model.hpp), as a driver accesses it.
#include <algorithm>
#include <array>
#include <cstring>

#include "format/ethosu_registers.hpp"
#include "npu/model/command_processor.hpp"
#include "npu/model/pmu.hpp"

namespace carina::npu {
namespace {

namespace reg = format::ethosu_reg;
namespace status = format::ethosu_status;
namespace command = format::ethosu_cmd;

constexpr uint32_t kMaxStreamBytes = 1u << 24;

uint32_t idOf(Family family) {
  switch (family) {
    case Family::U55:
      return format::ethosu_id::kU55;
    case Family::U65:
      return format::ethosu_id::kU65;
    default:
      return format::ethosu_id::kU85;
  }
}

}  // namespace

struct Npu::State final : model::AddressMap {
  State(const Machine& machine, Memory& bus, const ModelOptions& options)
      : memory(&bus), processor(machine, options), pmu(machine.target->architecture()) {
    reset(0);
  }

  // --- bus
  std::byte* resolve(uint8_t region, uint64_t offset, uint64_t length, Access access) override {
    if (region >= baseP.size()) return nullptr;
    const uint64_t address = (baseP[region] + offset) & addressMask();
    if (length == 0 || length > addressMask() - address + 1) return nullptr;
    return memory->resolve(address, length, access);
  }
  uint64_t addressMask() const {
    return (uint64_t{1} << processor.machine().target->architecture().addressBits) - 1;
  }
  bool u85() const { return processor.machine().target->isU85(); }

  // --- registers
  void reset(uint32_t value) {
    processor.reset();
    pmu.reset();
    plain.fill(0);
    baseP.fill(0);
    qBase = 0;
    qSize = 0;
    statusBits = 0;
    interruptHistory = 0;
    interruptLine = false;
    stopRequested = false;
    commandBits = command::kResetValue;
    protection = value & 3;
    lastCounts = {};
    latest = {};
    findings.clear();
  }

  uint32_t readStatus() const {
    uint32_t value = statusBits | uint32_t{interruptHistory} << status::kIrqHistoryShift;
    if (processor.running()) value |= status::kRunning;
    if (interruptLine) value |= status::kIrqRaised;
    if (pmu.interrupt()) value |= status::kPmuIrqRaised;
    return value;
  }

  uint32_t identification(uint32_t offset) const {
    switch (offset) {
      case reg::kPid4:
        return 0x04;
      case reg::kPid0:
        return 0x80 + format::ethosu_config::product(processor.machine().target->configWord);
      case reg::kPid0 + 4:
        return 0xb5;
      case reg::kPid0 + 8:
        return 0x0b;
      case reg::kCid0:
        return 0x0d;
      case reg::kCid0 + 4:
        return 0xf0;
      case reg::kCid0 + 8:
        return 0x05;
      case reg::kCid0 + 12:
        return 0xb1;
      default:
        return 0;
    }
  }

  void raise(uint16_t mask) {
    interruptHistory = static_cast<uint16_t>(interruptHistory | mask);
    interruptLine = true;
  }

  void start() {
    if (processor.running() || (statusBits & kFaultBits) != 0) return;
    statusBits = 0;
    findings.clear();
    lastCounts = {};
    latest = {};
    fault.reset();
    std::vector<uint32_t> words(qSize / 4);
    const std::byte* bytes = nullptr;
    const bool legal = qSize % 4 == 0 && qSize > 0 && qSize <= kMaxStreamBytes;
    if (legal) bytes = memory->resolve(qBase & addressMask(), qSize, Access::Read);
    if (bytes == nullptr) {
      fault = Fault{FaultKind::Bus, 0,
                    fmt::format("command stream of {} bytes at 0x{:x} cannot be read", qSize, qBase), 0};
      recordFault();
      return;
    }
    std::memcpy(words.data(), bytes, qSize);
    processor.start(std::move(words));
    if (processor.checker() == nullptr) return;
    for (size_t index = 0; index < baseP.size(); ++index) {
      const auto region = static_cast<uint8_t>(index);
      const bool readOnly =
          resolve(region, 0, 1, Access::Read) != nullptr && resolve(region, 0, 1, Access::Write) == nullptr;
      if (readOnly) processor.checker()->assumeInitialized(region);
    }
  }

  void recordFault() {
    if (!fault) fault = processor.fault();
    switch (fault->kind) {
      case FaultKind::Bus:
        statusBits |= status::kBusStatus | uint32_t{fault->channel} << status::kFaultingChannelShift;
        break;
      case FaultKind::WeightStream:
        statusBits |= u85() ? status::kCmdParseError : status::kWdFault;
        break;
      case FaultKind::Branch:
        statusBits |= status::kBranchFault;
        break;
      case FaultKind::Parse:
      case FaultKind::Limit:
        statusBits |= status::kCmdParseError;
        break;
    }
    raise(0);
  }

  /// CMD.stop_request took effect (assumption stop-request): the rest of the stream is not executed.
  bool stop() {
    stopRequested = false;
    processor.halt();
    raise(0);
    finishRun();
    return false;
  }

  void finishRun() {
    latest = processor.statistics();
    if (processor.checker() != nullptr) findings = processor.checker()->take();
  }

  bool step() {
    if (!processor.running()) return false;
    if (stopRequested) return stop();
    using Step = model::CommandProcessor::Step;
    const Step result = processor.step(*this);
    // The counters are updated at operations: set-commands take no time of their own.
    if (result != Step::Continue || processor.cyclesSoFar() != lastCounts.cycles) {
      const PmuCounts now = processor.pmuSoFar();
      pmu.advance(lastCounts, now, processor.countingMasked());
      lastCounts = now;
    }
    switch (result) {
      case Step::Continue:
        return true;
      case Step::Interrupt:
        raise(processor.interruptMask());
        return true;
      case Step::Stopped:
        statusBits |= status::kCmdEndReached;
        raise(processor.interruptMask());
        break;
      case Step::Faulted:
        recordFault();
        break;
    }
    stopRequested = false;
    finishRun();
    return false;
  }

  static constexpr uint32_t kFaultBits =
      status::kBusStatus | status::kCmdParseError | status::kWdFault | status::kBranchFault;

  Memory* memory;
  model::CommandProcessor processor;
  model::Pmu pmu;
  std::array<uint32_t, reg::kSizeU85 / 4> plain{};  // registers that only store what is written
  std::array<uint64_t, 8> baseP{};
  uint64_t qBase = 0;
  uint32_t qSize = 0, statusBits = 0, commandBits = 0, protection = 0;
  uint16_t interruptHistory = 0;
  bool interruptLine = false;
  bool stopRequested = false;
  PmuCounts lastCounts;
  RunStats latest;
  std::optional<Fault> fault;
  std::vector<Finding> findings;
};

Npu::Npu(const Machine& machine, Memory& memory, const ModelOptions& options)
    : state_(std::make_unique<State>(machine, memory, options)) {}
Npu::~Npu() = default;
Npu::Npu(Npu&&) noexcept = default;
Npu& Npu::operator=(Npu&&) noexcept = default;

uint32_t Npu::read32(uint32_t offset) {
  State& s = *state_;
  const uint32_t size = s.u85() ? reg::kSizeU85 : reg::kSizeU55U65;
  if (offset % 4 != 0 || offset >= size) return 0;
  const uint32_t pmuBase = s.u85() ? reg::kPmuBaseU85 : reg::kPmuBaseU55U65;
  if (offset >= pmuBase && offset < pmuBase + 0x280 && (s.u85() || offset < 0x200 || offset >= 0x300)) {
    return s.pmu.read(offset - pmuBase);
  }
  if (offset >= reg::kBaseP && offset < reg::kBaseP + 64) {
    return static_cast<uint32_t>(s.baseP[(offset - reg::kBaseP) / 8] >> (offset % 8 == 0 ? 0 : 32));
  }
  if (offset >= reg::kInternalMemory && offset < reg::kInternalMemory + 0x400) {
    const std::vector<uint8_t>& bytes = s.processor.executor().internalMemory();
    const uint64_t at =
        (s.plain[reg::kDebugAddress / 4] & 0x0fffffff) + uint64_t{offset - reg::kInternalMemory};
    uint32_t word = 0;
    if (at + 4 <= bytes.size()) std::memcpy(&word, bytes.data() + at, 4);
    return word;
  }
  if (offset >= reg::kRevision && offset < reg::kSizeU55U65) return s.identification(offset);
  switch (offset) {
    case reg::kId:
      return idOf(s.processor.machine().target->family);
    case reg::kStatus:
      return s.readStatus();
    case reg::kCmd:
      return s.commandBits;
    case reg::kQBase:
      return static_cast<uint32_t>(s.qBase);
    case reg::kQBase + 4:
      return static_cast<uint32_t>(s.qBase >> 32);
    case reg::kQRead:
    case reg::kCurrentQRead:
      return s.processor.position();
    case reg::kQSize:
      return s.qSize;
    case reg::kProt:
      return s.protection;
    case reg::kConfig:
      return s.processor.machine().target->configWord;
    case reg::kCondStatus:
      if (s.u85()) return s.processor.executor().resultFlag() ? 1 : 0;
      break;
    default:
      break;
  }
  return s.plain[offset / 4];
}

void Npu::write32(uint32_t offset, uint32_t value) {
  State& s = *state_;
  const uint32_t size = s.u85() ? reg::kSizeU85 : reg::kSizeU55U65;
  if (offset % 4 != 0 || offset >= size) return;
  const uint32_t pmuBase = s.u85() ? reg::kPmuBaseU85 : reg::kPmuBaseU55U65;
  if (offset >= pmuBase && offset < pmuBase + 0x280 && (s.u85() || offset < 0x200 || offset >= 0x300)) {
    s.pmu.write(offset - pmuBase, value);
    return;
  }
  const uint64_t high =
      uint64_t{s.processor.machine().target->architecture().addressBits > 32 ? value & 0xff : 0} << 32;
  if (offset >= reg::kBaseP && offset < reg::kBaseP + 64) {
    uint64_t& base = s.baseP[(offset - reg::kBaseP) / 8];
    base = offset % 8 == 0 ? (base & ~uint64_t{0xffffffff}) | value : (base & 0xffffffff) | high;
    return;
  }
  if (offset >= reg::kInternalMemory && offset < reg::kInternalMemory + 0x400) {
    std::vector<uint8_t>& bytes = s.processor.executor().internalMemory();
    const uint64_t at =
        (s.plain[reg::kDebugAddress / 4] & 0x0fffffff) + uint64_t{offset - reg::kInternalMemory};
    if (at + 4 <= bytes.size()) std::memcpy(bytes.data() + at, &value, 4);
    return;
  }
  switch (offset) {
    case reg::kCmd:
      s.commandBits = value & (command::kClockQEnable | command::kPowerQEnable);
      if ((value & command::kClearIrq) != 0) s.interruptLine = false;
      s.interruptHistory =
          static_cast<uint16_t>(s.interruptHistory & ~(value >> command::kClearIrqHistoryShift));
      if ((value & command::kStopRequest) != 0) s.stopRequested = s.processor.running();
      if ((value & command::kRun) != 0) s.start();
      return;
    case reg::kReset:
      s.reset(value);
      return;
    case reg::kQBase:
      s.qBase = (s.qBase & ~uint64_t{0xffffffff}) | value;
      return;
    case reg::kQBase + 4:
      s.qBase = (s.qBase & 0xffffffff) | high;
      return;
    case reg::kQSize:
      s.qSize = value;
      return;
    case reg::kId:
    case reg::kStatus:
    case reg::kQRead:
    case reg::kProt:
    case reg::kConfig:
    case reg::kCurrentQRead:
      return;  // read-only
    default:
      break;
  }
  if (offset >= reg::kState && offset < reg::kStateEnd) return;  // the command stream's own state
  if (offset >= reg::kRevision && offset < reg::kSizeU55U65) return;
  s.plain[offset / 4] = value;
}

bool Npu::interrupt() const {
  return state_->interruptLine || state_->pmu.interrupt();
}
bool Npu::running() const {
  return state_->processor.running();
}
bool Npu::step() {
  return state_->step();
}

bool Npu::run(int64_t maxCommands) {
  for (int64_t i = 0; maxCommands < 0 || i < maxCommands; ++i) {
    if (!state_->step()) break;
  }
  return running();
}

Cycles Npu::elapsed() const {
  return state_->processor.cyclesSoFar();
}
PmuCounts Npu::counts() const {
  return state_->processor.pmuSoFar();
}
const RunStats& Npu::stats() const {
  return state_->latest;
}
const std::optional<Fault>& Npu::fault() const {
  return state_->fault;
}
const std::vector<Finding>& Npu::findings() const {
  return state_->findings;
}
const Machine& Npu::machine() const {
  return state_->processor.machine();
}
void Npu::setMachine(const Machine& machine) {
  state_->processor.setMachine(machine);
}
void Npu::setLimits(int64_t runWork, int64_t operationBytes) {
  state_->processor.setLimits(runWork, operationBytes);
}
void Npu::setInitialized(std::vector<InitializedRange> ranges) {
  state_->processor.setInitialized(std::move(ranges));
}

}  // namespace carina::npu
