// SPDX-License-Identifier: Apache-2.0
#include "npu.hpp"

#include <new>

#include "console.hpp"
#include "cortex_m.hpp"
#include "firmware/app.hpp"
#include "format/ethosu_registers.hpp"

namespace carina::firmware {

namespace event = format::ethosu_pmu;

namespace {

// Registers of a timing adapter.
constexpr uintptr_t kMode = 0x28, kVersion = 0x38;
constexpr uint32_t kKnownVersion = 0x1117;
constexpr uint32_t kDynamicClock = 1;

void programTimingAdapter(uintptr_t base, uint32_t index, const TimingAdapter& timing) {
  if (mmio(base + kVersion) != kKnownVersion) {
    info("timing adapter ", index, " is not there");
    return;
  }
  const uint32_t values[] = {timing.maxReads,     timing.maxWrites, timing.maxBoth,  timing.readLatency,
                             timing.writeLatency, timing.pulseOn,   timing.pulseOff, timing.bandwidth};
  for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); ++i) mmio(base + 4 * i) = values[i];
  mmio(base + kMode) = kDynamicClock;
}

alignas(Npu) uint8_t storage[sizeof(Npu)];

}  // namespace

CountedEvents countedEvents(rt::NpuProduct product) {
  if (product == rt::NpuProduct::U85) {
    return {{{event::kPort0ReadBeats, event::kPort0WriteBeats, event::kPort1ReadBeats,
              event::kPort1WriteBeats, event::kNpuIdle, event::kMacActive, event::kWdActive},
             7},
            "SRAM_RD_DATA_BEAT_RECEIVED, SRAM_WR_DATA_BEAT_WRITTEN, EXT_RD_DATA_BEAT_RECEIVED, "
            "EXT_WR_DATA_BEAT_WRITTEN, NPU_IDLE, MAC_ACTIVE, WD_ACTIVE"};
  }
  return {{{event::kPort0ReadBeats, event::kPort1ReadBeats, event::kPort0WriteBeats, event::kNpuIdle}, 4},
          "AXI0_RD_DATA_BEAT_RECEIVED, AXI1_RD_DATA_BEAT_RECEIVED, AXI0_WR_DATA_BEAT_WRITTEN, NPU_IDLE"};
}

rt::Status openNpu(const App& app, Npu** npu) {
  const NpuSetup& setup = *app.npu;
  for (uint32_t i = 0; i < 2; ++i) programTimingAdapter(app.platform.timingAdapters[i], i, setup.timing[i]);
  *npu = new (storage) Npu(app.platform, setup.driver, setup.fastScratch, setup.poll);
  CARINA_RT_TRY((*npu)->driver.open());
  (*npu)->driver.usePmu(countedEvents((*npu)->driver.info().product).setup);
  return rt::Status{};
}

}  // namespace carina::firmware
