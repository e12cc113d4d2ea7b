// SPDX-License-Identifier: Apache-2.0
// Programs of several methods, each made from a network of its own: constants are stored once, those that CPU
// kernels read and those of NPU parts, and buffers of one name are one tensor, so that what one method writes
// another one reads.
#pragma once

#include "compiler/share_constants.hpp"
#include "pipeline/gates.hpp"
#include "pipeline/pipeline.hpp"
#include "pipeline/verify.hpp"

namespace carina::pipeline {

/// The network that a method is made of: a .pt2.
struct MethodSource {
  std::string name;
  std::filesystem::path model, calibration;
  std::map<std::string, int64_t> sizes = {};  // Options::sizes
  std::string asked = {};                     // the name without these, where it has them
};

/// State that several methods have.
struct SharedVariable {
  std::string name;
  std::string type;                  // "int8[1,2,16,8]", as the program keeps it
  std::vector<std::string> methods;  // that read or write it
};

struct MethodsBuild {
  std::vector<std::string> names;
  std::vector<Build> methods;  // each with a program of its own, whose method is called forward
  pte::Program program;        // of all of them
  /// Of their parts for an Ethos-U. Where it saves, `program` holds the constants of all parts once, as named
  /// data, and those of the parts in `methods` are all of them.
  compiler::SharedBytes npuConstants;
  bool sharesNpuConstants() const { return npuConstants.together < npuConstants.apart; }
  std::vector<SharedVariable> shared;
  std::vector<Diagnostic> warnings;  // of the whole; those of the methods are in them
};

/// `options` are those of every method, but for the network and its calibration samples. The samples of the
/// methods are the calls of one sequence, method after method in the order of `sources`: each goes on from
/// the state that those before it left. Errors: what build() gives for one of them, a name that is empty or
/// taken, a buffer of one name that differs in shape, type or initial contents.
Result<MethodsBuild> buildMethods(const Options& options, std::span<const MethodSource> sources);

/// What gates are about: the cycles and the time of the slowest method, memory and file of all of them, and
/// the worst method's quality.
Measured measuredOf(const MethodsBuild& build, std::optional<int64_t> programBytes);

/// verify() of every method in the program of all of them, in order; state goes from one to the next in each
/// of the executions. `samples`: one list per method.
Result<std::vector<Verification>> verifyMethods(const MethodsBuild& build,
                                                std::span<const std::vector<quantize::Sample>> samples,
                                                const quantize::Progress& progress = nullptr,
                                                Simulation simulation = Simulation::Float);

}  // namespace carina::pipeline
