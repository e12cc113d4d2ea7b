// SPDX-License-Identifier: Apache-2.0
// A program made ready, run and reported on: what every way of feeding it shares.
#pragma once

#include "firmware/app.hpp"

namespace carina::firmware {

class Session final : public rt::Profiler {
 public:
  explicit Session(const App& app) : app_(app) {}
  ~Session() = default;

  /// Loads the program and opens the NPU. False after printing why not.
  bool open(rt::Bytes program);
  /// One inference with the inputs as they are. False after printing why not.
  bool infer();
  /// Cycles per operator and in total, NPU counters, memory.
  void report() const;

  rt::Method& method() { return method_; }
  uint32_t inferences() const { return inferences_; }

  /// Where an input lies, to be filled in place. False after printing why not.
  bool inputMemory(uint32_t index, rt::MutableBytes* bytes);
  /// Sets every element of every input to 1, as runners without input do. False after printing why not.
  bool fillWithOnes();
  /// Prints up to App::printed elements of each output.
  void printOutputs() const;

  void event(rt::EventKind kind, uint32_t instruction, rt::Text name) override;

 private:
  bool bindUnplanned();
  void reportNpu() const;
  void reportMemory() const;

  const App& app_;
  rt::Program program_;
  rt::Method method_;
  Npu* npu_ = nullptr;
  rt::Backend* backends_[1] = {};
  uint32_t inferences_ = 0;
  uint64_t cycles_ = 0;
  uint32_t began_ = 0, operatorBegan_ = 0;
};

}  // namespace carina::firmware
