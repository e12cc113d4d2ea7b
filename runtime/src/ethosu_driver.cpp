// SPDX-License-Identifier: Apache-2.0
// Register sequences of the driver, as the public hardware interface requires: reset before each job, memory
// attributes, power kept on while a job runs, interrupt cleared before its cause is read.
#include "carina/ethosu_driver.hpp"

#include "format/ethosu_payload.hpp"
#include "format/ethosu_registers.hpp"

namespace carina::rt {

namespace reg = format::ethosu_reg;
namespace config = format::ethosu_config;
namespace status = format::ethosu_status;
namespace cmd = format::ethosu_cmd;
namespace pmu = format::ethosu_pmu;

namespace {

constexpr uint32_t kResetPolls = 100000;
constexpr uint32_t kSpuriousInterrupts = 100;
constexpr uint32_t kFaultBits =
    status::kBusStatus | status::kCmdParseError | status::kWdFault | status::kEccFault | status::kBranchFault;

// Memory transactions that the ports may have in flight; values of Arm's driver.
constexpr uint32_t kAxiLimitU55 = 0x0f1f0000;  // 32 reads, 16 writes, 64-byte bursts
constexpr uint32_t kAxiLimitU65 = 0x1f3f0000;  // 64 reads, 32 writes, 64-byte bursts
constexpr uint32_t kAxiSramU85 = 0x00020f0b;   // 12 reads, 16 writes, 256-byte bursts
constexpr uint32_t kAxiExtU85 = 0x00021f3f;    // 64 reads, 32 writes, 256-byte bursts
constexpr uint32_t kMemAttrExternal = 1u << 2;

uint32_t low(uint64_t address) {
  return static_cast<uint32_t>(address);
}
uint32_t high(uint64_t address) {
  return static_cast<uint32_t>(address >> 32);
}

}  // namespace

Status EthosUDriver::open() {
  open_ = false;
  info_.config = device_.read32(reg::kConfig);
  info_.id = device_.read32(reg::kId);
  if (config::product(info_.config) > static_cast<uint32_t>(NpuProduct::U85)) {
    return failure(Code::Unsupported, "the device is no Ethos-U55, U65 or U85", info_.config);
  }
  info_.product = static_cast<NpuProduct>(config::product(info_.config));
  CARINA_RT_TRY(reset());
  open_ = true;
  return Status{};
}

Status EthosUDriver::reset() {
  const uint32_t wanted = (options_.privileged ? format::ethosu_reset::kPrivileged : 0) |
                          (options_.secure ? 0 : format::ethosu_reset::kNonSecure);
  device_.write32(reg::kReset, wanted);
  uint32_t polls = 0;
  while ((device_.read32(reg::kStatus) & status::kResetStatus) != 0) {
    if (++polls == kResetPolls) return failure(Code::DeviceTimeout, "the NPU does not come out of reset");
  }
  const uint32_t levels = format::ethosu_reset::kPrivileged | format::ethosu_reset::kNonSecure;
  if ((device_.read32(reg::kProt) & levels) != wanted) {
    return failure(Code::DeviceFault, "the NPU was not given the security or privilege level asked for");
  }
  programMemory();
  return Status{};
}

void EthosUDriver::programMemory() {
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t value = info_.product == NpuProduct::U85   ? (i < 2 ? 0 : kMemAttrExternal)
                           : info_.product == NpuProduct::U65 ? kAxiLimitU65
                                                              : kAxiLimitU55;
    device_.write32(reg::kAxiLimit0 + 4 * i, value);
  }
  if (info_.product != NpuProduct::U85) return;
  device_.write32(reg::kAxiSram, kAxiSramU85);
  device_.write32(reg::kAxiExt, kAxiExtU85);
  device_.write32(reg::kPowerCtrl, 0);
}

Status EthosUDriver::parse(Bytes payload, Span<const uint32_t>* stream, uint32_t* configWord, uint32_t* id) {
  format::PayloadView view;
  const format::PayloadStatus result = format::parsePayload(payload.data, payload.size, &view);
  if (result != format::PayloadStatus::Ok)
    return failure(Code::CorruptDelegate, format::payloadStatusText(result));
  if (!isAligned(view.stream, format::kEthosUBaseAlignment))
    return failure(Code::Misaligned, "the command stream is not 16-byte aligned");
  if (view.streamWords == 0) return failure(Code::CorruptDelegate, "the command stream is empty");
  if (view.streamWords > format::kEthosUMaxStreamBytes / 4)
    return failure(Code::CorruptDelegate, "the command stream is longer than 16 MiB");
  *stream = Span<const uint32_t>(reinterpret_cast<const uint32_t*>(view.stream), view.streamWords);
  *configWord = view.hasConfig ? view.config : 0;
  *id = view.hasConfig ? view.id : 0;
  return Status{};
}

Status EthosUDriver::check(Bytes payload, Span<const uint32_t>* stream) const {
  uint32_t wanted = 0, id = 0;
  CARINA_RT_TRY(parse(payload, stream, &wanted, &id));
  if (wanted == 0 && id == 0) return Status{};
  const uint32_t have = info_.config;
  if (config::product(wanted) != config::product(have))
    return failure(Code::WrongTarget, "compiled for another Ethos-U family than the one present");
  if (config::log2Macs(wanted) != config::log2Macs(have)) {
    return failure(Code::WrongTarget, "compiled for another number of MACs per cycle than the NPU has",
                   1u << config::log2Macs(wanted));
  }
  if (config::commandStreamVersion(wanted) != config::commandStreamVersion(have)) {
    return failure(Code::WrongTarget, "compiled for another version of the command stream");
  }
  if (config::customDma(wanted) && !config::customDma(have))
    return failure(Code::WrongTarget, "compiled for an NPU with custom DMA");
  if (info_.product == NpuProduct::U85 && (config::log2SramPorts(wanted) != config::log2SramPorts(have) ||
                                           config::log2ExtPorts(wanted) != config::log2ExtPorts(have))) {
    return failure(Code::WrongTarget, "compiled for another number of memory ports than the NPU has");
  }
  if (format::ethosu_id::archMajor(id) != format::ethosu_id::archMajor(info_.id) ||
      format::ethosu_id::archMinor(id) > format::ethosu_id::archMinor(info_.id)) {
    return failure(Code::WrongTarget, "compiled for a newer architecture version than the NPU has");
  }
  return Status{};
}

Status EthosUDriver::start(Bytes payload, Span<const Region> regions) {
  if (!open_) return failure(Code::InvalidState, "the driver was not opened");
  if (busy_) return failure(Code::InvalidState, "a job is under way");
  if (regions.size > kMaxRegions) return failure(Code::InvalidArgument, "a job has at most 8 regions");
  CARINA_RT_TRY(check(payload, &stream_));
  if (options_.validate != nullptr) CARINA_RT_TRY(options_.validate(info_.config, stream_, regions));
  uint64_t addresses[kMaxRegions] = {};
  uint64_t queue = 0;
  if (!device_.map(stream_.data, stream_.size * 4, Access::Read, &queue))
    return failure(Code::MapFailed, "the NPU cannot reach the command stream");
  regionCount_ = 0;
  for (const Region& region : regions) {
    const bool used = region.bytes != 0;
    const bool reachable =
        !used || (isAligned(region.data, format::kEthosUBaseAlignment) &&
                  device_.map(region.data, region.bytes, region.access, &addresses[regionCount_]));
    if (!reachable) {
      unmapAll();
      return failure(Code::MapFailed, "the NPU cannot reach a region, or it is not 16-byte aligned",
                     regionCount_);
    }
    regions_[regionCount_++] = region;
  }
  device_.clean(stream_.data, stream_.size * 4);
  for (uint32_t i = 0; i < regionCount_; ++i) {
    if (regions_[i].bytes != 0) device_.clean(regions_[i].data, regions_[i].bytes);
  }
  const Status ready = reset();
  if (!ready.ok()) {
    unmapAll();
    return ready;
  }
  device_.write32(reg::kCmd, 0);  // clock and power stay on
  programPmu();
  const bool wide = info_.product != NpuProduct::U55;
  device_.write32(reg::kQBase, low(queue));
  if (wide) device_.write32(reg::kQBase + 4, high(queue));
  device_.write32(reg::kQSize, static_cast<uint32_t>(stream_.size * 4));
  const RegionAttributes attributes =
      options_.hasAttributes ? options_.attributes : RegionAttributes::sharedSram(info_.product);
  device_.write32(reg::kQConfig, attributes.queue);
  uint32_t regionConfig = 0;
  for (uint32_t i = 0; i < regionCount_; ++i) {
    device_.write32(reg::kBaseP + 8 * i, low(addresses[i]));
    if (wide) device_.write32(reg::kBaseP + 8 * i + 4, high(addresses[i]));
    regionConfig |= (attributes.region[i] & 3u) << (2 * i);
  }
  device_.write32(reg::kRegionCfg, regionConfig);
  fault_ = FaultReport();
  busy_ = true;
  device_.write32(reg::kCmd, cmd::kRun);
  return Status{};
}

bool EthosUDriver::running() {
  return busy_ && (device_.read32(reg::kStatus) & status::kRunning) != 0;
}

Status EthosUDriver::finish() {
  if (!busy_) return failure(Code::InvalidState, "no job is under way");
  Wait outcome = Wait::Interrupt;
  uint32_t state = 0;
  for (uint32_t i = 0; i < kSpuriousInterrupts; ++i) {
    outcome = device_.wait(options_.timeoutMilliseconds);
    device_.write32(reg::kCmd, cmd::kClearIrq);
    state = device_.read32(reg::kStatus);
    if (outcome == Wait::Timeout || (state & status::kRunning) == 0) break;
  }
  busy_ = false;
  const bool done =
      (state & kFaultBits) == 0 && (state & status::kCmdEndReached) != 0 && (state & status::kRunning) == 0;
  readPmu();
  if (done) {
    for (uint32_t i = 0; i < regionCount_; ++i) {
      if (regions_[i].access != Access::Read && regions_[i].bytes != 0)
        device_.invalidate(regions_[i].data, regions_[i].bytes);
    }
    device_.write32(reg::kCmd, cmd::kClockQEnable | cmd::kPowerQEnable);
    unmapAll();
    return Status{};
  }
  fault_.status = state;
  fault_.commandOffset = device_.read32(reg::kQRead);
  if (fault_.commandOffset / 4 < stream_.size) fault_.commandWord = stream_[fault_.commandOffset / 4];
  const Status after = reset();
  unmapAll();
  if (!after.ok()) return after;
  if ((state & kFaultBits) == 0 && (state & status::kRunning) != 0) {
    return failure(Code::DeviceTimeout, "the NPU did not finish the command stream in time",
                   fault_.commandOffset);
  }
  if (fault_.busError())
    return failure(Code::DeviceFault, "the NPU accessed memory outside its regions", fault_.commandOffset);
  if (fault_.parseError())
    return failure(Code::DeviceFault, "the NPU met an illegal command", fault_.commandOffset);
  if (fault_.weightError())
    return failure(Code::DeviceFault, "the NPU met a corrupt weight stream", fault_.commandOffset);
  if (fault_.branchError())
    return failure(Code::DeviceFault, "the NPU met an illegal branch", fault_.commandOffset);
  if (fault_.eccError())
    return failure(Code::DeviceFault, "the NPU found an error in its own memory", fault_.commandOffset);
  return failure(Code::DeviceFault, "the NPU stopped before the end of the command stream",
                 fault_.commandOffset);
}

Status EthosUDriver::run(Bytes payload, Span<const Region> regions) {
  CARINA_RT_TRY(start(payload, regions));
  return finish();
}

void EthosUDriver::unmapAll() {
  for (uint32_t i = 0; i < regionCount_; ++i) {
    if (regions_[i].bytes != 0) device_.unmap(regions_[i].data, regions_[i].bytes);
  }
  device_.unmap(stream_.data, stream_.size * 4);
  regionCount_ = 0;
}

uint32_t EthosUDriver::pmuBase() const {
  return format::ethosuPmuBase(static_cast<format::EthosUProduct>(info_.product));
}

void EthosUDriver::usePmu(const PmuSetup& setup) {
  pmuSetup_ = setup;
  const uint32_t counters = format::ethosuPmuCounters(static_cast<format::EthosUProduct>(info_.product));
  if (pmuSetup_.count > counters) pmuSetup_.count = static_cast<uint8_t>(counters);
}

void EthosUDriver::programPmu() {
  const uint32_t base = pmuBase();
  device_.write32(base + reg::kPmcr, pmu::kEnable);
  device_.write32(base + reg::kPmCcntrCfg, pmuSetup_.cycleStart | static_cast<uint32_t>(pmuSetup_.cycleStop)
                                                                      << 16);
  uint32_t enabled = pmu::kCycleCounterBit;
  for (uint32_t i = 0; i < pmuSetup_.count; ++i) {
    device_.write32(base + reg::kPmEvTyper0 + 4 * i, pmuSetup_.events[i]);
    enabled |= 1u << i;
  }
  device_.write32(base + reg::kPmCntEnSet, enabled);
  device_.write32(base + reg::kPmcr, pmu::kEnable | pmu::kResetCycles | pmu::kResetEvents);
}

void EthosUDriver::readPmu() {
  const uint32_t base = pmuBase();
  pmu_ = PmuResult();
  pmu_.cycles = device_.read32(base + reg::kPmCcntrLo) |
                static_cast<uint64_t>(device_.read32(base + reg::kPmCcntrHi) & 0xffffu) << 32;
  for (uint32_t i = 0; i < pmuSetup_.count; ++i)
    pmu_.events[i] = device_.read32(base + reg::kPmEvCntr0 + 4 * i);
  device_.write32(base + reg::kPmcr, 0);
}

}  // namespace carina::rt
