// SPDX-License-Identifier: Apache-2.0
// The expected cost and accuracy of a choice of precision, and the cheapest choice by that. The effects of
// single units are simulated; where they do not add up, they are simulated again around the choice itself.
#pragma once

#include <optional>
#include <vector>

#include "precision/candidates.hpp"
#include "precision/search.hpp"
#include "precision/simulator.hpp"

namespace carina::precision {

/// A choice, and the model's prediction for it.
struct Proposal {
  Raised raised;
  double cycles = 0;
  double decibels = 0;
  double gap = 0;  // how much more than the best choice it may cost by the model, as a share of its cycles
};

/// Measurements of one unit.
struct Sensitivity {
  double alone = 0;   // dB of the worst output if only this unit's tensors are rounded
  double gained = 0;  // share of int8's noise that raising only this unit removes
  double cycles = 0;  // of raising it
};

class Model {
 public:
  /// Simulates every unit. `narrow` and `wide`: everything in int8, everything in 16x8.
  static Result<Model> create(Simulator simulator, const Candidate& narrow, const Candidate& wide);

  /// The cheapest choice with at least these decibels; empty if the model knows none.
  Result<std::optional<Proposal>> cheapest(double decibels);
  /// The choice with the most decibels for at most these cycles; empty if the model knows none.
  Result<std::optional<Proposal>> best(double cycles);

  /// Learns from the program of a proposal: noise that the simulation omits, cycles of conversions.
  Status learn(const Proposal& proposal, const Candidate& found);

  const quantize::SwitchedNetwork& network() const { return simulator_.network(); }
  const std::vector<Sensitivity>& sensitivities() const { return sensitivities_; }

 private:
  explicit Model(Simulator simulator) : simulator_(std::move(simulator)) {}
  Status measure();
  void setCosts(const Candidate& narrow, const Candidate& wide);
  /// Measures the effects of single sites again, around this choice.
  Status center(const Raised& raised);
  Noise expected(const Raised& raised) const;
  Problem problemFor(double decibels, double share) const;
  double cyclesOf(const Raised& raised) const;
  double convertedBy(const Raised& raised) const;  // elements

  Simulator simulator_;
  std::vector<Sensitivity> sensitivities_;
  // Simulated noise is about offset_ plus the effects of the sites that round.
  Noise offset_;
  std::vector<Noise> effects_;  // per site
  std::vector<Noise> alone_;    // the effects of sites if nothing else rounds
  size_t centered_ = 0;
  Noise floor_;                 // noise that the simulation omits: rounded weights, 16 bits
  std::vector<double> factor_;  // of simulated noise, in the last program built
  double noiseLeft(double decibels, size_t k) const;  // what a goal leaves to the simulation
  double narrowCycles_ = 0, narrowDecibels_ = 0, wideDecibels_ = 0;
  std::vector<double> costs_;  // cycles per unit
  double conversion_ = 0;      // cycles per converted element
  double seenSquares_ = 0, seenProducts_ = 0;
};

}  // namespace carina::precision
