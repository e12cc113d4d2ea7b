// SPDX-License-Identifier: Apache-2.0
// The effect that rounding some tensors of a network has on its outputs, by simulation: nothing is calibrated
// or compiled again, and each run computes only what differs from a known one.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "aten/executor.hpp"
#include "quantize/precision_units.hpp"

namespace carina::precision {

/// Per unit: whether it keeps its values (16 bits) or rounds them to int8 codes.
using Raised = std::vector<bool>;
/// Per site (quantize::RoundingSwitch): whether its tensors are rounded.
using Rounded = std::vector<bool>;
/// The sites that a choice of units rounds: what the others produce, and what they read from those.
Rounded roundedBy(const quantize::SwitchedNetwork& network, const Raised& raised);
/// Energy of the error relative to that of the float result, per compared output.
using Noise = std::vector<double>;

/// The decibels of the worst output; infinite if there is no error.
double decibelsOf(const Noise& noise);
/// The noise at which an output has these decibels.
double noiseAt(double decibels);

class Simulator {
 public:
  /// Errors: what the executor cannot run.
  static Result<Simulator> create(quantize::SwitchedNetwork network, std::vector<quantize::Sample> samples);

  const quantize::SwitchedNetwork& network() const { return *network_; }
  /// Indices of the outputs that can be compared: float, and not 0 everywhere.
  const std::vector<size_t>& compared() const { return compared_; }

  /// One per choice, in order. Choices run in parallel.
  Result<std::vector<Noise>> noises(std::span<const Rounded> choices) const;
  Result<Noise> noiseOf(const Raised& raised) const;
  /// Sets the choice that later ones are likely to be close to: the fewer tensors they change, the less they
  /// cost.
  Status moveTo(const Rounded& rounded);

 private:
  Simulator() = default;
  aten::Replacements standInsOf(const Rounded& rounded) const;

  std::unique_ptr<quantize::SwitchedNetwork> network_;  // the executor refers to its graph
  std::unique_ptr<aten::Executor> executor_;
  std::vector<quantize::Sample> samples_;
  std::vector<std::vector<Tensor>> expected_;  // per sample
  std::vector<aten::KeptRun> runs_;            // per sample
  std::vector<size_t> compared_;
  std::vector<double> signals_;  // per compared output
};

}  // namespace carina::precision
