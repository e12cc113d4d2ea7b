// SPDX-License-Identifier: Apache-2.0
#include "npu_device.hpp"

#include "cortex_m.hpp"
#include "format/ethosu_registers.hpp"

namespace carina::firmware {

namespace reg = format::ethosu_reg;
namespace cmd = format::ethosu_cmd;

namespace {

constexpr uint32_t kLowestPriorityBit = 5;  // these Armv8-M parts implement the upper three bits
constexpr uintptr_t kNvicPriority = 0xe000e400;
constexpr size_t kCacheLine = 32;

uintptr_t npuBase = 0;
volatile bool finished = false;   // set by the interrupt
volatile uint32_t ticksLeft = 0;  // counted down by SysTick

uint64_t cyclesOf(const Platform& platform, uint32_t milliseconds) {
  return uint64_t{milliseconds} * (platform.coreHz / 1000);
}

/// Cache maintenance by address; does nothing while the data cache is off.
void maintain(uintptr_t operation, const void* data, size_t bytes) {
  if ((mmio(scs::kConfiguration) & scs::kDataCacheEnabled) == 0) return;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(data) & ~(kCacheLine - 1);
  const uintptr_t end = reinterpret_cast<uintptr_t>(data) + bytes;
  barrier();
  for (uintptr_t line = begin; line < end; line += kCacheLine) mmio(operation) = static_cast<uint32_t>(line);
  barrier();
}

}  // namespace

extern "C" {
/// The line stays high until the interrupt is cleared; bits that keep the NPU powered are preserved.
void npuInterruptHandler() {
  mmio(npuBase + reg::kCmd) = (mmio(npuBase + reg::kCmd) & cmd::kResetValue) | cmd::kClearIrq;
  finished = true;
}
void tickHandler() {
  if (ticksLeft != 0) ticksLeft = ticksLeft - 1;
}
}

NpuDevice::NpuDevice(const Platform& platform, bool poll) : platform_(platform), poll_(poll) {
  npuBase = platform.npu;
  if (poll) return;
  const uint32_t interrupt = platform.npuInterrupt;
  *reinterpret_cast<volatile uint8_t*>(kNvicPriority + interrupt) = 5u << kLowestPriorityBit;
  mmio(scs::kNvicClearPending + interrupt / 32 * 4) = 1u << interrupt % 32;
  mmio(scs::kNvicEnable + interrupt / 32 * 4) = 1u << interrupt % 32;
}

uint32_t NpuDevice::read32(uint32_t offset) {
  return mmio(platform_.npu + offset);
}

void NpuDevice::write32(uint32_t offset, uint32_t value) {
  if (offset == reg::kCmd) {
    if ((value & cmd::kRun) != 0) finished = false;
    barrier();  // data for the NPU has reached memory
  }
  mmio(platform_.npu + offset) = value;
}

bool NpuDevice::map(const void* host, size_t bytes, rt::Access, uint64_t* busAddress) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(host);
  *busAddress = address;
  return npuReaches(address) && npuReaches(address + bytes - 1);
}

rt::Wait NpuDevice::wait(uint32_t milliseconds) {
  const uint32_t begin = cycleCount();
  const uint64_t limit = milliseconds == kForever ? UINT64_MAX : cyclesOf(platform_, milliseconds);
  const bool done = poll_ ? poll(limit) : sleep(limit);
  waited_ += cycleCount() - begin;
  return done ? rt::Wait::Interrupt : rt::Wait::Timeout;
}

/// Sleeps until the interrupt or for about `cycles`; UINT64_MAX: without limit. Interrupts are masked between
/// the test and the sleep, so that none is missed; a pending one still ends the sleep.
bool NpuDevice::sleep(uint64_t cycles) {
  const bool limited = cycles != UINT64_MAX;
  if (limited) {
    // SysTick periods are as long as possible, because each wakes the core.
    const uint32_t ticks = static_cast<uint32_t>(cycles / scs::kSysTickPeriod) + 1;
    ticksLeft = ticks;
    mmio(scs::kSysTickReload) = static_cast<uint32_t>(cycles / ticks);
    mmio(scs::kSysTickValue) = 0;
    mmio(scs::kSysTickControl) = scs::kSysTickRun;
  }
  bool done = false;
  for (;;) {
    disableInterrupts();
    done = finished;
    const bool over = done || (limited && ticksLeft == 0);
    if (!over) waitForInterrupt();
    enableInterrupts();  // handlers run here
    if (over) break;
  }
  mmio(scs::kSysTickControl) = 0;
  finished = false;
  return done;
}

bool NpuDevice::poll(uint64_t cycles) {
  uint64_t spent = 0;
  uint32_t last = cycleCount();
  while ((read32(reg::kStatus) & format::ethosu_status::kIrqRaised) == 0) {
    const uint32_t now = cycleCount();
    spent += now - last;
    last = now;
    if (spent >= cycles) return false;
  }
  return true;
}

void NpuDevice::clean(const void* data, size_t bytes) {
  maintain(scs::kDataClean, data, bytes);
}
void NpuDevice::invalidate(void* data, size_t bytes) {
  maintain(scs::kDataInvalidate, data, bytes);
}

}  // namespace carina::firmware
