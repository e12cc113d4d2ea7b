// SPDX-License-Identifier: Apache-2.0
// The options that every command shares which builds a network: compile, verify.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "pipeline/pipeline.hpp"

namespace carina::app {

struct BuildOptions {
  pipeline::Options options;
  std::vector<std::string> dumpStages;
  bool verbose = false;

  void declare(CLI::App& command);
  /// What the flags say, with progress bar and dumps to stdout.
  pipeline::Options finish() const;
};

}  // namespace carina::app
