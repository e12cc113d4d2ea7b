// SPDX-License-Identifier: Apache-2.0
// Compiles and judges every job of a project, and writes what continuous integration shows.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ci/project.hpp"
#include "pipeline/ledger.hpp"

namespace carina::ci {

struct JobResult {
  std::string name, folder;
  std::vector<Diagnostic> errors;  // why there is no result; each names the job
  pipeline::Measured measured;     // SQNR and top-1 are the NPU's where there is data
  std::vector<pipeline::GateResult> gates;
  std::optional<pipeline::LedgerDiff> change;  // since the baseline, where it has this job
  std::vector<Diagnostic> warnings;

  bool passed() const;
  /// The errors as one text, "" without any.
  std::string problem() const;
};

struct RunOptions {
  std::filesystem::path output;    // folder of the results; empty: none are written
  std::filesystem::path baseline;  // such a folder of an earlier run; may be empty
  std::function<void(size_t done, size_t total)> progress;
};

/// In the order of the project. What fails for one job is in its errors; results of all jobs appear together:
/// FOLDER/{report.json, summary.txt, ..., evaluate.json, NAME.pte} of each (no .pte where a gate is missed),
/// and ci.json, summary.md, junit.xml beside them. Fails where these cannot be written or a file of the
/// baseline cannot be read.
Result<std::vector<JobResult>> runProject(const Project& project, const RunOptions& options);

/// One line per job, then the gates that are missed.
std::string resultsText(const std::vector<JobResult>& results);
/// For a job summary or a comment on a pull request: the table, what is missed, what changed.
std::string resultsMarkdown(const std::vector<JobResult>& results);
/// docs/schema/ci.json.
std::string resultsJson(const std::vector<JobResult>& results);
/// A line for each job, numbers without units: bytes, milliseconds, decibels, percent.
std::string resultsCsv(const std::vector<JobResult>& results);
/// Every gate and, for each job, whether it compiles.
std::string resultsJunit(const std::vector<JobResult>& results);

}  // namespace carina::ci
