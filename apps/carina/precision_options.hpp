// SPDX-License-Identifier: Apache-2.0
// carina compile --auto-precision: the options of the search, and its results.
#pragma once

#include "build_options.hpp"
#include "command_line.hpp"
#include "gate_options.hpp"
#include "precision/auto_precision.hpp"
#include "result_files.hpp"

namespace carina::app {

struct PrecisionOptions {
  bool automatic = false;
  std::filesystem::path data, rules;
  ResultPath csv;  // of the programs that were made

  void declare(Command& command);
  /// For the callback of the command: a search without a goal, or options of the search without it.
  void checkUsage(const GateOptions& gates, const BuildOptions& build) const;

  precision::Goal goal(const pipeline::Gates& gates) const;
  /// Rules file, only when `reached`, and what was measured as `json`.
  Status add(const precision::AutoPrecision& found, const precision::Goal& goal,
             const pipeline::Options& options, bool reached, const ResultPath& json,
             ResultFiles& results) const;
};

}  // namespace carina::app
