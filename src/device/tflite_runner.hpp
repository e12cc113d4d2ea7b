// SPDX-License-Identifier: Apache-2.0
// Runs a TFLite file that a compiler for Ethos-U made: its `ethos-u` operators on the NPU model, through our
// driver, and those around them here, with the memory laid out as TensorFlow Lite for Microcontrollers lays
// it out.
#pragma once

#include <memory>
#include <span>

#include "device/run.hpp"
#include "tflite/vela.hpp"

namespace carina::device {

/// A compiled .tflite ready to run any number of times. The file says which NPU it is for, not which system:
/// without options the target's defaults count.
class TfliteRunner {
 public:
  /// `file` outlives the runner. Errors: not a TFLite file, not compiled, operators that are not computed
  /// here, an NPU that does not fit.
  static Result<TfliteRunner> open(ByteSpan file, const RunOptions& options = {});
  ~TfliteRunner();
  TfliteRunner(TfliteRunner&&) noexcept;
  TfliteRunner& operator=(TfliteRunner&&) noexcept;

  const std::vector<Runner::Io>& inputs() const;
  const std::vector<Runner::Io>& outputs() const;

  /// The model as it runs: subgraphs, NPU operators, tensors.
  const tflite::NpuProgram& program() const;
  /// What a tensor holds that is no constant and that an operator of a subgraph that runs names: what the
  /// latest one to write its memory left. That is the tensor's last value where the file has no memory plan.
  Tensor contents(size_t subgraph, int32_t tensor) const;

  /// Variables as they were when the file was opened: zeros, in int8 as their zero point says them.
  void reset();

  /// One inference, as Runner::run(). In the statistics every `ethos-u` operator is a delegate call, every
  /// other one a kernel; the arena is the temporary memory.
  Result<RunOutcome> run(std::span<const Tensor> inputs);

 private:
  struct State;
  explicit TfliteRunner(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace carina::device
