// SPDX-License-Identifier: Apache-2.0
// Choices of precision as actual programs: quantized with all samples, simulated, compiled.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/float_network.hpp"
#include "pipeline/gates.hpp"
#include "precision/labelled.hpp"
#include "precision/simulator.hpp"
#include "quantize/rules_file.hpp"

namespace carina::precision {

struct Candidate {
  quantize::RulesFile rules;
  Raised raised;  // empty for 16x8 throughout
  size_t raisedUnits = 0;
  Noise noise;          // per compared output
  double decibels = 0;  // of the worst output
  /// The same for the program on the NPU model, once it has been run.
  std::optional<double> program;
  std::optional<double> top1;  // percent
  pipeline::Measured measured;
  std::unique_ptr<pipeline::Build> build;

  int64_t cycles() const { return measured.cycles.value_or(0); }
  /// Simulated, or the program's if that is lower.
  double surest() const { return program ? std::min(decibels, *program) : decibels; }
};

/// The user's rules, the global settings, and a rule for every unit that is raised.
quantize::RulesFile rulesFor(const quantize::RulesFile& base, const quantize::SwitchedNetwork& network,
                             const Raised& raised);

/// NPU cycles of a compiled network by source node.
std::map<std::string, double> cyclesByNode(const pipeline::Build& build);

/// Builds candidates of one network for one target.
class Trials {
 public:
  /// `mostJudged`: the largest number of samples on which results are compared; more are more reliable.
  static Result<Trials> create(const pipeline::Options& options, const pipeline::FloatNetwork& network,
                               size_t mostJudged, const Labelled* labelled);

  /// Quantizes, simulates and compiles. Errors: those of quantization and compilation.
  Result<Candidate> make(quantize::RulesFile rules) const;
  /// Runs the program on the NPU model: sets `program`, and its SQNR for gates. Does nothing if the program
  /// returns integers or keeps state, which cannot be compared with the results of the float network.
  Status runProgram(Candidate& candidate) const;
  /// Completes the program of a candidate with what else the options ask for: dumps, and the SQNR of all
  /// tensors.
  Status describe(Candidate& candidate) const;
  /// Noise of the outputs only, without compilation. `heldOut`: every other sample calibrates, the rest is
  /// compared.
  Result<Noise> noiseWith(const quantize::RulesFile& rules, bool heldOut) const;

  const std::vector<quantize::Sample>& judged() const { return judged_; }
  size_t proving() const { return proving_.size(); }
  size_t numSamples() const { return network_->samples.size(); }

 private:
  Trials(const pipeline::Options& options, const pipeline::FloatNetwork& network, const Labelled* labelled)
      : options_(&options), network_(&network), labelled_(labelled) {}
  /// Signal and noise of each sample and output.
  using Energies = std::vector<std::vector<quantize::Sqnr>>;
  static Energies compare(const std::vector<std::vector<Tensor>>& found,
                          const std::vector<std::vector<Tensor>>& expected);

  const pipeline::Options* options_;
  const pipeline::FloatNetwork* network_;
  const Labelled* labelled_;
  std::vector<quantize::Sample> judged_;
  std::vector<std::vector<Tensor>> expected_;  // of the judged samples
  std::vector<quantize::Sample> proving_;      // the first ones; for programs
  std::vector<std::vector<Tensor>> provingExpected_;
};

}  // namespace carina::precision
