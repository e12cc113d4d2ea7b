// SPDX-License-Identifier: Apache-2.0
#include "pipeline/measured_ways.hpp"

#include "device/run.hpp"
#include "pipeline/simulated_values.hpp"

namespace carina::pipeline {
namespace {

Status addCall(const Build& build, const device::DelegateRun& run, MeasuredPaths& measured) {
  const auto& instructions = build.program.methods.front().chains.front().instructions;
  const auto part =
      static_cast<size_t>(std::get<pte::DelegateCall>(instructions.at(run.instruction)).delegate);
  ++measured.calls[part];
  const compiler::CompiledProgram& compiled = build.compiled[part];
  if (compiled.branches.empty()) return {};
  CARINA_TRY(const ProbeResult probed, probe(compiled, run.inputs));
  for (size_t i = 0; i < probed.ways.size(); ++i) {
    measured.ways[part][i].first += probed.ways[i].first;
    measured.ways[part][i].second += probed.ways[i].second;
  }
  return {};
}

}  // namespace

Result<MeasuredPaths> measurePaths(const Build& build, std::span<const quantize::Sample> samples) {
  MeasuredPaths measured;
  measured.calls.resize(build.compiled.size());
  for (const compiler::CompiledProgram& part : build.compiled)
    measured.ways.emplace_back(part.branches.size());
  CARINA_TRY(const std::string program, pte::writeProgram(build.program));
  device::RunOptions options;
  options.configFile = build.options.configFile;
  options.trusted = build.options.trusted;
  options.keepDelegateIo = true;
  CARINA_TRY(device::Runner runner, device::Runner::open(asBytes(program), options));
  for (const quantize::Sample& sample : samples) {
    CARINA_TRY(const device::RunOutcome outcome, runner.run(programSample(build.graph(), sample)));
    measured.cycles.push_back(outcome.stats.npuCycles);
    for (const device::DelegateRun& run : outcome.stats.delegates)
      CARINA_RETURN_IF_ERROR(addCall(build, run, measured));
  }
  return measured;
}

}  // namespace carina::pipeline
