// SPDX-License-Identifier: Apache-2.0
// Runs a compiled program on the host: the runtime, the Ethos-U driver and the NPU model together, in
// process.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "ethosn/model/run.hpp"
#include "npu/model/model.hpp"
#include "pte/etdump.hpp"
#include "pte/tensor_data.hpp"

namespace carina::device {

struct RunOptions {
  std::string method;        // empty: the first
  std::string target;        // NPU to run on; empty: the one the program was compiled for
  std::string systemConfig;  // empty: what the program records, then the target's default
  std::string memoryMode;
  std::filesystem::path configFile;  // describes further system configurations and memory modes; may be empty
  npu::ModelOptions model;
  bool trusted = false;  // no limits on the work of an execution and the memory of the program
  std::vector<pte::TensorData> tensorData;  // files that hold data of the program by name (.ptd)
  bool keepDelegateIo = false;              // keep the inputs and outputs of every delegate call
  bool keepKernelResults = false;           // keep what every kernel call computes
  bool keepEvents = false;                  // keep when everything began and ended
};

/// One delegate call, in execution order.
struct DelegateRun {
  uint32_t instruction = 0;
  npu::RunStats stats;
  std::vector<npu::Finding> findings;
  uint64_t pmuCycles = 0;               // as the driver read them
  std::vector<Tensor> inputs, outputs;  // with keepDelegateIo
};

/// One delegate call for an Ethos-N, in execution order.
struct EthosNDelegateRun {
  uint32_t instruction = 0;
  std::string target;
  ethosn::RunResult result;             // without outputs
  std::vector<Tensor> inputs, outputs;  // with keepDelegateIo, in the order of the call's arguments
};

/// One value that a kernel call gave. A loop writes a slice of a long tensor in every turn: only the first
/// call that gives a value keeps all of it, later ones keep what they changed. KernelValues puts them
/// together.
struct KernelResult {
  uint32_t instruction = 0;
  int32_t value = 0;               // of the method
  std::optional<Tensor> contents;  // of the first call
  size_t offset = 0;               // of `changed`, in row-major order
  std::vector<std::byte> changed;
};

/// What the values of a method hold, kernel result by kernel result.
class KernelValues {
 public:
  /// `contents` as a result against what the value held before, which it replaces.
  KernelResult record(uint32_t instruction, int32_t value, Tensor contents);
  /// What the value holds after `result`; results come in the order in which they were recorded.
  const Tensor& replay(const KernelResult& result);

 private:
  std::unordered_map<int32_t, Tensor> values_;
};

struct RunStats {
  std::string target, systemConfig, memoryMode;  // of the NPU; empty without delegates
  std::vector<Diagnostic> warnings;              // about the NPU that was chosen
  std::vector<DelegateRun> delegates;
  std::vector<EthosNDelegateRun> ethosN;  // instead of those, in a program for an Ethos-N
  int64_t npuCycles = 0;                  // sum over delegate calls, as the PMU counts
  int64_t methodBytes = 0, temporaryBytes = 0, fastScratchBytes = 0;
  std::vector<int64_t> poolBytes;
  std::vector<std::string> kernels;  // CPU kernels called, in order
  /// With keepKernelResults: what each kernel call gave, in the order of execution; see KernelValues.
  /// Programs of one chain.
  std::vector<KernelResult> kernelResults;
  /// With keepEvents: kernels in time of this machine, NPU jobs in cycles of the model at the clock of the
  /// system configuration.
  std::vector<pte::ProfileEvent> events;

  /// What the delegate call with this number gave, of either family; null behind the last. With
  /// keepDelegateIo.
  const std::vector<Tensor>* delegateOutputs(size_t call) const {
    if (call < delegates.size()) return &delegates[call].outputs;
    return call - delegates.size() < ethosN.size() ? &ethosN[call - delegates.size()].outputs : nullptr;
  }
};

struct RunOutcome {
  std::vector<Tensor> outputs;  // program order
  RunStats stats;
};

/// A program ready to run any number of times. Bytes are copied to aligned memory.
class Runner {
 public:
  static Result<Runner> open(ByteSpan program, const RunOptions& options = {});
  /// Another method of the same program, with the same options. What methods keep from call to call lies in
  /// the same memory (pool 2, where ExecuTorch's shared mutable buffers are). Opening a method writes the
  /// initial contents of its state: open all before the first run.
  Result<Runner> openBeside(const std::string& method) const;
  ~Runner();
  Runner(Runner&&) noexcept;
  Runner& operator=(Runner&&) noexcept;

  /// Element type and shape of every input that is a tensor, and of every output (logical order). Numbers
  /// among the inputs keep the values that the program was exported with; numbers among the outputs are
  /// int64, float64 or bool without dimensions.
  struct Io {
    DType dtype;
    Shape shape;
  };
  const std::vector<Io>& inputs() const;
  const std::vector<Io>& outputs() const;

  /// Takes the state that runs left in the program's memory back to what it was before the first.
  Status reset();
  /// What value `id` of the method holds: a tensor with memory.
  Result<Tensor> contents(int32_t id);

  /// One inference. Inputs in program order; type and shape must be equal (a mismatch says what is expected).
  Result<RunOutcome> run(std::span<const Tensor> inputs);

 private:
  struct State;
  explicit Runner(std::unique_ptr<State> state);
  static Result<Runner> open(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Inputs have the types and shapes wanted, or what does not fit.
Status checkInputs(std::span<const Tensor> inputs, std::span<const Runner::Io> wanted);

/// open() and run() once.
Result<RunOutcome> runProgram(ByteSpan program, std::span<const Tensor> inputs,
                              const RunOptions& options = {});

}  // namespace carina::device
