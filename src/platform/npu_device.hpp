// SPDX-License-Identifier: Apache-2.0
// The NPU model as a peripheral with an interrupt. Work is computed when it is started; to the firmware, it
// ends when the model's cycles have passed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "npu/model/model.hpp"
#include "platform/clock.hpp"
#include "platform/device.hpp"
#include "platform/interrupts.hpp"

namespace carina::platform {

/// One executed command stream.
struct NpuJob {
  uint64_t start = 0;  // platform cycles
  npu::RunStats stats;
  std::string fault;  // empty: none
  std::vector<npu::Finding> findings;
};

/// Position of the command processor: QREAD before each operation, and at the end of a stream.
struct NpuPosition {
  uint64_t cycle = 0;
  uint32_t qread = 0;
};

class NpuDevice final : public Peripheral, public Timed {
 public:
  NpuDevice(const npu::Machine& machine, npu::Memory& memory, const npu::ModelOptions& options,
            const Clock& clock, Interrupts& interrupts, uint32_t interrupt)
      : npu_(machine, memory, options), clock_(clock), interrupts_(interrupts), interrupt_(interrupt) {}

  uint32_t read(uint32_t offset) override;
  void write(uint32_t offset, uint32_t value) override;
  uint64_t nextEvent() const override { return busy_ ? end_ : kNever; }
  void advance(uint64_t now) override;

  const std::vector<NpuJob>& jobs() const { return jobs_; }
  /// Records the progress of jobs, for countsAt() and positions().
  void keepHistory() { keepsHistory_ = true; }
  /// The counts up to `time`, which is not before the latest job; requires keepHistory().
  npu::PmuCounts countsAt(uint64_t time) const;
  const std::vector<NpuPosition>& positions() const { return positions_; }
  /// Whether its transactions are Secure (PROT.active_CSL, set by the latest reset).
  bool secure();
  /// Called after every operation.
  void setAfterStep(std::function<void()> afterStep) { afterStep_ = std::move(afterStep); }
  /// Called before a job starts; may change what the time line assumes.
  void setBeforeStart(std::function<void(npu::Npu&)> beforeStart) { beforeStart_ = std::move(beforeStart); }

 private:
  /// Computes up to the next interrupt or the end; until then, registers show the progress.
  void runSegment(uint64_t from);
  void note(uint32_t qread, npu::Cycles elapsed, const npu::PmuCounts& counts);
  /// Adds the job that ends or is aborted at `time` to the total counts.
  void closeHistory(uint64_t time);
  uint32_t readBusy(uint32_t offset);
  /// Adds time between jobs to the PMU counts, as the model counts only during its runs.
  void passIdle(uint64_t now);
  bool inPmu(uint32_t offset) const;
  uint32_t pmuBase() const;
  uint32_t eventCounters() const;

  npu::Npu npu_;
  const Clock& clock_;
  Interrupts& interrupts_;
  uint32_t interrupt_;
  bool busy_ = false;
  uint64_t jobStart_ = 0, begin_ = 0, end_ = 0;  // start of the job; bounds of the segment
  uint64_t idleSince_ = 0;
  uint32_t status_ = 0, position_ = 0;  // STATUS and QREAD when the segment began
  struct Shown {
    uint32_t offset, value;
  };
  std::vector<Shown> counters_;  // of the PMU when the segment began
  std::vector<NpuJob> jobs_;
  struct Moment {
    uint64_t cycle;
    npu::PmuCounts counts;
  };
  static constexpr size_t kMaxPositions = size_t{1} << 22;
  bool keepsHistory_ = false;
  npu::PmuCounts counted_;      // by all jobs before the latest one
  std::vector<Moment> course_;  // of the latest job
  std::vector<NpuPosition> positions_;
  std::function<void(npu::Npu&)> beforeStart_;
  std::function<void()> afterStep_;
};

}  // namespace carina::platform
