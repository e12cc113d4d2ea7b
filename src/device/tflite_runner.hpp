// SPDX-License-Identifier: Apache-2.0
// Runs a TFLite file that a compiler for Ethos-U produced: its `ethos-u` operators on the NPU model, through
// the runtime's driver, and the others on the host, with the memory layout of TensorFlow Lite for
// Microcontrollers.
#pragma once

#include <memory>
#include <span>

#include "device/run.hpp"
#include "tflite/vela.hpp"

namespace carina::device {

/// A compiled .tflite ready to run any number of times. The file records its NPU, but not its system: without
/// options, the target's defaults apply.
class TfliteRunner {
 public:
  /// `file` must outlive the runner. Errors: not a TFLite file, not compiled, unsupported operators, or the
  /// wrong NPU.
  static Result<TfliteRunner> open(ByteSpan file, const RunOptions& options = {});
  ~TfliteRunner();
  TfliteRunner(TfliteRunner&&) noexcept;
  TfliteRunner& operator=(TfliteRunner&&) noexcept;

  const std::vector<Runner::Io>& inputs() const;
  const std::vector<Runner::Io>& outputs() const;

  /// The model as it runs: subgraphs, NPU operators, tensors.
  const tflite::NpuProgram& program() const;
  /// Contents of a tensor that is not a constant and that an operator of an executed subgraph uses: what was
  /// last written to its memory. If the file has no memory plan, this is the tensor's last value.
  Tensor contents(size_t subgraph, int32_t tensor) const;

  /// Resets variables to what they were when the file was opened: zeros, which in int8 are the zero point.
  void reset();

  /// Runs one inference, as Runner::run() does. In the statistics every `ethos-u` operator is a delegate
  /// call, every other one a kernel; the arena is the temporary memory.
  Result<RunOutcome> run(std::span<const Tensor> inputs);

 private:
  struct State;
  explicit TfliteRunner(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace carina::device
