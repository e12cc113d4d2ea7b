// SPDX-License-Identifier: Apache-2.0
// Programs with several methods, each made from its own network. Constants are stored once, those that CPU
// kernels read and those of NPU parts, and buffers of the same name are one tensor: what one method writes,
// another one reads.
#pragma once

#include "compiler/share_constants.hpp"
#include "pipeline/gates.hpp"
#include "pipeline/pipeline.hpp"
#include "pipeline/verify.hpp"

namespace carina::pipeline {

/// The network of a method: a .pt2.
struct MethodSource {
  std::string name;
  std::filesystem::path model, calibration;
  std::map<std::string, int64_t> sizes = {};  // Options::sizes
  std::string asked = {};                     // the name without the sizes, if it includes them
};

/// State shared by several methods.
struct SharedVariable {
  std::string name;
  std::string type;                  // "int8[1,2,16,8]", as the program keeps it
  std::vector<std::string> methods;  // that read or write it
};

struct MethodsBuild {
  std::vector<std::string> names;
  std::vector<Build> methods;  // each with its own program, whose method is called forward
  pte::Program program;        // of all of them
  /// Constants of the Ethos-U parts. If that saves memory, `program` holds the constants of all parts once,
  /// as named data, and each part in `methods` holds all of them.
  compiler::SharedBytes npuConstants;
  bool sharesNpuConstants() const { return npuConstants.together < npuConstants.apart; }
  std::vector<SharedVariable> shared;
  std::vector<Diagnostic> warnings;  // of the whole; those of the methods are in `methods`
};

/// `options` apply to every method, except for the network and its calibration samples. The samples of the
/// methods are the calls of one sequence, method after method in the order of `sources`: each continues from
/// the state that the previous ones left. Errors: those of build() for one of them, an empty or duplicate
/// name, a buffer of the same name that differs in shape, type or initial contents.
Result<MethodsBuild> buildMethods(const Options& options, std::span<const MethodSource> sources);

/// The figures that gates check: cycles and time of the slowest method, memory and file of all of them, and
/// the quality of the worst.
Measured measuredOf(const MethodsBuild& build, std::optional<int64_t> programBytes);

/// verify() for every method of the common program, in order; state is carried from one to the next in each
/// of the executions. `samples`: one list per method.
Result<std::vector<Verification>> verifyMethods(const MethodsBuild& build,
                                                std::span<const std::vector<quantize::Sample>> samples,
                                                const quantize::Progress& progress = nullptr,
                                                Simulation simulation = Simulation::Float);

}  // namespace carina::pipeline
