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
  std::filesystem::path configFile;  // additional system configurations and memory modes; may be empty
  npu::ModelOptions model;
  bool trusted = false;  // no limits on the work of an execution and the memory of the program
  std::vector<pte::TensorData> tensorData;  // files that hold data of the program by name (.ptd)
  bool keepDelegateIo = false;              // keep the inputs and outputs of every delegate call
  bool keepKernelResults = false;           // keep what every kernel call computes
  bool keepEvents = false;                  // keep start and end times
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

/// One value that a kernel call produced. A loop writes a slice of a long tensor in every iteration: only the
/// first call that produces a value keeps all of it, later ones keep what they changed. KernelValues
/// reassembles them.
struct KernelResult {
  uint32_t instruction = 0;
  int32_t value = 0;               // of the method
  std::optional<Tensor> contents;  // of the first call
  size_t offset = 0;               // of `changed`, in row-major order
  std::vector<std::byte> changed;
};

/// The contents of a method's values, kernel result by kernel result.
class KernelValues {
 public:
  /// `contents` as a difference from the previous contents of the value, which it replaces.
  KernelResult record(uint32_t instruction, int32_t value, Tensor contents);
  /// The contents of the value after `result`; results must be replayed in the order in which they were
  /// recorded.
  const Tensor& replay(const KernelResult& result);

 private:
  std::unordered_map<int32_t, Tensor> values_;
};

struct RunStats {
  std::string target, systemConfig, memoryMode;  // of the NPU; empty without delegates
  std::vector<Diagnostic> warnings;              // about the selected NPU
  std::vector<DelegateRun> delegates;
  std::vector<EthosNDelegateRun> ethosN;  // instead of these, in a program for an Ethos-N
  int64_t npuCycles = 0;                  // sum over delegate calls, as the PMU counts
  int64_t methodBytes = 0, temporaryBytes = 0, fastScratchBytes = 0;
  std::vector<int64_t> poolBytes;
  std::vector<std::string> kernels;  // CPU kernels called, in order
  /// With keepKernelResults: the results of each kernel call, in execution order; see KernelValues. For
  /// programs with one chain only.
  std::vector<KernelResult> kernelResults;
  /// With keepEvents: kernels in host time, NPU jobs in cycles of the model at the clock of the system
  /// configuration.
  std::vector<pte::ProfileEvent> events;

  /// Outputs of the delegate call with this index, of either family; null after the last. Requires
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
  /// Another method of the same program, with the same options. State that methods keep between calls is in
  /// the same memory (pool 2, where ExecuTorch's shared mutable buffers are). Opening a method writes the
  /// initial contents of its state: open all methods before the first run.
  Result<Runner> openSharingNpu(const std::string& method) const;
  ~Runner();
  Runner(Runner&&) noexcept;
  Runner& operator=(Runner&&) noexcept;

  /// Element type and shape of every input that is a tensor, and of every output (logical order). Scalar
  /// inputs keep the values with which the program was exported; scalar outputs are int64, float64 or bool
  /// without dimensions.
  struct Io {
    DType dtype;
    Shape shape;
  };
  const std::vector<Io>& inputs() const;
  const std::vector<Io>& outputs() const;

  /// Resets the state in the program's memory to what it was before the first run.
  Status reset();
  /// Contents of value `id` of the method, which must be a tensor with memory.
  Result<Tensor> contents(int32_t id);

  /// Runs one inference. Inputs are in program order; types and shapes must match (the error states what is
  /// expected).
  Result<RunOutcome> run(std::span<const Tensor> inputs);

 private:
  struct State;
  explicit Runner(std::unique_ptr<State> state);
  static Result<Runner> open(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Checks that the inputs have the types and shapes wanted; the error states the mismatch.
Status checkInputs(std::span<const Tensor> inputs, std::span<const Runner::Io> wanted);

/// open() and run() once.
Result<RunOutcome> runProgram(ByteSpan program, std::span<const Tensor> inputs,
                              const RunOptions& options = {});

}  // namespace carina::device
