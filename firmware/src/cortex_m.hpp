// SPDX-License-Identifier: Apache-2.0
// The registers and instructions of an Armv8-M core that the runner uses. Addresses and bits are those of the
// architecture.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace carina::firmware {

inline volatile uint32_t& mmio(uintptr_t address) {
  return *reinterpret_cast<volatile uint32_t*>(address);
}

namespace scs {
constexpr uintptr_t kSysTickControl = 0xe000e010, kSysTickReload = 0xe000e014, kSysTickValue = 0xe000e018;
constexpr uintptr_t kNvicEnable = 0xe000e100, kNvicDisable = 0xe000e180, kNvicClearPending = 0xe000e280;
constexpr uintptr_t kVectorTable = 0xe000ed08;
constexpr uintptr_t kConfiguration = 0xe000ed14;
constexpr uintptr_t kFaultStatus = 0xe000ed28, kFaultAddress = 0xe000ed38;
constexpr uintptr_t kCoprocessors = 0xe000ed88;
constexpr uintptr_t kDebugControl = 0xe000edfc;
constexpr uintptr_t kDataInvalidate = 0xe000ef5c, kDataClean = 0xe000ef68;
constexpr uintptr_t kDwtControl = 0xe0001000, kDwtCycles = 0xe0001004;

constexpr uint32_t kDataCacheEnabled = 1u << 16;  // in kConfiguration
constexpr uint32_t kTraceEnable = 1u << 24;       // in kDebugControl
constexpr uint32_t kFloatingPointAccess = 0xfu << 20;
constexpr uint32_t kSysTickRun = 7;  // core clock, interrupt, enable
constexpr uint32_t kSysTickPeriod = 1u << 24;
}  // namespace scs

inline void barrier() {
  __asm volatile("dsb\n\tisb" ::: "memory");
}
inline void disableInterrupts() {
  __asm volatile("cpsid i" ::: "memory");
}
inline void enableInterrupts() {
  __asm volatile("cpsie i\n\tisb" ::: "memory");
}
inline void waitForInterrupt() {
  __asm volatile("dsb\n\twfi" ::: "memory");
}

/// CPU cycles modulo 2^32; requires startCycleCounter().
inline uint32_t cycleCount() {
  return mmio(scs::kDwtCycles);
}
inline void startCycleCounter() {
  mmio(scs::kDebugControl) = mmio(scs::kDebugControl) | scs::kTraceEnable;
  mmio(scs::kDwtCycles) = 0;
  mmio(scs::kDwtControl) = mmio(scs::kDwtControl) | 1u;
}

}  // namespace carina::firmware
