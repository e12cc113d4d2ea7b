// SPDX-License-Identifier: Apache-2.0
// What a compilation made, in a few lines, and as a folder of files.
#pragma once

#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "pipeline/methods.hpp"

namespace carina::report {

/// Target, operations, cycles, memory by area, what stays on the CPU and why, how near to float it comes.
/// `core`: of the CPU's part, for the time of an inference (cpu::findCore; empty: the usual one).
std::string summary(const pipeline::Build& build, const std::filesystem::path& output,
                    const std::string& core = "");
/// The same of each method, and what they share.
std::string summary(const pipeline::MethodsBuild& build, const std::filesystem::path& output,
                    const std::string& core = "");
/// One line per pipeline stage with its wall time.
std::string stageTimes(std::span<const pipeline::StageTime> times);

/// How many cycles the operations of a build take at least, by what, and how far the program is from it; ""
/// when no bound is known.
std::string cycleBoundLine(const pipeline::Build& build);

/// The files of a report.
constexpr std::array<std::string_view, 4> kReportFiles{"summary.txt", "layers.txt", "quantization.txt",
                                                       "report.json"};

/// report.json (docs/schema/report.json). `programBytes`: of the program's file.
std::string reportJson(const pipeline::Build& build, int64_t programBytes, const std::string& core = "");

/// summary.txt, layers.txt, quantization.txt and report.json in `folder` (created when missing). `output`:
/// the program that they are of, whose file has `programBytes`.
Status addReport(const pipeline::Build& build, const std::filesystem::path& output, int64_t programBytes,
                 const std::filesystem::path& folder, OutputFiles& files, const std::string& core = "");
/// The summary of all methods in `folder`, and the files of each one in a folder of its name there.
Status addReport(const pipeline::MethodsBuild& build, const std::filesystem::path& output,
                 const std::filesystem::path& folder, OutputFiles& files, const std::string& core = "");

}  // namespace carina::report
