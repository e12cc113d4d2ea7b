// SPDX-License-Identifier: Apache-2.0
// Counters of core and NPU over time.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "platform/clock.hpp"
#include "platform/npu_device.hpp"

namespace carina::cpu_m {
class Core;
}

namespace carina::platform {

/// Counts since the start of the run.
struct PmuSample {
  uint64_t cycle = 0;         // when
  uint64_t instructions = 0;  // of the core
  uint64_t coreCycles = 0;    // excluding waits (WFI, WFE)
  npu::PmuCounts npu;
};

struct PmuRecord {
  std::vector<PmuSample> samples;
  std::vector<NpuPosition> positions;  // of the NPU's command processor
};

class PmuTrace {
 public:
  static constexpr uint64_t kUsualInterval = 10'000, kMinInterval = 100;
  static constexpr size_t kMaxSamples = size_t{1} << 22;

  PmuTrace(uint64_t interval, const Clock& clock, const cpu_m::Core& core, const NpuDevice& npu)
      : interval_(interval), next_(interval), clock_(clock), core_(core), npu_(npu) {
    samples_.emplace_back();
  }
  /// When the next sample is due.
  uint64_t next() const { return next_; }
  /// Takes the samples that are due at `now`; to be called before the NPU and the core advance.
  void advance(uint64_t now);
  /// Everything, with a sample at the end of the run.
  PmuRecord finish();

 private:
  void sample(uint64_t cycle);

  uint64_t interval_, next_;
  const Clock& clock_;
  const cpu_m::Core& core_;
  const NpuDevice& npu_;
  std::vector<PmuSample> samples_;
};

/// A line of names, then a line for each interval with its end and its counts.
std::string pmuCsv(const PmuRecord& record);
/// Trace events (chrome://tracing, ui.perfetto.dev): the counts of each interval as counters, and the
/// positions of the NPU's command processor, in words, as events "qread". Times are in cycles since the first
/// NPU job, or since the start if there is none.
std::string pmuJson(const PmuRecord& record);

/// The contents of the file of that name: JSON if it ends in .json, else CSV; compressed if .gz follows.
std::string pmuFile(const PmuRecord& record, const std::filesystem::path& name);

}  // namespace carina::platform
