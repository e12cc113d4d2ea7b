// SPDX-License-Identifier: Apache-2.0
// Host-side registers of Ethos-U55, U65 and U85: offsets in bytes from the NPU's base address, and the bits a
// driver or a model of the device needs. Header-only and freestanding.
#pragma once

#include <cstdint>

namespace carina::format {

/// CONFIG.product.
enum class EthosUProduct : uint32_t { U55 = 0, U65 = 1, U85 = 2 };

namespace ethosu_reg {
// Common to the three families.
constexpr uint32_t kId = 0x0000;
constexpr uint32_t kStatus = 0x0004;
constexpr uint32_t kCmd = 0x0008;
constexpr uint32_t kReset = 0x000c;
constexpr uint32_t kQBase = 0x0010;  // 64 bits, low word first (U55: low word only)
constexpr uint32_t kQRead = 0x0018;
constexpr uint32_t kQConfig = 0x001c;
constexpr uint32_t kQSize = 0x0020;
constexpr uint32_t kProt = 0x0024;
constexpr uint32_t kConfig = 0x0028;
constexpr uint32_t kRegionCfg = 0x003c;
constexpr uint32_t kBaseP = 0x0080;  // 8 x 64 bits
constexpr uint32_t kClkForce = 0x0140;
constexpr uint32_t kDebugAddress = 0x0144;
constexpr uint32_t kDebugMisc = 0x0148;
constexpr uint32_t kCurrentQRead = 0x027c;
constexpr uint32_t kCurrentOp = 0x02b8;
constexpr uint32_t kCurrentCmd = 0x02bc;
constexpr uint32_t kInternalMemory = 0x0400;  // 1 KiB window into SHRAM or internal RAMs
constexpr uint32_t kRevision = 0x0fc0;
constexpr uint32_t kPid4 = 0x0fd0;
constexpr uint32_t kPid0 = 0x0fe0;
constexpr uint32_t kCid0 = 0x0ff0;
// U55 and U65.
constexpr uint32_t kLock = 0x002c;
constexpr uint32_t kAxiLimit0 = 0x0040;  // 4 x 32 bits
// U85.
constexpr uint32_t kCondStatus = 0x0030;
constexpr uint32_t kPowerCtrl = 0x0038;
constexpr uint32_t kMemAttr0 = 0x0040;  // 4 x 32 bits
constexpr uint32_t kAxiSram = 0x0050;
constexpr uint32_t kAxiExt = 0x0054;
constexpr uint32_t kCfgSramCap = 0x0060;
constexpr uint32_t kCfgExtCap = 0x0064;
// The window that mirrors the command stream's state.
constexpr uint32_t kState = 0x0800;
constexpr uint32_t kStateEnd = 0x0c00;
// PMU: block base, and offsets from it.
constexpr uint32_t kPmuBaseU55U65 = 0x0180;
constexpr uint32_t kPmuBaseU85 = 0x1180;
constexpr uint32_t kPmcr = 0x000;
constexpr uint32_t kPmCntEnSet = 0x004;
constexpr uint32_t kPmCntEnClr = 0x008;
constexpr uint32_t kPmOvsSet = 0x00c;
constexpr uint32_t kPmOvsClr = 0x010;
constexpr uint32_t kPmIntSet = 0x014;
constexpr uint32_t kPmIntClr = 0x018;
constexpr uint32_t kPmCcntrLo = 0x020;
constexpr uint32_t kPmCcntrHi = 0x024;  // 16 bits
constexpr uint32_t kPmCcntrCfg = 0x028;
constexpr uint32_t kPmcAxiChan = 0x02c;
constexpr uint32_t kPmEvCntr0 = 0x180;  // 4 (U85: 8) x 32 bits
constexpr uint32_t kPmEvTyper0 = 0x200;
/// First byte after the register page(s).
constexpr uint32_t kSizeU55U65 = 0x1000;
constexpr uint32_t kSizeU85 = 0x2000;
}  // namespace ethosu_reg

namespace ethosu_status {
constexpr uint32_t kRunning = 1u << 0;
constexpr uint32_t kIrqRaised = 1u << 1;
constexpr uint32_t kBusStatus = 1u << 2;
constexpr uint32_t kResetStatus = 1u << 3;
constexpr uint32_t kCmdParseError = 1u << 4;
constexpr uint32_t kCmdEndReached = 1u << 5;
constexpr uint32_t kPmuIrqRaised = 1u << 6;
constexpr uint32_t kWdFault = 1u << 7;  // U55, U65
constexpr uint32_t kEccFault = 1u << 8;
constexpr uint32_t kBranchFault = 1u << 9;  // U85
constexpr uint32_t kFaultingInterface = 1u << 11;
constexpr uint32_t kFaultingChannelShift = 12;
constexpr uint32_t kFaultingChannelMask = 0xfu << 12;
constexpr uint32_t kIrqHistoryShift = 16;
/// Set after RESET until the NPU is usable.
constexpr uint32_t kResetValue = kResetStatus;
}  // namespace ethosu_status

/// STATUS.faulting_channel.
enum class EthosUFaultChannel : uint32_t {
  Command = 0,
  Ifm = 1,
  Weights = 2,
  Scales = 3,
  DmaRead = 4,
  Ofm = 8,
  DmaWrite = 9,
};

namespace ethosu_cmd {
constexpr uint32_t kRun = 1u << 0;
constexpr uint32_t kClearIrq = 1u << 1;
constexpr uint32_t kClockQEnable = 1u << 2;
constexpr uint32_t kPowerQEnable = 1u << 3;
constexpr uint32_t kStopRequest = 1u << 4;
constexpr uint32_t kClearIrqHistoryShift = 16;
constexpr uint32_t kResetValue = kClockQEnable | kPowerQEnable;
}  // namespace ethosu_cmd

namespace ethosu_reset {
constexpr uint32_t kPrivileged = 1u << 0;  // pending_CPL; PROT.active_CPL is the same bit
constexpr uint32_t kNonSecure = 1u << 1;   // pending_CSL
}  // namespace ethosu_reset

namespace ethosu_config {
constexpr uint32_t log2Macs(uint32_t config) {
  return config & 0xfu;
}
constexpr uint32_t commandStreamVersion(uint32_t config) {
  return (config >> 4) & 0xfu;
}
constexpr uint32_t product(uint32_t config) {
  return config >> 28;
}
constexpr uint32_t shramKiB(uint32_t config) {
  return (config >> 8) & 0xffu;
}  // U55, U65
constexpr uint32_t log2SramPorts(uint32_t config) {
  return (config >> 8) & 0x3u;
}  // U85
constexpr uint32_t log2ExtPorts(uint32_t config) {
  return (config >> 10) & 0x1u;
}  // U85
constexpr uint32_t log2WeightDecoders(uint32_t config) {
  return (config >> 12) & 0x3u;
}  // U85
constexpr bool customDma(uint32_t config) {
  return ((config >> 27) & 1u) != 0;
}
}  // namespace ethosu_config

namespace ethosu_id {
constexpr uint32_t archMajor(uint32_t id) {
  return id >> 28;
}
constexpr uint32_t archMinor(uint32_t id) {
  return (id >> 20) & 0xffu;
}
constexpr uint32_t archPatch(uint32_t id) {
  return (id >> 16) & 0xfu;
}
/// Reset values of the public register descriptions.
constexpr uint32_t kU55 = 0x10104201;
constexpr uint32_t kU65 = 0x10066001;
constexpr uint32_t kU85 = 0x20007001;
}  // namespace ethosu_id

namespace ethosu_pmu {
constexpr uint32_t kEnable = 1u << 0;  // PMCR
constexpr uint32_t kResetEvents = 1u << 1;
constexpr uint32_t kResetCycles = 1u << 2;
constexpr uint32_t kMaskEnable = 1u << 3;
constexpr uint32_t kNumCountersShift = 11;
constexpr uint32_t kCycleCounterBit = 1u << 31;  // PMCNTENSET, PMOVSSET, PMINTSET and their clear registers
constexpr uint32_t kCountersU55U65 = 4;
constexpr uint32_t kCountersU85 = 8;
constexpr uint32_t kPmcrResetU55U65 = kCountersU55U65 << kNumCountersShift;
constexpr uint32_t kPmcrResetU85 = kCountersU85 << kNumCountersShift;
// Event ids (PMEVTYPER.EV_TYPE) that mean the same in all families; the others are in the generated isa
// tables.
constexpr uint32_t kCycle = 17;
constexpr uint32_t kNpuIdle = 32;
constexpr uint32_t kBlockDepStalled = 33;
constexpr uint32_t kNpuActive = 35;
constexpr uint32_t kMacActive = 48;
constexpr uint32_t kAoActive = 64;
constexpr uint32_t kWdActive = 80;
constexpr uint32_t kPort0ReadBeats = 130;  // AXI0 or SRAM
constexpr uint32_t kPort0WriteBeats = 135;
constexpr uint32_t kPort1ReadBeats = 386;   // AXI1 or EXT
constexpr uint32_t kPort1WriteBeats = 391;  // U85 (and U65)
}  // namespace ethosu_pmu

constexpr uint32_t ethosuPmuBase(EthosUProduct product) {
  return product == EthosUProduct::U85 ? ethosu_reg::kPmuBaseU85 : ethosu_reg::kPmuBaseU55U65;
}
constexpr uint32_t ethosuPmuCounters(EthosUProduct product) {
  return product == EthosUProduct::U85 ? ethosu_pmu::kCountersU85 : ethosu_pmu::kCountersU55U65;
}

/// Limits a driver checks.
constexpr uint32_t kEthosURegions = 8;
constexpr uint32_t kEthosUMaxStreamBytes = 16u << 20;
constexpr uint32_t kEthosUBaseAlignment = 16;

}  // namespace carina::format
