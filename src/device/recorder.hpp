// SPDX-License-Identifier: Apache-2.0
// Records the execution of a method on the host: which kernels it calls, what they compute, and how long
// everything takes.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "carina/method.hpp"
#include "device/budgeted_kernels.hpp"
#include "device/ethosn_backend.hpp"
#include "device/recording_backend.hpp"
#include "pte/etdump.hpp"
#include "pte/program.hpp"

namespace carina::device {

class Recorder final : public rt::Profiler {
 public:
  ~Recorder() = default;
  void event(rt::EventKind kind, uint32_t instruction, rt::Text name) override;

  /// Keeps the results of every kernel call; for methods with one chain only.
  void keepResults(const pte::Method& listed);
  /// Keeps start and end times: kernels in host time, NPU jobs in cycles of the model at `clockHz`.
  void keepEvents(const pte::Method& listed, double clockHz);
  /// Clears the records before the next run.
  void clear();

  /// Sources of the records; all must outlive the recorder. `backend` may be null.
  rt::Method* method = nullptr;
  RecordingBackend* backend = nullptr;
  EthosNBackend* ethosN = nullptr;  // may be null
  BudgetedKernels* budgeted = nullptr;

  std::vector<std::string> kernels;
  std::vector<KernelResult> results;  // see KernelValues
  std::vector<pte::ProfileEvent> events;

 private:
  void keep(uint32_t instruction);
  void time(rt::EventKind kind, uint32_t instruction, rt::Text name);
  void endDelegate(uint32_t instruction);
  uint64_t now() const;

  std::vector<std::vector<int32_t>> returned_;  // by instruction; empty: nothing is kept
  KernelValues values_;
  bool timing_ = false;
  double clockHz_ = 0;
  std::vector<std::string> calls_;  // by instruction: the kernel as ExecuTorch's profiles name it
  std::chrono::steady_clock::time_point began_;
  int64_t shift_ = 0;  // nanoseconds between host time and the time of the events
  uint64_t started_ = 0;
};

}  // namespace carina::device
