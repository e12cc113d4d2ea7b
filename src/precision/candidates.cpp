// SPDX-License-Identifier: Apache-2.0
#include "precision/candidates.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "aten/executor.hpp"
#include "base/parallel.hpp"
#include "device/run.hpp"
#include "pipeline/profile.hpp"
#include "pipeline/simulated_values.hpp"

namespace carina::precision {
namespace {

/// Programs run on this many times the samples of simulations, and the decibels reported for them never
/// exceed what `carina verify` finds on its first samples.
constexpr size_t kProvingEach = 4, kFirst = 8;

std::vector<quantize::Sample> evenly(const std::vector<quantize::Sample>& samples, size_t most) {
  const size_t count = std::min(most, samples.size());
  std::vector<quantize::Sample> chosen;
  for (size_t i = 0; i < count; ++i) chosen.push_back(samples[i * samples.size() / count]);
  return chosen;
}

Result<std::vector<std::vector<Tensor>>> outputsOf(const ir::Graph& graph,
                                                   const std::vector<quantize::Sample>& samples,
                                                   const std::shared_ptr<WorkBudget>& loops) {
  CARINA_TRY(const aten::Executor executor, aten::Executor::create(graph, aten::Folding::All, loops.get()));
  std::vector<std::vector<Tensor>> outputs(samples.size());
  std::vector<Status> states(samples.size());
  parallelFor(samples.size(), [&](size_t i) {
    auto result = executor.run(samples[i]);
    if (result)
      outputs[i] = std::move(*result);
    else
      states[i] = std::move(result).error();
  });
  for (Status& state : states) CARINA_RETURN_IF_ERROR(std::move(state));
  return outputs;
}

/// Noise over signal of each output that has a signal: over all samples, or over the samples with these
/// indices if that is higher.
Noise noiseOf(const std::vector<std::vector<quantize::Sqnr>>& energies, const std::vector<size_t>& some) {
  Noise noise;
  if (energies.empty()) return noise;
  for (size_t k = 0; k < energies.front().size(); ++k) {
    quantize::Sqnr all, part;
    const auto add = [k](quantize::Sqnr& sum, const std::vector<quantize::Sqnr>& sample) {
      sum.signal += sample[k].signal;
      sum.noise += sample[k].noise;
    };
    for (const auto& sample : energies) add(all, sample);
    for (const size_t i : some) add(part, energies[i]);
    if (!(all.signal > 0)) continue;
    noise.push_back(all.noise / all.signal);
    if (part.signal > 0) noise.back() = std::max(noise.back(), part.noise / part.signal);
  }
  return noise;
}

}  // namespace

quantize::RulesFile rulesFor(const quantize::RulesFile& base, const quantize::SwitchedNetwork& network,
                             const Raised& raised) {
  quantize::RulesFile rules = base;
  const auto add = [&](const std::string& node, quantize::Precision precision) {
    quantize::Rule rule;
    rule.by = quantize::Rule::By::Node;
    rule.pattern = node;
    rule.overrides.precision = precision;
    rules.rules.push_back(std::move(rule));
  };
  // Otherwise, units that join values would follow the first of them.
  std::vector<bool> drawn(raised.size(), false);
  for (const quantize::PrecisionEdge& edge : network.edges) {
    if (raised[edge.from] && !raised[edge.to] && network.units[edge.to].joins) drawn[edge.to] = true;
  }
  for (size_t u = 0; u < raised.size(); ++u) {
    if (!raised[u] && !drawn[u]) continue;
    for (const std::string& node : network.units[u].nodes)
      add(node, raised[u] ? quantize::Precision::Int16x8 : quantize::Precision::Int8);
  }
  return rules;
}

std::map<std::string, double> cyclesByNode(const pipeline::Build& build) {
  std::map<std::string, double> cycles;
  for (const pipeline::ProfiledPart& part : pipeline::profileBuild(build).parts) {
    for (const pipeline::Layer& layer : part.layers) cycles[layer.name] += static_cast<double>(layer.cycles);
  }
  return cycles;
}

Result<Trials> Trials::create(const pipeline::Options& options, const pipeline::FloatNetwork& network,
                              size_t mostJudged, const Labelled* labelled) {
  Trials trials(options, network, labelled);
  trials.judged_ = evenly(network.samples, mostJudged);
  CARINA_TRY(trials.expected_, outputsOf(network.graph, trials.judged_, network.quantizer.loops));
  const size_t proving = std::min(network.samples.size(), kProvingEach * mostJudged);
  trials.proving_.assign(network.samples.begin(),
                         network.samples.begin() + static_cast<std::ptrdiff_t>(proving));
  CARINA_TRY(trials.provingExpected_, outputsOf(network.graph, trials.proving_, network.quantizer.loops));
  return trials;
}

Trials::Energies Trials::compare(const std::vector<std::vector<Tensor>>& found,
                                 const std::vector<std::vector<Tensor>>& expected) {
  Energies energies(found.size());
  for (size_t i = 0; i < found.size(); ++i) {
    energies[i].resize(found[i].size());
    for (size_t k = 0; k < found[i].size(); ++k) {
      if (isFloat(expected[i][k].dtype()) && isFloat(found[i][k].dtype()))
        energies[i][k].add(expected[i][k], found[i][k]);
    }
  }
  return energies;
}

Status Trials::runProgram(Candidate& candidate) const {
  const pipeline::Build& build = *candidate.build;
  if (!build.state.empty()) return {};
  CARINA_TRY(const std::string program, pte::writeProgram(build.program));
  device::RunOptions running;
  running.configFile = options_->configFile;
  running.trusted = true;
  CARINA_TRY(device::Runner runner, device::Runner::open(asBytes(program), running));
  std::vector<std::vector<Tensor>> outputs;
  for (const quantize::Sample& sample : proving_) {
    CARINA_TRY(device::RunOutcome outcome, runner.run(pipeline::programSample(build.graph(), sample)));
    outputs.push_back(std::move(outcome.outputs));
  }
  std::vector<size_t> first(std::min(kFirst, proving_.size()));
  std::iota(first.begin(), first.end(), size_t{0});
  const Noise noise = noiseOf(compare(outputs, provingExpected_), first);
  if (noise.size() != candidate.noise.size() || noise.empty()) return {};
  candidate.program = decibelsOf(noise);
  candidate.measured.sqnr = candidate.surest();
  return {};
}

Result<Candidate> Trials::make(quantize::RulesFile rules) const {
  pipeline::Options options = *options_;
  options.keepSources = options.estimateAccuracy = options.measureSqnr = false;
  options.dump = nullptr;
  options.progress = nullptr;
  Candidate candidate;
  std::vector<pipeline::StageTime> times;
  CARINA_TRY(pipeline::Front front, pipeline::quantizeNetwork(options, *network_, rules, times));
  CARINA_TRY(const auto found, outputsOf(front.quantized, judged_, network_->quantizer.loops));
  const Energies energies = compare(found, expected_);
  // The samples on which `compile` estimates accuracy: a gate that the search satisfies has to hold there as
  // well.
  candidate.noise = noiseOf(energies, {0, energies.size() / 2});
  candidate.decibels = decibelsOf(candidate.noise);
  if (!candidate.noise.empty())
    front.accuracy = quantize::Accuracy{candidate.decibels, candidate.noise.size(), judged_.size()};
  if (labelled_) {
    CARINA_TRY(candidate.top1, labelled_->top1(front.quantized));
  }
  CARINA_TRY(pipeline::Build build, pipeline::buildFrom(std::move(front), options, std::move(times)));
  CARINA_TRY(const std::string program, pte::writeProgram(build.program));
  candidate.measured = pipeline::measuredOf(build, static_cast<int64_t>(program.size()));
  candidate.measured.top1 = candidate.top1;
  candidate.build = std::make_unique<pipeline::Build>(std::move(build));
  candidate.rules = std::move(rules);
  return candidate;
}

Status Trials::describe(Candidate& candidate) const {
  if (!options_->measureSqnr && !options_->dump) return {};
  pipeline::Options options = *options_;
  options.estimateAccuracy = false;
  options.progress = nullptr;
  std::vector<pipeline::StageTime> times;
  CARINA_TRY(pipeline::Front front, pipeline::quantizeNetwork(options, *network_, candidate.rules, times));
  front.accuracy = candidate.build->accuracy;
  CARINA_TRY(*candidate.build, pipeline::buildFrom(std::move(front), options, std::move(times)));
  return {};
}

Result<Noise> Trials::noiseWith(const quantize::RulesFile& rules, bool heldOut) const {
  std::vector<quantize::Sample> calibrating, judging;
  for (size_t i = 0; i < network_->samples.size(); ++i)
    (heldOut && i % 2 == 1 ? judging : calibrating).push_back(network_->samples[i]);
  if (!heldOut) judging = judged_;
  judging = evenly(judging, judged_.size());
  const quantize::Options quantizer = pipeline::quantizerOf(*options_, *network_, rules);
  CARINA_TRY(const quantize::Quantized quantized,
             quantize::quantize(network_->graph.clone(), quantizer, calibrating));
  CARINA_TRY(const auto expected, outputsOf(network_->graph, judging, quantizer.loops));
  CARINA_TRY(const auto found, outputsOf(quantized.graph, judging, quantizer.loops));
  return noiseOf(compare(found, expected), {});
}

}  // namespace carina::precision
