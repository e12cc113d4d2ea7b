// SPDX-License-Identifier: Apache-2.0
// The results of a compilation, in a few lines, and as a directory of files.
#pragma once

#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "pipeline/methods.hpp"

namespace carina::report {

/// Target, operations, cycles, memory by area, what stays on the CPU and why, accuracy against float. `core`:
/// core for the CPU part, for the time of an inference (cpu::findCore; empty: the default one).
std::string summary(const pipeline::Build& build, const std::filesystem::path& output,
                    const std::string& core = "");
/// The same for each method, and what they share.
std::string summary(const pipeline::MethodsBuild& build, const std::filesystem::path& output,
                    const std::string& core = "");
/// One line per pipeline stage with its wall time.
std::string stageTimes(std::span<const pipeline::StageTime> times);

/// A lower bound on the cycles of a build's operations, by limiting resource, and the program's distance from
/// it; "" if no bound is known.
std::string cycleBoundLine(const pipeline::Build& build);

/// The files of a report.
constexpr std::array<std::string_view, 4> kReportFiles{"summary.txt", "layers.txt", "quantization.txt",
                                                       "report.json"};

/// report.json (docs/schema/report.json). `programBytes`: size of the program's file.
std::string reportJson(const pipeline::Build& build, int64_t programBytes, const std::string& core = "");

/// summary.txt, layers.txt, quantization.txt and report.json in `folder` (created if missing). `output`: the
/// program that they describe, whose file has `programBytes`.
Status addReport(const pipeline::Build& build, const std::filesystem::path& output, int64_t programBytes,
                 const std::filesystem::path& folder, OutputFiles& files, const std::string& core = "");
/// The summary of all methods in `folder`, and the files of each method in a subdirectory named after it.
Status addReport(const pipeline::MethodsBuild& build, const std::filesystem::path& output,
                 const std::filesystem::path& folder, OutputFiles& files, const std::string& core = "");

}  // namespace carina::report
