// SPDX-License-Identifier: Apache-2.0
// Which ways samples take through a program whose control flow data decide.
#pragma once

#include <span>
#include <vector>

#include "pipeline/npu_probe.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

struct MeasuredWays {
  std::vector<npu::Cycles> cycles;          // of the NPU, sample by sample
  std::vector<int64_t> calls;               // of each NPU part, all samples
  std::vector<std::vector<WayCount>> ways;  // of each NPU part and each of its branches, all samples
};

/// Runs the program of a build on its samples (verificationSamples()), one after the other: state goes from
/// sample to sample.
Result<MeasuredWays> measureWays(const Build& build, std::span<const quantize::Sample> samples);

}  // namespace carina::pipeline
