// SPDX-License-Identifier: Apache-2.0
#include "pipeline/ethosn_profile.hpp"

#include <algorithm>

#include "cpu/cost.hpp"
#include "ethosn/model/pass_work.hpp"

namespace carina::pipeline {
namespace {

void addAgent(const ethosn::Agent& agent, const ethosn::AgentStats& stats, EthosNPassCost& pass) {
  switch (agent.type()) {
    case ethosn::AgentType::IfmStreamer:
      pass.input.bytes += stats.bytes;
      pass.input.stripes += stats.stripes;
      break;
    case ethosn::AgentType::WeightStreamer:
      pass.weights.bytes += stats.bytes;
      pass.weights.stripes += stats.stripes;
      break;
    case ethosn::AgentType::OfmStreamer:
      pass.output.bytes += stats.bytes;
      pass.output.stripes += stats.stripes;
      break;
    case ethosn::AgentType::MceScheduler:
      pass.macs += stats.macs;
      pass.mceCycles += stats.cycles;
      pass.stripes = stats.stripes;
      break;
    case ethosn::AgentType::PleScheduler:
      pass.pleCycles += stats.cycles;
      pass.stripes = stats.stripes;
      break;
    case ethosn::AgentType::PleLoader:
      break;
  }
}

}  // namespace

uint64_t EthosNPartCost::sum(uint64_t EthosNPassCost::*member) const {
  uint64_t total = 0;
  for (const EthosNPassCost& pass : passes) total += pass.*member;
  return total;
}

uint64_t EthosNProfile::cycles() const {
  uint64_t total = 0;
  for (const EthosNPartCost& part : parts) total += part.sum(&EthosNPassCost::cycles);
  return total;
}

Result<EthosNPartCost> costOf(const EthosNPart& part, const ethosn::Target& target) {
  std::vector<std::vector<std::byte>> zeros;
  for (const ethosn::BufferInfo& input : part.compiled.inputs) zeros.emplace_back(input.size);
  const std::vector<ByteSpan> inputs(zeros.begin(), zeros.end());
  CARINA_TRY(const ethosn::RunResult run,
             ethosn::runNetwork(part.compiled, inputs, target, {.arithmetic = false, .hazards = false}));
  CARINA_TRY(const ByteSpan bytes, ethosn::commandStreamBytes(part.compiled));
  CARINA_TRY(const ethosn::CommandStream stream, ethosn::readCommandStream(bytes));
  EthosNPartCost cost;
  for (const ethosn::CompiledPass& pass : part.passes) {
    EthosNPassCost& made = cost.passes.emplace_back();
    made.operation = pass.operation;
    made.mce = pass.mce;
    made.ple = pass.ple;
    made.input.mapBytes = pass.inputBytes;
    made.input.sramBytes = pass.residentInputBytes;
    made.output.mapBytes = pass.outputBytes;
    made.output.sramBytes = pass.outputStays ? pass.outputBytes : 0;
    made.weights.mapBytes = made.streamBytes = pass.streamBytes;
    made.plainWeightBytes = pass.weightBytes;
    for (uint32_t agent = pass.firstAgent; agent < pass.endAgent; ++agent)
      addAgent(stream.agents[agent], run.stats.agents[agent], made);
    made.cycles = ethosn::passCycles(ethosn::workOfAgents(stream, run.stats, pass.firstAgent, pass.endAgent));
  }
  cost.sramBytes = run.stats.sramBytes;
  cost.constantBytes = part.compiled.constantDma.size();
  cost.intermediateBytes = ethosn::intermediateBytes(part.compiled);
  cost.commandBytes = part.compiled.constantControlUnit.size();
  return cost;
}

Result<EthosNProfile> profileEthosN(const Build& build) {
  CARINA_CHECK(build.ethosN.has_value(), "the build is for an Ethos-N");
  EthosNProfile profile;
  profile.file = build.options.model;
  profile.target = *build.ethosN;
  for (const EthosNPart& part : build.ethosNParts) {
    CARINA_TRY(EthosNPartCost cost, costOf(part, *build.ethosN));
    profile.parts.push_back(std::move(cost));
  }
  profile.refusals = build.partitioned.refusals;
  for (const ir::Node* node : build.computed.graph.nodes()) {
    if (!node->def().name.starts_with("program.")) profile.cpuCycles += cpu::estimateCycles(*node);
  }
  profile.warnings = build.warnings;
  profile.times = build.times;
  return profile;
}

}  // namespace carina::pipeline
