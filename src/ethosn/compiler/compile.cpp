// SPDX-License-Identifier: Apache-2.0
#include "ethosn/compiler/compile.hpp"

#include <algorithm>

#include "ethosn/compiler/emit.hpp"
#include "ethosn/compiler/planned.hpp"
#include "ethosn/support/support.hpp"
#include "packing/packing.hpp"

namespace carina::ethosn {
namespace {

using namespace compiler;

/// Rejects what would be compiled incorrectly.
Status checkSupport(const Network& network, const Target& target) {
  std::vector<Diagnostic> problems;
  for (size_t i = 0; i < network.inputs.size(); ++i) {
    SupportQuery query;
    query.operation.op = Operator::Input;
    query.inputs.push_back(network.tensors[static_cast<size_t>(network.inputs[i])]);
    if (const SupportAnswer answer = querySupport(target, query); !answer) {
      problems.push_back(
          {fmt::format("an input cannot be passed to {}: {}", target.variant->name, answer.reason), "", "",
           fmt::format("input {}", i), Code::NoIntegerForm});
    }
  }
  for (const NetworkOperation& operation : network.operations) {
    SupportQuery query;
    query.operation = operation.operation;
    for (int32_t input : operation.inputs)
      query.inputs.push_back(network.tensors[static_cast<size_t>(input)]);
    const SupportAnswer answer = querySupport(target, query);
    if (!answer) {
      problems.push_back({fmt::format("{} cannot run on {}: {}", operatorName(operation.operation.op),
                                      target.variant->name, answer.reason),
                          "keep the operator on the CPU", "", operation.name, Code::NoIntegerForm});
    }
  }
  return problems.empty() ? Status() : Status(Error(std::move(problems)));
}

/// The limits of registers and buffer tables: 16 bits for sizes, 31 for the bytes of a buffer.
Status checkExtents(const PassList& list) {
  constexpr int32_t kMaxExtent = 65528;
  for (const Pass& pass : list.passes) {
    std::vector<const FeatureMap*> maps = {&pass.output};
    for (const FeatureMap& in : pass.inputs) maps.push_back(&in);
    for (const FeatureMap* map : maps) {
      const Storage& storage = list.storages[static_cast<size_t>(map->storage)];
      const bool vector =
          pass.kind == PassKind::Mce && pass.weights.operation == MceOperation::FullyConnected;
      const int32_t largest = std::max({map->height, map->width, vector ? 0 : map->channels});
      if (largest <= kMaxExtent && storage.bytes() <= INT32_MAX) continue;
      return fail(Code::HardwareLimit, "a map of {}x{}x{} is larger than an Ethos-N can address", map->height,
                  map->width, map->channels)
          .at(pass.name)
          .withRemedy("keep the operator on the CPU");
    }
  }
  return {};
}

uint32_t aligned(uint64_t bytes) {
  return static_cast<uint32_t>((bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment);
}

/// The index after the last pass of the section that begins with `first`.
size_t endOfSection(const std::vector<Plan>& plans, size_t first) {
  size_t end = first + 1;
  while (end < plans.size() && plans[end].chained >= 0) ++end;
  return end;
}

/// From the first to the last pass that accesses each storage; no passes if none does. The passes of a
/// section run at the same time.
std::vector<LiveRange> lifetimesOf(const PassList& list, const std::vector<Plan>& plans) {
  std::vector<LiveRange> out(list.storages.size(), {0, INT32_MAX, -1});
  size_t begin = 0, end = 0;
  for (size_t i = 0; i < list.passes.size(); ++i) {
    if (i == end) {
      begin = i;
      end = endOfSection(plans, begin);
    }
    const auto touch = [&](const FeatureMap& map) {
      LiveRange& life = out[static_cast<size_t>(map.storage)];
      life.first = std::min(life.first, static_cast<int32_t>(begin));
      life.last = std::max(life.last, static_cast<int32_t>(end) - 1);
    };
    const std::vector<FeatureMap>& inputs = list.passes[i].inputs;
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (!plans[i].resident[k] && plans[i].chained != static_cast<int32_t>(k)) touch(inputs[k]);
    }
    if (plans[i].stored) touch(list.passes[i].output);
  }
  return out;
}

/// Offsets of the intermediates in their common allocation.
void placeIntermediates(const PassList& list, const std::vector<LiveRange>& lives,
                        const std::vector<uint32_t>& ids, CompiledNetwork& out) {
  constexpr int kAttempts = 200;
  std::vector<size_t> used;
  std::vector<LiveRange> ranges;
  for (size_t i = 0; i < list.storages.size(); ++i) {
    const Storage& storage = list.storages[i];
    if (storage.kind != Storage::Kind::Intermediate || lives[i].last < 0) continue;
    used.push_back(i);
    ranges.push_back({storage.bytes(), lives[i].first, lives[i].last});
  }
  const Packing packing = pack(ranges, 0, kAttempts, kBufferAlignment);
  for (size_t k = 0; k < used.size(); ++k) {
    const Storage& storage = list.storages[used[k]];
    out.intermediates.push_back({ids[used[k]], static_cast<uint32_t>(packing.addresses[k]),
                                 static_cast<uint32_t>(storage.bytes()), storage.name});
  }
}

uint64_t elementsOf(const FeatureMap& map) {
  return static_cast<uint64_t>(int64_t{map.height} * map.width * map.channels);
}

CompiledPass describe(const Pass& pass, const Plan& plan, uint32_t firstAgent, uint32_t endAgent) {
  CompiledPass out;
  out.operation = pass.name;
  out.firstAgent = firstAgent;
  out.endAgent = endAgent;
  for (size_t i = 0; i < pass.inputs.size(); ++i) {
    out.inputBytes += elementsOf(pass.inputs[i]);
    if (plan.resident[i]) out.residentInputBytes += elementsOf(pass.inputs[i]);
  }
  out.outputBytes = elementsOf(pass.output);
  out.outputStays = !plan.stored;
  out.weightBytes = pass.weights.weights.size();
  if (plan.encoded != nullptr) out.streamBytes = plan.encoded->bytes.size();
  if (pass.kind == PassKind::Mce) {
    out.mce = pass.weights.operation == MceOperation::Depthwise        ? "depthwise"
              : pass.weights.operation == MceOperation::FullyConnected ? "vector_product"
                                                                       : "convolution";
  }
  if (pass.kind != PassKind::Copy) out.ple = pleOperationName(pass.kernel.operation);
  return out;
}

/// Appends the weights of a pass, and those loaded with them, as one buffer. False if they are part of
/// another buffer, or if there are none.
bool addWeights(const PlannedPasses& planned, size_t pass, uint32_t id, CompiledNetwork& out) {
  const Plan& plan = planned.plans[pass];
  if (planned.list.passes[pass].kind != PassKind::Mce || plan.weightsAreThere) return false;
  out.constantDma.resize(aligned(out.constantDma.size()));
  const auto offset = static_cast<uint32_t>(out.constantDma.size());
  const auto append = [&out](const EncodedWeights& encoded) {
    out.constantDma.insert(out.constantDma.end(), encoded.bytes.begin(), encoded.bytes.end());
  };
  append(*plan.encoded);
  for (size_t with : plan.together) append(*planned.plans[with].encoded);
  out.dmaBuffers.push_back(
      {id, offset, static_cast<uint32_t>(out.constantDma.size()) - offset, planned.list.passes[pass].name});
  return true;
}

}  // namespace

Result<CompiledNetwork> compileNetwork(const Network& network, const Target& target,
                                       std::vector<CompiledPass>* passes) {
  CARINA_RETURN_IF_ERROR(requireKernels(*target.variant));
  CARINA_RETURN_IF_ERROR(checkSupport(network, target));
  CARINA_TRY(PassList made, makePasses(network, target));
  CARINA_RETURN_IF_ERROR(checkExtents(made));
  CARINA_TRY(const PlannedPasses planned, planPasses(std::move(made), target));
  const PassList& list = planned.list;

  CompiledNetwork out;
  const std::vector<LiveRange> lives = lifetimesOf(list, planned.plans);
  uint32_t id = 1;
  std::vector<uint32_t> buffers(list.storages.size(), 0);
  for (size_t i = 0; i < list.storages.size(); ++i) {
    if (lives[i].last >= 0 || list.storages[i].kind == Storage::Kind::Input) buffers[i] = id++;
  }
  const auto table = [&](const std::vector<int32_t>& storages, std::vector<BufferInfo>& infos) {
    uint32_t offset = 0;
    for (int32_t index : storages) {
      const Storage& storage = list.storages[static_cast<size_t>(index)];
      infos.push_back({buffers[static_cast<size_t>(index)], offset, static_cast<uint32_t>(storage.bytes()),
                       storage.name});
      offset = aligned(uint64_t{offset} + static_cast<uint64_t>(storage.bytes()));
    }
  };
  table(list.inputs, out.inputs);
  table(list.outputs, out.outputs);
  placeIntermediates(list, lives, buffers, out);
  if (intermediateBytes(out) > INT32_MAX) {
    return fail(Code::HardwareLimit, "the feature maps between operations take {} bytes, more than 2 GiB",
                intermediateBytes(out))
        .withRemedy("split the network");
  }

  Emitter emitter(list, target, buffers);
  for (size_t first = 0; first < list.passes.size();) {
    const size_t end = endOfSection(planned.plans, first);
    std::vector<Emitter::Job> section;
    for (size_t i = first; i < end; ++i) {
      section.push_back({&list.passes[i], &planned.plans[i], id});
      if (addWeights(planned, i, id, out)) ++id;
    }
    CARINA_TRY(std::vector<uint32_t> agents, emitter.emit(section));
    agents.push_back(emitter.agents());
    for (size_t i = first; passes != nullptr && i < end; ++i) {
      passes->push_back(describe(list.passes[i], planned.plans[i], agents[i - first], agents[i - first + 1]));
    }
    first = end;
  }
  CARINA_TRY(out.constantControlUnit, writeCommandStream(emitter.take()));
  out.controlUnitBuffers.push_back(
      {0, 0, static_cast<uint32_t>(out.constantControlUnit.size()), "command_stream"});
  CARINA_RETURN_IF_ERROR(checkBuffers(out));
  return out;
}

}  // namespace carina::ethosn
