// SPDX-License-Identifier: Apache-2.0
// A program made ready, run and reported on: what every way of feeding it shares.
#pragma once

#include "firmware/app.hpp"

namespace carina::firmware {

class Session final : public rt::Profiler {
 public:
  /// Of the method `index` among the app's.
  Session(const App& app, size_t index) : app_(app), index_(index) {}
  ~Session() = default;

  /// Loads the program and opens the NPU. False after printing why not.
  bool open(rt::Bytes program);
  /// Loads the method of the linked program and shares the NPU; says nothing of them again. Loading writes
  /// the initial contents of the state: open all sessions before the first inference.
  bool openBeside(const Session& first);
  /// Loads the method again: its state is what it was at the start.
  bool restart();
  /// One inference with the inputs as they are. False after printing why not.
  bool infer();
  /// The same, and what infer() prints where it fails.
  rt::Status execute();
  void explain(const rt::Status& status) const;
  /// Cycles per operator and in total, NPU counters, memory.
  void report() const;

  rt::Method& method() { return method_; }
  uint32_t inferences() const { return inferences_; }
  uint64_t cycles() const { return cycles_; }  // of the CPU, in all inferences
  /// Of the NPU, in the inferences of all sessions that share it.
  uint64_t npuCycles() const;

  /// Where an input lies, to be filled in place. False after printing why not.
  bool inputMemory(uint32_t index, rt::MutableBytes* bytes);
  /// Sets every element of every input to 1, as runners without input do. False after printing why not.
  bool fillWithOnes();
  /// Prints up to App::printed elements of each output.
  void printOutputs() const;

  /// Memory of the program and stack.
  void reportMemory() const;

  void event(rt::EventKind kind, uint32_t instruction, rt::Text name) override;

 private:
  bool bindUnplanned();
  void reportNpu() const;

  const App& app_;
  size_t index_;
  const MethodSetup* setup_ = nullptr;  // once it is open
  rt::Program program_;
  rt::Method method_;
  Npu* npu_ = nullptr;
  rt::Backend* backends_[1] = {};
  uint32_t inferences_ = 0;
  uint64_t cycles_ = 0;
  uint32_t began_ = 0, operatorBegan_ = 0;
};

}  // namespace carina::firmware
