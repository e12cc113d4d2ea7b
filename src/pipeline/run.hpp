// SPDX-License-Identifier: Apache-2.0
// Running a file on arrays: a program through runtime, driver and NPU model; a TOSA graph in the interpreter.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "device/run.hpp"

namespace carina::pipeline {

struct RunOptions {
  std::filesystem::path file;  // .pte or .tosa
  std::string target;          // empty: what the program was compiled for
  std::function<void(size_t done, size_t total)> progress;
};

struct RunResult {
  std::filesystem::path file;
  NamedTensors outputs;                     // out0, out1, ...; stacked when the inputs were
  size_t samples = 0;
  double seconds = 0;                       // wall time of all runs, without loading
  std::optional<device::RunStats> program;  // of the last sample; none for .tosa
  /// Samples whose largest element of out0 is at the index that the array `labels` gives; none without such an array.
  std::optional<size_t> correct;
};

/// Errors name the array or the place that does not fit.
Result<RunResult> runFile(const RunOptions& options, const NamedTensors& arrays);

}  // namespace carina::pipeline
