// SPDX-License-Identifier: Apache-2.0
// Executes a command stream step by step: register state, operations, branches, interrupts, faults; keeps
// statistics, the time line and the checker up to date.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "npu/isa/stream.hpp"
#include "npu/model/checker.hpp"
#include "npu/model/executor.hpp"

namespace carina::npu::model {

class CommandProcessor {
 public:
  CommandProcessor(const Machine& machine, const ModelOptions& options);

  /// Forgets everything except decoded weights.
  void reset();
  /// Starts at the first word. Register state is kept from the previous run, as in hardware.
  void start(std::vector<uint32_t> words);

  enum class Step : uint8_t { Continue, Interrupt, Stopped, Faulted };
  /// Ends the run before the next command.
  void halt() { running_ = false; }

  /// Executes one command. Interrupt: an IRQ command; Stopped: STOP or the end of the stream.
  Step step(AddressMap& memory);

  bool running() const { return running_; }
  uint32_t position() const { return static_cast<uint32_t>(index_ * 4); }
  /// Mask of the latest IRQ or STOP command.
  uint16_t interruptMask() const { return interruptMask_; }

  /// Totals so far.
  RunStats statistics() const;
  Cycles cyclesSoFar() const { return timeline_ ? timeline_->total() : 0; }
  PmuCounts pmuSoFar() const { return timeline_ ? timeline_->pmu() : PmuCounts{}; }
  bool countingMasked() const { return masked_; }
  const std::optional<Fault>& fault() const { return fault_; }
  Checker* checker() { return checker_.get(); }
  Executor& executor() { return executor_; }
  void setMachine(const Machine& machine) { machine_ = machine; }
  void setLimits(int64_t runWork, int64_t operationBytes) {
    options_.maxRunWork = runWork;
    executor_.setMaxOperationBytes(operationBytes);
  }
  void setInitialized(std::vector<InitializedRange> ranges) { options_.initialized = std::move(ranges); }
  const Machine& machine() const { return machine_; }

 private:
  Step fail(FaultKind kind, std::string reason, uint32_t offset, uint8_t channel = 0);
  /// Counts the work of `operation`; returns a reason if it exceeds what the run may take.
  std::optional<std::string> spend(const Operation& operation);
  void record(const ScheduledCost& timing);

  Machine machine_;
  ModelOptions options_;
  Executor executor_;
  RegisterState state_;
  std::vector<uint32_t> words_;
  size_t index_ = 0;
  bool running_ = false, masked_ = false;
  uint16_t interruptMask_ = 0;
  int64_t work_ = 0;  // of this run
  std::optional<Fault> fault_;
  std::optional<Timeline> timeline_;
  std::unique_ptr<Checker> checker_;
  RunStats stats_;
};

}  // namespace carina::npu::model
