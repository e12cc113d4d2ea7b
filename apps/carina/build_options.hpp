// SPDX-License-Identifier: Apache-2.0
// The options that every command shares which builds a network: compile, verify, profile, sweep.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "option_values.hpp"
#include "pipeline/methods.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::app {

struct BuildOptions {
  pipeline::Options options;
  std::vector<std::string> inputs, outputs;  // TYPE, or NAME=TYPE: where they differ from `io`
  pipeline::ProgramIo io = pipeline::ProgramIo::Float;
  std::string finishing;  // softmax, argmax:1, ...
  std::string observer = "histogram";
  std::string cpu;  // the core whose time for the CPU's part is told; empty: the usual one
  std::vector<std::string> dumpStages;
  bool verbose = false;
  std::vector<NamedFile> methodFiles, calibrations;  // --method and --calibrate as they stand
  std::vector<pipeline::MethodSource> methods;       // MODEL and what --method names; empty without one

  /// What MODEL may be, and whether one target, system configuration and memory mode are asked for. Methods:
  /// networks, and --method for programs of several.
  enum class Takes : uint8_t { Networks, Methods, NetworksAndPrograms, NetworksForManyTargets };
  void declare(Command& command, Takes takes = Takes::Networks);
  /// For the callback of a command that takes Methods: which networks and samples belong to which method.
  /// Wrong usage is thrown.
  void resolveMethods();
  /// What the flags say, with progress bar and dumps to stdout.
  pipeline::Options finish() const;

 private:
  void declareMethods(Command& command);
  void declareEnds(Command& command);
};

/// --cpu: the core whose time for the CPU's part is told.
void addCpuOption(Command& command, std::string& core);

}  // namespace carina::app
