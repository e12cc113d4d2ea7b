// SPDX-License-Identifier: Apache-2.0
// The performance monitoring unit as a register block: event and cycle counters, enables, overflow flags and
// interrupt.
#pragma once

#include <array>
#include <cstdint>

#include "npu/targets/target.hpp"
#include "npu/timing/timing.hpp"

namespace carina::npu::model {

class Pmu {
 public:
  explicit Pmu(const Architecture& npu) : npu_(npu), counters_(npu.pmuCounters) { reset(); }

  void reset();
  /// `offset` from the start of the block (PMCR). Unknown offsets read 0.
  uint32_t read(uint32_t offset) const;
  void write(uint32_t offset, uint32_t value);

  /// Counts the events between two points of a run. `masked`: PMU_MASK has frozen the counters.
  void advance(const PmuCounts& before, const PmuCounts& after, bool masked);
  bool interrupt() const { return (overflow_ & interruptEnable_) != 0; }

 private:
  uint32_t enableMask() const { return ((1u << counters_) - 1) | 0x80000000u; }
  void count(uint32_t counter, uint64_t events);

  const Architecture& npu_;
  uint32_t counters_;
  uint32_t control_ = 0, enabled_ = 0, overflow_ = 0, interruptEnable_ = 0, cycleConfig_ = 0, channel_ = 0;
  uint64_t cycles_ = 0;
  std::array<uint32_t, 8> values_{}, types_{};
};

}  // namespace carina::npu::model
