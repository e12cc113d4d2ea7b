// SPDX-License-Identifier: Apache-2.0
// Runs a file on arrays: a program through runtime, driver and NPU model; a TOSA graph in the interpreter; a
// bundled program on its own test cases.
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "delivery/at_load.hpp"
#include "device/run.hpp"
#include "ethosn/model/run.hpp"

namespace carina::pipeline {

/// When a program's state is reset.
enum class ResetState : uint8_t { Never, Each };  // only before the first sample, before each sample

struct RunOptions {
  std::filesystem::path file;  // .pte, .bpte, compiled .tflite, .tosa, .encn
  /// Method of a program; empty: the first whose inputs have the shapes of the arrays, or all test cases of a
  /// bundle.
  std::string method;
  std::string target;                          // empty: what the program was compiled for
  std::string systemConfig, memoryMode;        // empty: what the program records, then the target's defaults
  std::filesystem::path configFile;            // describes additional ones of either; may be empty
  std::optional<std::filesystem::path> cache;  // directory for parts compiled at load; none: nothing is kept
  std::filesystem::path arraysFile;            // origin of the arrays, for messages; may be empty
  std::vector<std::filesystem::path> tensorData;  // .ptd files that the program references
  ResetState resetState = ResetState::Never;
  bool raw = false;         // arrays are what the program expects; else floats for integers are quantized
  bool dequantize = false;  // outputs of 8 and 16 bits become floats
  bool profile = false;     // record when each event of a program began and ended
  bool trusted = false;     // no limits on the work of an execution and on the memory of a program
  bool check = false;       // check the command streams for errors while they run
  double absoluteTolerance = 0.01, relativeTolerance = 0.01;  // for floating-point outputs of test cases
  std::function<void(size_t done, size_t total)> progress;
};

/// One test case of a bundled program.
struct CaseResult {
  std::string method;
  size_t index = 0;  // within its method
  bool passed = false;
  double maxError = 0;   // absolute, over all outputs
  std::string mismatch;  // the first wrong output, and how it differs
};

/// Samples for one method of a program.
struct MethodInputs {
  std::string method;
  std::filesystem::path file;  // origin of the arrays, for messages
  NamedTensors arrays;
};

/// The result of one entry of a sequence of methods.
struct MethodResult {
  std::string method;
  size_t samples = 0;
  int64_t npuCycles = 0;  // over all samples
};

struct RunResult {
  std::filesystem::path file;
  std::string method;    // the one chosen by the shapes of the arrays; empty: as in RunOptions
  NamedTensors outputs;  // out0, out1, ...; stacked if the inputs were
  size_t samples = 0;
  double seconds = 0;                       // wall time of all runs, without loading
  std::optional<device::RunStats> program;  // for the last sample; none for .tosa
  std::optional<delivery::AtLoad> atLoad;   // for a program whose NPU parts are TOSA graphs
  /// For the last sample of a network for Ethos-N.
  struct EthosN {
    const ethosn::Variant* variant = nullptr;  // null: any
    ethosn::RunStats stats;
    std::vector<ethosn::Assumption> assumptions;
  };
  std::optional<EthosN> ethosN;
  /// Number of samples whose largest element of out0 is at the index given by the array `labels`; nullopt
  /// without such an array.
  std::optional<size_t> correct;
  std::vector<CaseResult> cases;      // for a bundled program run on its own test cases
  std::vector<MethodResult> methods;  // for runMethods()
  std::vector<std::string>
      findings;  // from the checker, each with the offset of its command; for the last sample

  std::vector<pte::ProfiledRun> profile;  // with `profile`: one run per sample or test case

  bool allPassed() const {
    return std::all_of(cases.begin(), cases.end(), [](const CaseResult& result) { return result.passed; });
  }
};

/// Whether outputs can be written under this name: .npz, .npy or a device or pipe. To be called before the
/// run.
Status checkArraysOutput(const std::filesystem::path& output);
/// The bytes of such a file: an .npz, or the only array as .npy. Fails if there is not exactly one.
Result<std::string> arraysFile(const std::filesystem::path& output, const NamedTensors& arrays);

/// The checker's findings in the command streams of a run, call by call.
std::vector<std::string> findingsOf(const device::RunStats& stats);

/// Errors name the array or the place that does not fit. A bundled program runs on its test cases if `arrays`
/// is empty.
Result<RunResult> runFile(const RunOptions& options, const NamedTensors& arrays);

/// Runs methods of a .pte in sequence, each on all its samples; each finds the program's state as the
/// previous one left it. Outputs are named METHOD.out0, ..., those of a repeated method METHOD.2.out0.
Result<RunResult> runMethods(const RunOptions& options, std::span<const MethodInputs> methods);

}  // namespace carina::pipeline
