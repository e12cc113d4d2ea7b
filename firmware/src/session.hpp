// SPDX-License-Identifier: Apache-2.0
// Loads a program, runs it and reports on it; shared by all sources of inputs.
#pragma once

#include "firmware/app.hpp"

namespace carina::firmware {

class Session final : public rt::Profiler {
 public:
  /// For method `index` of the app.
  Session(const App& app, size_t index) : app_(app), index_(index) {}
  ~Session() = default;

  /// Loads the program and opens the NPU. False on failure, after printing the reason.
  bool open(rt::Bytes program);
  /// Loads the method of the linked program and shares the NPU, without reporting either again. Loading
  /// writes the initial contents of the state: open all sessions before the first inference.
  bool openSharingNpu(const Session& first);
  /// Reloads the method, which restores its initial state.
  bool restart();
  /// One inference with the current inputs. False on failure, after printing the reason.
  bool infer();
  /// infer() without messages, and the messages that infer() prints on failure.
  rt::Status execute();
  void explain(const rt::Status& status) const;
  /// Cycles per operator and in total, NPU counters, memory.
  void report() const;

  rt::Method& method() { return method_; }
  uint32_t inferences() const { return inferences_; }
  uint64_t cycles() const { return cycles_; }  // of the CPU, in all inferences
  /// NPU cycles in the inferences of all sessions that share it.
  uint64_t npuCycles() const;

  /// Memory of an input, to be filled in place. False on failure, after printing the reason.
  bool inputMemory(uint32_t index, rt::MutableBytes* bytes);
  /// Sets every element of every input to 1, as runners without input do. False after printing the reason.
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
  const MethodSetup* setup_ = nullptr;  // set once it is open
  rt::Program program_;
  rt::Method method_;
  Npu* npu_ = nullptr;
  rt::Backend* backends_[1] = {};
  uint32_t inferences_ = 0;
  uint64_t cycles_ = 0;
  uint32_t began_ = 0, operatorBegan_ = 0;
};

}  // namespace carina::firmware
