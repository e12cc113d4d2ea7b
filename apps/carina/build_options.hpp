// SPDX-License-Identifier: Apache-2.0
// The options that every command shares which builds a network: compile, verify, profile, sweep.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "option_values.hpp"
#include "pipeline/chosen_sizes.hpp"
#include "pipeline/methods.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::app {

struct BuildOptions {
  pipeline::Options options;
  std::vector<std::string> inputs, outputs;  // TYPE, or NAME=TYPE: where they differ from `io`
  std::optional<pipeline::ProgramIo> io;
  std::string finishing;  // softmax, argmax:1, ...
  std::string observer = "histogram";
  std::string cpu;  // the core whose time for the CPU's part is told; empty: the usual one
  std::vector<std::string> dumpStages;
  bool verbose = false;
  std::vector<NamedFile> methodFiles, calibrations;  // --method and --calibrate as they stand
  std::vector<pipeline::MethodSource> methods;       // MODEL and what --method names; empty without one
  std::vector<std::string> sizes;                    // --specialize as it stands

  /// What MODEL may be, and whether one target, system configuration and memory mode are asked for. Methods:
  /// networks, and --method for programs of several.
  enum class Takes : uint8_t { Networks, Methods, NetworksAndPrograms, NetworksForManyTargets };
  void declare(Command& command, Takes takes = Takes::Networks);
  /// For the callback of a command that takes Methods: which networks and samples belong to which method.
  /// Wrong usage is thrown.
  void resolveMethods();
  /// What --specialize makes of MODEL and the methods: for one choice of MODEL's sizes Options::sizes, else
  /// methods for all choices with their samples. `inputs`: further METHOD=FILE, which get the names of these
  /// methods; those of a method without sizes are for all that it became. To be called before anything is
  /// built. Errors: sizes that no network has, files of methods that there are not.
  Status chooseSizes(std::vector<NamedFile>* inputs = nullptr);
  /// What the flags say, with progress bar and dumps to stdout.
  pipeline::Options finish() const;

 private:
  void declareMethods(Command& command);
  void declareSizes(Command& command, Takes takes);
  Status nameFiles(std::string_view option, std::vector<NamedFile>& files) const;
  void declareEnds(Command& command);
};

/// --cpu: the core whose time for the CPU's part is told.
void addCpuOption(Command& command, std::string& core);

}  // namespace carina::app
