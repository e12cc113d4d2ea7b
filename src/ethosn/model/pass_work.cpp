// SPDX-License-Identifier: Apache-2.0
#include "ethosn/model/pass_work.hpp"

#include <algorithm>

namespace carina::ethosn {
namespace {

void addTransfers(const AgentStats& agent, Transfers& to) {
  to.bytes += agent.bytes;
  to.commands += agent.stripes;
}

void addAgent(const Agent& agent, const AgentStats& stats, PassWork& pass) {
  switch (agent.type()) {
    case AgentType::IfmStreamer:
      return addTransfers(stats, pass.input);
    case AgentType::WeightStreamer:
      return addTransfers(stats, pass.weights);
    case AgentType::OfmStreamer:
      return addTransfers(stats, pass.output);
    case AgentType::MceScheduler:
      pass.mceCycles += stats.cycles;
      pass.mceStripes += stats.stripes;
      return;
    case AgentType::PleScheduler: {
      pass.pleCycles += stats.cycles;
      pass.pleStripes += stats.stripes;
      const auto kernel = pleKernel(std::get<PleScheduler>(agent.data).pleKernel);
      if (kernel) pass.pleOverhead = pleStripeOverhead(kernel->kernel.operation);
      return;
    }
    case AgentType::PleLoader:
      return;
  }
}

}  // namespace

PassWork workOfAgents(const CommandStream& stream, const RunStats& stats, size_t first, size_t end) {
  PassWork pass;
  for (size_t i = first; i < end; ++i) addAgent(stream.agents[i], stats.agents[i], pass);
  const bool copies = pass.pleStripes == 0;
  const uint64_t stripes = copies ? 1 : std::max(pass.mceStripes, pass.pleStripes);
  for (Transfers* transfers : {&pass.input, &pass.weights, &pass.output}) transfers->stripes = stripes;
  return pass;
}

std::vector<size_t> passBounds(const CommandStream& stream) {
  std::vector<size_t> bounds = {0};
  bool ended = false;  // the agents since the last bound include a PLE or a store
  for (size_t i = 0; i < stream.agents.size(); ++i) {
    const AgentType type = stream.agents[i].type();
    if (ended && type != AgentType::OfmStreamer) {
      bounds.push_back(i);
      ended = false;
    }
    ended |= type == AgentType::PleScheduler || type == AgentType::OfmStreamer;
  }
  if (bounds.back() < stream.agents.size()) bounds.push_back(stream.agents.size());
  return bounds;
}

std::vector<PassWork> passesOf(const CommandStream& stream, const RunStats& stats) {
  std::vector<PassWork> passes;
  const std::vector<size_t> bounds = passBounds(stream);
  for (size_t i = 1; i < bounds.size(); ++i)
    passes.push_back(workOfAgents(stream, stats, bounds[i - 1], bounds[i]));
  return passes;
}

}  // namespace carina::ethosn
