// SPDX-License-Identifier: Apache-2.0
// The options that every command shares which builds a network: compile, verify, profile, sweep.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::app {

struct BuildOptions {
  pipeline::Options options;
  std::optional<pipeline::ProgramIo> inputs, outputs;  // where they differ from `io`
  pipeline::ProgramIo io = pipeline::ProgramIo::Float;
  std::string observer = "histogram";
  std::string cpu;  // the core whose time for the CPU's part is told; empty: the usual one
  std::vector<std::string> dumpStages;
  bool verbose = false;

  /// What MODEL may be, and whether one target, system configuration and memory mode are asked for.
  enum class Takes : uint8_t { Networks, NetworksAndPrograms, NetworksForManyTargets };
  void declare(Command& command, Takes takes = Takes::Networks);
  /// What the flags say, with progress bar and dumps to stdout.
  pipeline::Options finish() const;
};

/// --cpu: the core whose time for the CPU's part is told.
void addCpuOption(Command& command, std::string& core);

}  // namespace carina::app
