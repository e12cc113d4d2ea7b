// SPDX-License-Identifier: Apache-2.0
// The PMU (pmu.hpp). Register meanings: ethosu-command-stream 13.
#include "npu/model/pmu.hpp"

#include "format/ethosu_registers.hpp"

namespace carina::npu::model {
namespace {
namespace reg = format::ethosu_reg;
namespace bits = format::ethosu_pmu;
constexpr uint64_t kCycleMask = (uint64_t{1} << 48) - 1;
constexpr uint32_t kEventIdMask = 0x3ff;
}  // namespace

void Pmu::reset() {
  control_ = enabled_ = overflow_ = interruptEnable_ = cycleConfig_ = channel_ = 0;
  cycles_ = 0;
  values_ = {};
  types_ = {};
}

uint32_t Pmu::read(uint32_t offset) const {
  if (offset >= reg::kPmEvCntr0 && offset < reg::kPmEvCntr0 + 4 * counters_)
    return values_[(offset - reg::kPmEvCntr0) / 4];
  if (offset >= reg::kPmEvTyper0 && offset < reg::kPmEvTyper0 + 4 * counters_)
    return types_[(offset - reg::kPmEvTyper0) / 4];
  switch (offset) {
    case reg::kPmcr:
      return control_ | counters_ << bits::kNumCountersShift;
    case reg::kPmCntEnSet:
    case reg::kPmCntEnClr:
      return enabled_;
    case reg::kPmOvsSet:
    case reg::kPmOvsClr:
      return overflow_;
    case reg::kPmIntSet:
    case reg::kPmIntClr:
      return interruptEnable_;
    case reg::kPmCcntrLo:
      return static_cast<uint32_t>(cycles_);
    case reg::kPmCcntrHi:
      return static_cast<uint32_t>(cycles_ >> 32);
    case reg::kPmCcntrCfg:
      return cycleConfig_;
    case reg::kPmcAxiChan:
      return channel_;
    default:
      return 0;
  }
}

void Pmu::write(uint32_t offset, uint32_t value) {
  if (offset >= reg::kPmEvCntr0 && offset < reg::kPmEvCntr0 + 4 * counters_) {
    values_[(offset - reg::kPmEvCntr0) / 4] = value;
    return;
  }
  if (offset >= reg::kPmEvTyper0 && offset < reg::kPmEvTyper0 + 4 * counters_) {
    types_[(offset - reg::kPmEvTyper0) / 4] = value & npu_.pmuEventMask;
    return;
  }
  const uint32_t mask = enableMask();
  switch (offset) {
    case reg::kPmcr:
      control_ = value & (bits::kEnable | bits::kMaskEnable);
      if ((value & bits::kResetEvents) != 0) values_ = {};
      if ((value & bits::kResetCycles) != 0) cycles_ = 0;
      break;
    case reg::kPmCntEnSet:
      enabled_ |= value & mask;
      break;
    case reg::kPmCntEnClr:
      enabled_ &= ~value;
      break;
    case reg::kPmOvsSet:
      overflow_ |= value & mask;
      break;
    case reg::kPmOvsClr:
      overflow_ &= ~value;
      break;
    case reg::kPmIntSet:
      interruptEnable_ |= value & mask;
      break;
    case reg::kPmIntClr:
      interruptEnable_ &= ~value;
      break;
    case reg::kPmCcntrLo:
      cycles_ = (cycles_ & ~uint64_t{0xffffffff}) | value;
      break;
    case reg::kPmCcntrHi:
      cycles_ = (cycles_ & 0xffffffff) | (uint64_t{value & 0xffff} << 32);
      break;
    case reg::kPmCcntrCfg:
      cycleConfig_ = value;
      break;
    case reg::kPmcAxiChan:
      channel_ = value;
      break;
    default:
      break;
  }
}

void Pmu::count(uint32_t counter, uint64_t events) {
  const uint64_t sum = uint64_t{values_[counter]} + events;
  values_[counter] = static_cast<uint32_t>(sum);
  if (sum > 0xffffffffu) overflow_ |= 1u << counter;
}

void Pmu::advance(const PmuCounts& before, const PmuCounts& after, bool masked) {
  if ((control_ & bits::kEnable) == 0) return;
  if (masked && (control_ & bits::kMaskEnable) != 0) return;
  for (uint32_t i = 0; i < counters_; ++i) {
    if ((enabled_ & 1u << i) == 0) continue;
    const uint32_t id = types_[i] & kEventIdMask;
    const uint64_t was = before.event(npu_, id), is = after.event(npu_, id);
    if (is > was) count(i, is - was);
  }
  // Start and stop events (NPU_ACTIVE, NPU_IDLE) delimit exactly what is counted here: the cycles of a run.
  if ((enabled_ & bits::kCycleCounterBit) != 0) {
    const uint64_t sum = cycles_ + static_cast<uint64_t>(after.cycles - before.cycles);
    cycles_ = sum & kCycleMask;
    if (sum > kCycleMask) overflow_ |= bits::kCycleCounterBit;
  }
}

}  // namespace carina::npu::model
