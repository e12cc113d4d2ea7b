// SPDX-License-Identifier: Apache-2.0
// Which paths samples take through a program with data-dependent control flow.
#pragma once

#include <span>
#include <vector>

#include "pipeline/npu_probe.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

struct MeasuredPaths {
  std::vector<npu::Cycles> cycles;           // of the NPU, per sample
  std::vector<int64_t> calls;                // of each NPU part, over all samples
  std::vector<std::vector<PathCount>> ways;  // of each NPU part and each of its branches, over all samples
};

/// Runs the program of a build on its samples (verificationSamples()), in sequence: state is carried from
/// sample to sample.
Result<MeasuredPaths> measurePaths(const Build& build, std::span<const quantize::Sample> samples);

}  // namespace carina::pipeline
