// SPDX-License-Identifier: Apache-2.0
#include "precision/simulator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/parallel.hpp"
#include "quantize/sqnr.hpp"

namespace carina::precision {

double decibelsOf(const Noise& noise) {
  double worst = 0;
  for (const double each : noise) worst = std::max(worst, each);
  return worst > 0 ? -10 * std::log10(worst) : std::numeric_limits<double>::infinity();
}

double noiseAt(double decibels) {
  return std::pow(10.0, -decibels / 10);
}

Rounded roundedBy(const quantize::SwitchedNetwork& network, const Raised& raised) {
  Rounded rounded;
  for (const bool unit : raised) rounded.push_back(!unit);
  for (const quantize::PrecisionEdge& edge : network.edges)
    rounded.push_back(raised[edge.from] && !raised[edge.to]);
  return rounded;
}

Result<Simulator> Simulator::create(quantize::SwitchedNetwork network,
                                    std::vector<quantize::Sample> samples) {
  Simulator simulator;
  simulator.network_ = std::make_unique<quantize::SwitchedNetwork>(std::move(network));
  CARINA_TRY(aten::Executor executor, aten::Executor::create(simulator.network_->graph));
  simulator.executor_ = std::make_unique<aten::Executor>(std::move(executor));
  simulator.samples_ = std::move(samples);
  const Rounded nothing(simulator.network_->units.size() + simulator.network_->edges.size(), false);
  CARINA_RETURN_IF_ERROR(simulator.moveTo(nothing));
  const size_t outputs = simulator.network_->graph.outputs().size();
  std::vector<double> signals(outputs, 0);
  for (const aten::KeptRun& run : simulator.runs_) {
    CARINA_TRY(std::vector<Tensor> expected, simulator.executor_->rerun(run, run.standIns));
    for (size_t k = 0; k < outputs; ++k) {
      if (expected[k].dtype() != DType::Float32) continue;
      quantize::Sqnr sqnr;
      sqnr.add(expected[k], expected[k]);
      signals[k] += sqnr.signal;
    }
    simulator.expected_.push_back(std::move(expected));
  }
  for (size_t k = 0; k < outputs; ++k) {
    if (!(signals[k] > 0)) continue;
    simulator.compared_.push_back(k);
    simulator.signals_.push_back(signals[k]);
  }
  return simulator;
}

aten::Replacements Simulator::standInsOf(const Rounded& rounded) const {
  aten::Replacements standIns;
  for (const quantize::RoundingSwitch& each : network_->switches) {
    if (!rounded[each.site]) standIns.emplace(each.dequantize, each.real);
  }
  return standIns;
}

Status Simulator::moveTo(const Rounded& rounded) {
  const aten::Replacements standIns = standInsOf(rounded);
  runs_.clear();
  runs_.resize(samples_.size());
  std::vector<Status> states(samples_.size());
  parallelFor(samples_.size(), [&](size_t i) {
    auto run = executor_->keepRun(samples_[i], standIns);
    if (run)
      runs_[i] = std::move(*run);
    else
      states[i] = std::move(run).error();
  });
  for (Status& state : states) CARINA_RETURN_IF_ERROR(std::move(state));
  return {};
}

Result<Noise> Simulator::noiseOf(const Raised& raised) const {
  const Rounded rounded = roundedBy(*network_, raised);
  CARINA_TRY(std::vector<Noise> noise, noises({&rounded, 1}));
  return std::move(noise.front());
}

Result<std::vector<Noise>> Simulator::noises(std::span<const Rounded> choices) const {
  const size_t samples = samples_.size();
  std::vector<Noise> parts(choices.size() * samples);  // noise of one sample, not yet divided by the signal
  std::vector<Status> states(parts.size());
  parallelFor(parts.size(), [&](size_t i) {
    const size_t sample = i % samples;
    auto outputs = executor_->rerun(runs_[sample], standInsOf(choices[i / samples]));
    if (!outputs) {
      states[i] = std::move(outputs).error();
      return;
    }
    for (const size_t k : compared_) {
      quantize::Sqnr sqnr;
      sqnr.add(expected_[sample][k], (*outputs)[k]);
      parts[i].push_back(sqnr.noise);
    }
  });
  for (Status& state : states) CARINA_RETURN_IF_ERROR(std::move(state));
  std::vector<Noise> noises(choices.size(), Noise(compared_.size(), 0));
  for (size_t i = 0; i < parts.size(); ++i) {
    for (size_t k = 0; k < compared_.size(); ++k) noises[i / samples][k] += parts[i][k] / signals_[k];
  }
  return noises;
}

}  // namespace carina::precision
