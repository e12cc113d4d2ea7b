// SPDX-License-Identifier: Apache-2.0
#include "platform/npu_device.hpp"

#include <algorithm>

#include "format/ethosu_registers.hpp"

namespace carina::platform {

namespace reg = format::ethosu_reg;
namespace command = format::ethosu_cmd;
namespace status = format::ethosu_status;

namespace pmu = format::ethosu_pmu;

namespace {
constexpr uint32_t kEventId = 0x3ff;  // of PMEVTYPER, and the start event of PMCCNTR_CFG
}

namespace {

/// Calls change(a's count, b's count) for every count.
template <typename Change>
void forEachCount(npu::PmuCounts& a, const npu::PmuCounts& b, Change change) {
  for (npu::Cycles npu::PmuCounts::*const count :
       {&npu::PmuCounts::cycles, &npu::PmuCounts::active, &npu::PmuCounts::idle, &npu::PmuCounts::macActive,
        &npu::PmuCounts::outputActive, &npu::PmuCounts::weightActive, &npu::PmuCounts::blockdepStall,
        &npu::PmuCounts::macActive16})
    change(a.*count, b.*count);
  for (std::array<int64_t, 2> npu::PmuCounts::*const counts :
       {&npu::PmuCounts::readBeats, &npu::PmuCounts::writeBeats, &npu::PmuCounts::readBursts,
        &npu::PmuCounts::writeBursts}) {
    for (size_t port = 0; port < 2; ++port) change((a.*counts)[port], (b.*counts)[port]);
  }
}

}  // namespace

void NpuDevice::note(uint32_t qread, npu::Cycles elapsed, const npu::PmuCounts& counts) {
  const uint64_t cycle = jobStart_ + static_cast<uint64_t>(elapsed);
  if (positions_.size() < kMaxPositions) positions_.push_back({cycle, qread});
  if (course_.empty() || course_.back().cycle < cycle)
    course_.push_back({cycle, counts});
  else
    course_.back().counts = counts;
}

npu::PmuCounts NpuDevice::countsAt(uint64_t time) const {
  npu::PmuCounts counts = counted_;
  const auto after =
      std::upper_bound(course_.begin(), course_.end(), time,
                       [](uint64_t cycle, const Moment& moment) { return cycle < moment.cycle; });
  if (after == course_.begin()) return counts;
  const auto add = [](int64_t& sum, int64_t count) { sum += count; };
  forEachCount(counts, std::prev(after)->counts, add);
  if (after == course_.end()) return counts;
  // Between two moments, counts grow linearly.
  const Moment& before = *std::prev(after);
  const double part =
      static_cast<double>(time - before.cycle) / static_cast<double>(after->cycle - before.cycle);
  npu::PmuCounts rest = after->counts;
  forEachCount(rest, before.counts, [&](int64_t& to, int64_t from) {
    to = static_cast<int64_t>(static_cast<double>(to - from) * part);
  });
  forEachCount(counts, rest, add);
  return counts;
}

void NpuDevice::closeHistory(uint64_t time) {
  counted_ = countsAt(time);
  course_.clear();
}

uint32_t NpuDevice::pmuBase() const {
  return npu_.machine().target->isU85() ? reg::kPmuBaseU85 : reg::kPmuBaseU55U65;
}

uint32_t NpuDevice::eventCounters() const {
  return npu_.machine().target->isU85() ? pmu::kCountersU85 : pmu::kCountersU55U65;
}

void NpuDevice::passIdle(uint64_t now) {
  if (busy_ || now <= idleSince_) return;
  const uint64_t cycles = now - idleSince_;
  idleSince_ = now;
  const uint32_t base = pmuBase();
  if ((npu_.read32(base + reg::kPmcr) & pmu::kEnable) == 0) return;
  const uint32_t enabled = npu_.read32(base + reg::kPmCntEnSet);
  uint32_t overflowed = 0;
  for (uint32_t i = 0; i < eventCounters(); ++i) {
    const uint32_t event = npu_.read32(base + reg::kPmEvTyper0 + 4 * i) & kEventId;
    if ((enabled >> i & 1) == 0 || (event != pmu::kCycle && event != pmu::kNpuIdle)) continue;
    const uint32_t counter = base + reg::kPmEvCntr0 + 4 * i;
    const uint64_t sum = npu_.read32(counter) + cycles;
    npu_.write32(counter, static_cast<uint32_t>(sum));
    if (sum >> 32 != 0) overflowed |= 1u << i;
  }
  // With a start event, NPU_ACTIVE, the cycle counter waits for the next job.
  if ((enabled & pmu::kCycleCounterBit) != 0 && (npu_.read32(base + reg::kPmCcntrCfg) & kEventId) == 0) {
    const uint64_t sum =
        (uint64_t{npu_.read32(base + reg::kPmCcntrHi)} << 32 | npu_.read32(base + reg::kPmCcntrLo)) + cycles;
    npu_.write32(base + reg::kPmCcntrLo, static_cast<uint32_t>(sum));
    npu_.write32(base + reg::kPmCcntrHi, static_cast<uint32_t>(sum >> 32) & 0xffff);
    if (sum >> 48 != 0) overflowed |= pmu::kCycleCounterBit;
  }
  if (overflowed != 0) npu_.write32(base + reg::kPmOvsSet, overflowed);
}

bool NpuDevice::inPmu(uint32_t offset) const {
  const uint32_t base = pmuBase();
  return (offset >= base + reg::kPmCcntrLo && offset <= base + reg::kPmCcntrHi) ||
         (offset >= base + reg::kPmEvCntr0 && offset < base + reg::kPmEvTyper0);
}

void NpuDevice::runSegment(uint64_t from) {
  begin_ = from;
  status_ = npu_.read32(reg::kStatus);
  position_ = npu_.read32(reg::kQRead);
  counters_.clear();
  const uint32_t base = pmuBase();
  for (const uint32_t offset : {reg::kPmCcntrLo, reg::kPmCcntrHi})
    counters_.push_back({base + offset, npu_.read32(base + offset)});
  for (uint32_t i = 0; i < eventCounters(); ++i)
    counters_.push_back({base + reg::kPmEvCntr0 + 4 * i, npu_.read32(base + reg::kPmEvCntr0 + 4 * i)});
  const bool raised = npu_.interrupt();
  bool goesOn = true;
  while (goesOn) {
    const npu::Cycles before = keepsHistory_ ? npu_.elapsed() : 0;
    const uint32_t position = keepsHistory_ ? npu_.read32(reg::kQRead) : 0;
    const npu::PmuCounts counts = keepsHistory_ ? npu_.counts() : npu::PmuCounts{};
    goesOn = npu_.step() && (raised || !npu_.interrupt());
    if (afterStep_) afterStep_();
    if (keepsHistory_ && npu_.running() && npu_.elapsed() != before) note(position, before, counts);
  }
  const npu::Cycles elapsed = npu_.running() ? npu_.elapsed() : npu_.stats().cycles;
  if (keepsHistory_)
    note(npu_.read32(reg::kQRead), elapsed, npu_.running() ? npu_.counts() : npu_.stats().pmu);
  end_ = std::max(jobStart_ + static_cast<uint64_t>(elapsed), begin_ + 1);
  busy_ = true;
}

void NpuDevice::advance(uint64_t now) {
  while (busy_ && end_ <= now) {
    busy_ = false;
    idleSince_ = end_;
    if (!npu_.running()) {
      if (keepsHistory_) closeHistory(end_);
      NpuJob job{jobStart_, npu_.stats(), npu_.fault() ? npu_.fault()->str() : "", npu_.findings()};
      job.stats.operations.clear();
      jobs_.push_back(std::move(job));
    } else {
      runSegment(end_);
    }
  }
  interrupts_.setLine(interrupt_, npu_.interrupt() && (!busy_ || (status_ & status::kIrqRaised) != 0));
}

uint32_t NpuDevice::readBusy(uint32_t offset) {
  const uint32_t now = npu_.read32(offset);
  const auto part = [&](uint32_t before) {
    const uint64_t passed = std::min(clock_.now(), end_) - begin_;
    return before + static_cast<uint32_t>(static_cast<double>(now - before) * static_cast<double>(passed) /
                                          static_cast<double>(end_ - begin_));
  };
  if (offset == reg::kStatus) return (status_ & ~status::kCmdEndReached) | status::kRunning;
  if (offset == reg::kQRead || offset == reg::kCurrentQRead)
    return now < position_ ? now : part(position_) & ~3u;
  if (inPmu(offset)) {
    for (const Shown& counter : counters_) {
      if (counter.offset == offset) return part(counter.value);
    }
  }
  return now;
}

bool NpuDevice::secure() {
  return (npu_.read32(reg::kProt) & format::ethosu_reset::kNonSecure) == 0;
}

uint32_t NpuDevice::read(uint32_t offset) {
  advance(clock_.now());
  passIdle(clock_.now());
  return busy_ ? readBusy(offset) : npu_.read32(offset);
}

void NpuDevice::write(uint32_t offset, uint32_t value) {
  const uint64_t now = clock_.now();
  advance(now);
  passIdle(now);
  if (offset == reg::kReset && busy_) {  // aborts
    busy_ = false;
    idleSince_ = now;
    if (keepsHistory_) closeHistory(now);
  }
  if (busy_ && offset == reg::kCmd) {
    // The interrupt that will be raised has not been raised yet, and a running job cannot be started again.
    if ((value & command::kClearIrq) != 0) status_ &= ~status::kIrqRaised;
    value &= ~(command::kClearIrq | command::kRun);
  }
  const bool running = npu_.running();
  const bool wasRaised = npu_.interrupt();
  const bool started = offset == reg::kCmd && (value & command::kRun) != 0;
  if (started && !running && beforeStart_) beforeStart_(npu_);
  npu_.write32(offset, value);
  if (started && !running) {
    const bool refused = !npu_.running() && (wasRaised || !npu_.interrupt());
    if (!refused) {
      jobStart_ = now;
      runSegment(now);
    }
  }
  advance(now);
}

}  // namespace carina::platform
