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
  ResultPath csv;  // of the programs that were built

  void declare(Command& command);
  /// For the callback of the command: rejects a search without a goal, and options of the search without it.
  void checkUsage(const GateOptions& gates, const BuildOptions& build) const;

  precision::Goal goal(const pipeline::Gates& gates) const;
  /// Adds the rules file, only if `reached`, and the measurements as `json`.
  Status add(const precision::AutoPrecision& found, const precision::Goal& goal,
             const pipeline::Options& options, bool reached, const ResultPath& json,
             ResultFiles& results) const;
};

}  // namespace carina::app
