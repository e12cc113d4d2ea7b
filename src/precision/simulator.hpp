// SPDX-License-Identifier: Apache-2.0
// What rounding some tensors of a network does to its outputs, by simulation: nothing is calibrated or
// compiled anew, and of every run only what differs from a known one is computed.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "aten/executor.hpp"
#include "quantize/precision_units.hpp"

namespace carina::precision {

/// Per unit: whether it keeps its numbers (16 bits) or rounds them to int8 codes.
using Raised = std::vector<bool>;
/// Per site (quantize::RoundingSwitch): whether its tensors are rounded.
using Rounded = std::vector<bool>;
/// What a choice of units rounds: what the others make, and what they read from those.
Rounded roundedBy(const quantize::SwitchedNetwork& network, const Raised& raised);
/// Energy of the error over that of the float result, per output that is compared.
using Noise = std::vector<double>;

/// The decibels of the worst output; infinite without error.
double decibelsOf(const Noise& noise);
/// The noise at which an output has these decibels.
double noiseAt(double decibels);

class Simulator {
 public:
  /// Errors: what the executor cannot run.
  static Result<Simulator> create(quantize::SwitchedNetwork network, std::vector<quantize::Sample> samples);

  const quantize::SwitchedNetwork& network() const { return *network_; }
  /// Float outputs that are not 0 everywhere: what can be compared, by index.
  const std::vector<size_t>& compared() const { return compared_; }

  /// One per choice, in order. Choices run side by side.
  Result<std::vector<Noise>> noises(std::span<const Rounded> choices) const;
  Result<Noise> noiseOf(const Raised& raised) const;
  /// What choices are likely to be near to: they cost the less the fewer tensors they change.
  Status moveTo(const Rounded& rounded);

 private:
  Simulator() = default;
  aten::StandIns standInsOf(const Rounded& rounded) const;

  std::unique_ptr<quantize::SwitchedNetwork> network_;  // the executor refers to its graph
  std::unique_ptr<aten::Executor> executor_;
  std::vector<quantize::Sample> samples_;
  std::vector<std::vector<Tensor>> expected_;  // per sample
  std::vector<aten::KeptRun> runs_;            // per sample
  std::vector<size_t> compared_;
  std::vector<double> signals_;  // per compared output
};

}  // namespace carina::precision
