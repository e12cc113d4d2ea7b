// SPDX-License-Identifier: Apache-2.0
#include "pipeline/ethosn_profile.hpp"

#include <algorithm>

#include "base/file.hpp"
#include "cpu/cost.hpp"
#include "ethosn/model/pass_work.hpp"
#include "ethosn/stream/program_blob.hpp"
#include "pipeline/ethosn.hpp"
#include "pipeline/file_kind.hpp"

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
    case ethosn::AgentType::PleScheduler: {
      pass.pleCycles += stats.cycles;
      pass.plePatches += stats.patches;
      pass.stripes = stats.stripes;
      const auto kernel = ethosn::pleKernel(std::get<ethosn::PleScheduler>(agent.data).pleKernel);
      if (kernel) pass.pleOperation = kernel->kernel.operation;
      break;
    }
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

uint64_t EthosNProfile::overlappedCycles() const {
  uint64_t total = 0;
  for (const EthosNPartCost& part : parts) total += part.overlappedCycles;
  return total;
}

namespace {

Result<EthosNPartCost> costOfPasses(const ethosn::CompiledNetwork& network,
                                    const ethosn::CommandStream& stream,
                                    std::span<const ethosn::CompiledPass> passes,
                                    const ethosn::Target& target) {
  std::vector<std::vector<std::byte>> zeros;
  for (const ethosn::BufferInfo& input : network.inputs) zeros.emplace_back(input.size);
  const std::vector<ByteSpan> inputs(zeros.begin(), zeros.end());
  CARINA_TRY(const ethosn::RunResult run,
             ethosn::runNetwork(network, inputs, target, {.arithmetic = false, .hazards = false}));
  EthosNPartCost cost;
  for (const ethosn::CompiledPass& pass : passes) {
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
  cost.overlappedCycles = run.stats.cycles;
  cost.constantBytes = network.constantDma.size();
  cost.intermediateBytes = ethosn::intermediateBytes(network);
  cost.commandBytes = network.constantControlUnit.size();
  return cost;
}

/// Names in files may contain any bytes.
std::string printable(std::string name) {
  for (char& c : name) {
    if (c < ' ' || c > '~') c = '?';
  }
  return name;
}

/// What the agents [first, end) reveal about a pass.
ethosn::CompiledPass passOfAgents(const ethosn::CompiledNetwork& network, const ethosn::CommandStream& stream,
                                  size_t first, size_t end) {
  ethosn::CompiledPass pass;
  pass.firstAgent = static_cast<uint32_t>(first);
  pass.endAgent = static_cast<uint32_t>(end);
  std::string output;
  const auto bufferOf = [&network](uint16_t id) {
    const auto found = ethosn::findBuffer(network, id);
    return found ? found->info : nullptr;
  };
  for (size_t i = first; i < end; ++i) {
    const auto& data = stream.agents[i].data;
    if (const auto* in = std::get_if<ethosn::Agent::Ifm>(&data)) {
      if (const auto* info = bufferOf(in->buffer)) pass.inputBytes += info->size;
    } else if (const auto* weights = std::get_if<ethosn::WeightStreamer>(&data)) {
      if (const auto* info = bufferOf(weights->buffer)) {
        pass.streamBytes += info->size;
        pass.operation = printable(info->name);
      }
    } else if (const auto* out = std::get_if<ethosn::Agent::Ofm>(&data)) {
      if (const auto* info = bufferOf(out->buffer)) {
        pass.outputBytes += info->size;
        output = printable(info->name);
      }
    } else if (const auto* mce = std::get_if<ethosn::MceScheduler>(&data)) {
      pass.mce = mce->operation == ethosn::MceOperation::Depthwise        ? "depthwise"
                 : mce->operation == ethosn::MceOperation::FullyConnected ? "vector_product"
                                                                          : "convolution";
    } else if (const auto* ple = std::get_if<ethosn::PleScheduler>(&data)) {
      if (const auto kernel = ethosn::pleKernel(ple->pleKernel))
        pass.ple = ethosn::pleOperationName(kernel->kernel.operation);
    }
  }
  if (pass.operation.empty()) pass.operation = output;
  return pass;
}

Status addProgram(const ethosn::CompiledNetwork& network, const ethosn::Target& target,
                  EthosNProfile& profile) {
  CARINA_TRY(const ByteSpan bytes, ethosn::commandStreamBytes(network));
  CARINA_TRY(const ethosn::CommandStream stream, ethosn::readCommandStream(bytes));
  const std::vector<size_t> bounds = ethosn::passBounds(stream);
  std::vector<ethosn::CompiledPass> passes;
  for (size_t i = 1; i < bounds.size(); ++i) {
    passes.push_back(passOfAgents(network, stream, bounds[i - 1], bounds[i]));
    // It has neither weights nor an output of its own in DRAM.
    if (passes.back().operation.empty()) passes.back().operation = fmt::format("pass {}", i - 1);
  }
  CARINA_TRY(EthosNPartCost cost, costOfPasses(network, stream, passes, target));
  profile.parts.push_back(std::move(cost));
  profile.target = target;
  return {};
}

Status addProgramParts(ByteSpan bytes, const Options& options, EthosNProfile& profile) {
  CARINA_TRY(const pte::Program program, pte::readProgram(bytes));
  for (const pte::Method& method : program.methods) {
    for (const pte::Delegate& delegate : method.delegates) {
      if (delegate.id != ethosn::kProgramBackend) continue;
      CARINA_TRY(const ethosn::ProgramBlob blob, ethosn::readProgramBlob(delegate.blob));
      CARINA_TRY(const ethosn::Variant* variant, ethosn::findVariant(blob.target));
      CARINA_TRY(const ethosn::Target target, ethosn::makeTarget(*variant, blob.sramBytes));
      if (ethosn::isEthosNName(options.target)) {
        CARINA_TRY(const ethosn::Target wanted, ethosn::findTarget(options.target));
        if (ethosn::nameOf(wanted) != ethosn::nameOf(target))
          return fail(Code::OtherNpu, "the program is for {}, not for {}", ethosn::nameOf(target),
                      ethosn::nameOf(wanted))
              .at("--target")
              .withRemedy("leave it out, or compile the network for that variant");
      }
      CARINA_RETURN_IF_ERROR(addProgram(blob.network, target, profile));
    }
  }
  return {};
}

}  // namespace

Result<EthosNPartCost> costOf(const EthosNPart& part, const ethosn::Target& target) {
  CARINA_TRY(const ByteSpan bytes, ethosn::commandStreamBytes(part.compiled));
  CARINA_TRY(const ethosn::CommandStream stream, ethosn::readCommandStream(bytes));
  return costOfPasses(part.compiled, stream, part.passes, target);
}

bool isEthosNProgram(const std::filesystem::path& file) {
  const auto mapped = MappedFile::open(file);
  if (!mapped) return false;
  const ByteSpan bytes = (*mapped)->bytes();
  if (ethosn::isCompiledNetwork(bytes)) return true;
  if (fileKind(bytes, file) != FileKind::Program) return false;
  const auto program = pte::readProgram(bytes);
  if (!program) return false;
  for (const pte::Method& method : program->methods) {
    for (const pte::Delegate& delegate : method.delegates) {
      if (delegate.id == ethosn::kProgramBackend) return true;
    }
  }
  return false;
}

Result<EthosNProfile> profileEthosNProgram(const std::filesystem::path& file, const Options& options) {
  EthosNProfile profile;
  profile.file = file;
  CARINA_TRY(const auto mapped, MappedFile::open(file));
  const ByteSpan bytes = mapped->bytes();
  const auto read = [&]() -> Status {
    if (!ethosn::isCompiledNetwork(bytes)) return addProgramParts(bytes, options, profile);
    CARINA_TRY(const EthosNProgram program,
               readEthosN(bytes, ethosn::isEthosNName(options.target) ? options.target : ""));
    const ethosn::Variant& variant = program.variant != nullptr ? *program.variant : ethosn::allVariants()[1];
    return addProgram(program.network, ethosn::largestTarget(variant), profile);
  };
  if (Status status = read(); !status.ok()) return std::move(status).error().inFile(file.string());
  return profile;
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
