// SPDX-License-Identifier: Apache-2.0
// Compiles every job of a project, checks it against its gates, and writes the results for continuous
// integration.
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
  std::vector<Diagnostic> errors;  // why there is no result; each error names the job
  pipeline::Measured measured;     // SQNR and top-1 are the NPU's if there is data
  std::vector<pipeline::GateResult> gates;
  std::optional<pipeline::LedgerDiff> change;  // since the baseline, if it has this job
  std::vector<Diagnostic> warnings;

  bool passed() const;
  /// The errors as one text, "" if there are none.
  std::string problem() const;
};

struct RunOptions {
  std::filesystem::path output;    // result directory; empty: no results are written
  std::filesystem::path baseline;  // result directory of an earlier run; may be empty
  std::function<void(size_t done, size_t total)> progress;
};

/// In the order of the project. Failures of a job are in its errors; results of all jobs are written
/// together: FOLDER/{report.json, summary.txt, ..., evaluate.json, NAME.pte} for each (no .pte if it misses a
/// gate), and alongside them ci.json, summary.md, junit.xml. Fails if these cannot be written or a file of
/// the baseline cannot be read.
Result<std::vector<JobResult>> runProject(const Project& project, const RunOptions& options);

/// One line per job, then the missed gates.
std::string resultsText(const std::vector<JobResult>& results);
/// For a job summary or a comment on a pull request: the table, missed gates, changes.
std::string resultsMarkdown(const std::vector<JobResult>& results);
/// JSON by docs/schema/ci.json.
std::string resultsJson(const std::vector<JobResult>& results);
/// One line per job, numbers without units: bytes, milliseconds, decibels, percent.
std::string resultsCsv(const std::vector<JobResult>& results);
/// Test cases: every gate and, for each job, whether it compiles.
std::string resultsJunit(const std::vector<JobResult>& results);

}  // namespace carina::ci
