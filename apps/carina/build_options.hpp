// SPDX-License-Identifier: Apache-2.0
// The options shared by all commands that build a network: compile, verify, profile, sweep.
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
  std::vector<std::string> inputs, outputs;  // TYPE, or NAME=TYPE: if they differ from `io`
  std::optional<pipeline::ProgramIo> io;
  std::string finishing;  // softmax, argmax:1, ...
  std::string observer = "histogram";
  std::string cpu;  // core for the timing of the CPU part; empty: the default one
  std::vector<std::string> dumpStages;
  bool verbose = false;
  std::vector<NamedFile> methodFiles, calibrations;  // --method and --calibrate as given
  std::vector<pipeline::MethodSource> methods;       // MODEL and those of --method; empty without it
  std::vector<std::string> sizes;                    // --specialize as given

  /// What MODEL may be, and whether a single target, system configuration and memory mode are selected.
  /// Methods: networks, and --method for programs with several.
  enum class Takes : uint8_t { Networks, Methods, NetworksAndPrograms, NetworksForManyTargets };
  void declare(Command& command, Takes takes = Takes::Networks);
  /// For the callback of a command that accepts Methods: assigns networks and samples to methods. Throws on
  /// wrong usage.
  void resolveMethods();
  /// Applies --specialize to MODEL and the methods: a single choice of MODEL's sizes sets Options::sizes,
  /// otherwise there is a method for each choice, with its samples. `inputs`: further METHOD=FILE, which get
  /// the names of these methods; those of a method without sizes apply to all methods derived from it. To be
  /// called before anything is built. Errors: sizes that no network has, files of methods that do not exist.
  Status chooseSizes(std::vector<NamedFile>* inputs = nullptr);
  /// The options given by the flags, with progress bar and dumps to stdout.
  pipeline::Options finish() const;

 private:
  void declareMethods(Command& command);
  void declareSizes(Command& command, Takes takes);
  Status nameFiles(std::string_view option, std::vector<NamedFile>& files) const;
  void declareEnds(Command& command);
};

/// --cpu: the core for the timing of the CPU part.
void addCpuOption(Command& command, std::string& core);

}  // namespace carina::app
