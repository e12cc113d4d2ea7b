// SPDX-License-Identifier: Apache-2.0
// What a compilation made, in a few lines, and as a folder of files.
#pragma once

#include <filesystem>
#include <string>

#include "pipeline/pipeline.hpp"

namespace carina::report {

/// Target, operations, cycles, memory by area, what stays on the CPU and why.
std::string summary(const pipeline::Build& build, const std::filesystem::path& output);
/// One line per pipeline stage with its wall time.
std::string stageTimes(const pipeline::Build& build);

/// summary.txt, layers.txt, quantization.txt and report.json in `folder` (created when missing).
Status addReport(const pipeline::Build& build, const std::filesystem::path& folder, OutputFiles& files);

}  // namespace carina::report
