// SPDX-License-Identifier: Apache-2.0
#include "ethosn/compiler/compile.hpp"

#include <algorithm>

#include "ethosn/compiler/emit.hpp"
#include "ethosn/support/support.hpp"

namespace carina::ethosn {
namespace {

using namespace compiler;

/// The rules refuse what would be compiled wrong.
Status checkSupport(const Network& network, const Target& target) {
  std::vector<Diagnostic> problems;
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

/// A map in NHWC cannot be cut in channels; where a pass must be, it works on copies in bricks.
class Planned {
 public:
  Planned(PassList list, const Target& target) : list_(std::move(list)), target_(target) {}

  Status plan() {
    std::vector<Pass> passes = std::move(list_.passes);
    list_.passes.clear();
    readers_.assign(list_.storages.size(), 0);
    for (const Pass& pass : passes) {
      for (const FeatureMap& in : pass.inputs) ++readers_[static_cast<size_t>(in.storage)];
    }
    for (Pass& pass : passes) CARINA_RETURN_IF_ERROR(planOne(pass));
    return {};
  }

  PassList& list() { return list_; }
  const std::vector<Plan>& plans() const { return plans_; }

 private:
  /// A map that a pass left in SRAM for later ones.
  struct Kept {
    FeatureMap map;
    TilePlan tile;
    size_t producer;      // pass
    int32_t readersLeft;  // passes that are still to be planned
  };

  /// Readers take from SRAM what the plan says, everything else must be in DRAM.
  void push(Pass pass, Plan plan) {
    for (size_t i = 0; i < pass.inputs.size(); ++i) {
      for (Kept& kept : kept_) {
        if (kept.map.storage != pass.inputs[i].storage) continue;
        if (!plan.resident[i]) plans_[kept.producer].stored = true;
        --kept.readersLeft;
      }
    }
    std::erase_if(kept_, [](const Kept& kept) { return kept.readersLeft == 0; });
    const FeatureMap& made = pass.output;
    const auto storage = static_cast<size_t>(made.storage);
    const bool stays = pass.kind != PassKind::Copy && plan.rowStripes * plan.channelStripes == 1 &&
                       isWhole(made) && list_.storages[storage].kind == Storage::Kind::Intermediate &&
                       readers_[storage] > 0;
    if (stays) {
      plan.stored = false;
      kept_.push_back({made, plan.output, plans_.size(), readers_[storage]});
    }
    list_.passes.push_back(std::move(pass));
    plans_.push_back(std::move(plan));
  }

  /// What is kept goes to DRAM for those that still need it.
  void evict(const std::vector<size_t>& residentStorages) {
    std::erase_if(kept_, [&](const Kept& kept) {
      const auto storage = static_cast<size_t>(kept.map.storage);
      if (std::count(residentStorages.begin(), residentStorages.end(), storage) > 0) return false;
      plans_[kept.producer].stored = true;
      return true;
    });
  }

  /// Inputs that an earlier pass left in SRAM just as this one needs them.
  Occupied occupiedFor(const Pass& pass, std::vector<size_t>& storages) const {
    Occupied out;
    const bool vector = pass.kind == PassKind::Mce && pass.weights.operation == MceOperation::FullyConnected;
    for (const Kept& kept : kept_) {
      bool used = false;
      for (size_t i = 0; i < pass.inputs.size() && pass.kind != PassKind::Copy && !vector; ++i) {
        const FeatureMap &in = pass.inputs[i], &made = kept.map;
        const bool same = in.storage == made.storage && isWhole(in) && in.height == made.height &&
                          in.width == made.width && in.channels == made.channels;
        if (!same) continue;
        out.residents.push_back({i, kept.tile});
        used = true;
      }
      if (used) {
        storages.push_back(static_cast<size_t>(kept.map.storage));
      } else {
        out.others.push_back(kept.tile);
      }
    }
    return out;
  }

  /// With everything that SRAM holds, then without what only later passes need, then with SRAM to itself.
  Status planOne(Pass& pass) {
    std::vector<size_t> storages;
    Occupied occupied = occupiedFor(pass, storages);
    const auto good = [](const Result<Plan>& plan) {
      return plan.ok() && (plan->rowStripes == 1 || plan->channelStripes == 1);
    };
    Result<Plan> plan = planPass(pass, list_, target_, occupied);
    if (!good(plan) && !occupied.others.empty()) {
      evict(storages);
      occupied.others.clear();
      plan = planPass(pass, list_, target_, occupied);
    }
    if (!good(plan) && !occupied.residents.empty()) {
      evict({});
      plan = planPass(pass, list_, target_);
    }
    if (plan.ok()) {
      push(std::move(pass), std::move(*plan));
      return {};
    }
    if (pass.kind == PassKind::Copy) return std::move(plan).error();
    evict({});
    return planOnBricks(pass);
  }

  /// Whether the map is all of its storage, as it was made.
  static bool isWhole(const FeatureMap& map) {
    return map.height == map.wholeHeight && map.width == map.wholeWidth &&
           map.channels == map.wholeChannels && !map.planar;
  }

  bool isRows(const FeatureMap& map) const {
    return list_.storages[static_cast<size_t>(map.storage)].layout == Layout::Nhwc && map.wholeWidth > 1;
  }

  FeatureMap onBricks(const FeatureMap& map) {
    FeatureMap out = map;
    out.storage = static_cast<int32_t>(list_.storages.size());
    list_.storages.push_back(
        {Storage::Kind::Intermediate, Layout::Nhwcb, map.height, map.width, map.channels, "bricks"});
    readers_.push_back(1);
    out.wholeHeight = map.height;
    out.wholeWidth = map.width;
    out.wholeChannels = map.channels;
    out.atY = out.atX = out.atC = 0;
    out.planar = false;
    return out;
  }

  Status planCopy(const FeatureMap& from, const FeatureMap& to, const std::string& name) {
    Pass copy;
    copy.name = name;
    copy.inputs = {from};
    copy.output = to;
    CARINA_TRY(Plan plan, planPass(copy, list_, target_));
    push(std::move(copy), std::move(plan));
    return {};
  }

  Status planOnBricks(Pass& pass) {
    for (FeatureMap& in : pass.inputs) {
      if (!isRows(in)) continue;
      const FeatureMap bricks = onBricks(in);
      CARINA_RETURN_IF_ERROR(planCopy(in, bricks, pass.name));
      in = bricks;
    }
    const FeatureMap out = pass.output;
    if (isRows(out)) pass.output = onBricks(out);
    CARINA_TRY(Plan plan, planPass(pass, list_, target_));
    const FeatureMap made = pass.output;
    const std::string name = pass.name;
    push(std::move(pass), std::move(plan));
    return made.storage == out.storage ? Status() : planCopy(made, out, name);
  }

  PassList list_;
  const Target& target_;
  std::vector<Plan> plans_;
  std::vector<int32_t> readers_;  // of each storage
  std::vector<Kept> kept_;
};

/// What registers and buffer tables can say: sizes have 16 bits, bytes of a buffer 31.
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

/// First and last pass that touches a storage.
struct Lifetime {
  int32_t first = INT32_MAX, last = -1;
  bool used() const { return last >= 0; }
  bool overlaps(const Lifetime& other) const { return first <= other.last && other.first <= last; }
};

std::vector<Lifetime> lifetimesOf(const PassList& list, const std::vector<Plan>& plans) {
  std::vector<Lifetime> out(list.storages.size());
  for (size_t i = 0; i < list.passes.size(); ++i) {
    const auto touch = [&](const FeatureMap& map) {
      Lifetime& life = out[static_cast<size_t>(map.storage)];
      life.first = std::min(life.first, static_cast<int32_t>(i));
      life.last = std::max(life.last, static_cast<int32_t>(i));
    };
    const std::vector<FeatureMap>& inputs = list.passes[i].inputs;
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (!plans[i].resident[k]) touch(inputs[k]);
    }
    if (plans[i].stored) touch(list.passes[i].output);
  }
  return out;
}

/// Offsets of the intermediates in their one allocation: the first gap of sufficient size, in the order of
/// their beginning.
void placeIntermediates(const PassList& list, const std::vector<Lifetime>& lives,
                        const std::vector<uint32_t>& ids, CompiledNetwork& out) {
  struct Placed {
    Lifetime life;
    uint64_t begin, end;
  };
  std::vector<Placed> placed;
  for (size_t i = 0; i < list.storages.size(); ++i) {
    const Storage& storage = list.storages[i];
    if (storage.kind != Storage::Kind::Intermediate || !lives[i].used()) continue;
    const uint64_t bytes = aligned(static_cast<uint64_t>(storage.bytes()));
    std::vector<Placed> busy;
    for (const Placed& other : placed) {
      if (other.life.overlaps(lives[i])) busy.push_back(other);
    }
    std::sort(busy.begin(), busy.end(), [](const Placed& a, const Placed& b) { return a.begin < b.begin; });
    uint64_t at = 0;
    for (const Placed& other : busy) {
      if (other.begin >= at + bytes) break;
      at = std::max(at, other.end);
    }
    placed.push_back({lives[i], at, at + bytes});
    out.intermediates.push_back(
        {ids[i], static_cast<uint32_t>(at), static_cast<uint32_t>(storage.bytes()), storage.name});
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
  out.streamBytes = plan.encoded.bytes.size();
  if (pass.kind == PassKind::Mce) {
    out.mce = pass.weights.operation == MceOperation::Depthwise        ? "depthwise"
              : pass.weights.operation == MceOperation::FullyConnected ? "vector_product"
                                                                       : "convolution";
  }
  if (pass.kind != PassKind::Copy) out.ple = pleOperationName(pass.kernel.operation);
  return out;
}

}  // namespace

Result<CompiledNetwork> compileNetwork(const Network& network, const Target& target,
                                       std::vector<CompiledPass>* passes) {
  CARINA_RETURN_IF_ERROR(requireKernels(*target.variant));
  CARINA_RETURN_IF_ERROR(checkSupport(network, target));
  CARINA_TRY(PassList made, makePasses(network, target));
  CARINA_RETURN_IF_ERROR(checkExtents(made));
  Planned planned(std::move(made), target);
  CARINA_RETURN_IF_ERROR(planned.plan());
  const PassList& list = planned.list();

  CompiledNetwork out;
  const std::vector<Lifetime> lives = lifetimesOf(list, planned.plans());
  uint32_t id = 1;
  std::vector<uint32_t> buffers(list.storages.size(), 0);
  for (size_t i = 0; i < list.storages.size(); ++i) {
    if (lives[i].used() || list.storages[i].kind == Storage::Kind::Input) buffers[i] = id++;
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
    return fail(Code::HardwareLimit, "the maps between operations take {} bytes, a network can have 2 GiB",
                intermediateBytes(out))
        .withRemedy("compile the network in parts");
  }

  Emitter emitter(list, target, buffers);
  for (size_t i = 0; i < list.passes.size(); ++i) {
    const Plan& plan = planned.plans()[i];
    const uint32_t weights = id;
    if (list.passes[i].kind == PassKind::Mce) {
      out.constantDma.resize(aligned(out.constantDma.size()));
      out.dmaBuffers.push_back({id++, static_cast<uint32_t>(out.constantDma.size()),
                                static_cast<uint32_t>(plan.encoded.bytes.size()), list.passes[i].name});
      out.constantDma.insert(out.constantDma.end(), plan.encoded.bytes.begin(), plan.encoded.bytes.end());
    }
    const uint32_t firstAgent = emitter.agents();
    CARINA_RETURN_IF_ERROR(emitter.emit(list.passes[i], plan, weights));
    if (passes != nullptr) passes->push_back(describe(list.passes[i], plan, firstAgent, emitter.agents()));
  }
  CARINA_TRY(out.constantControlUnit, writeCommandStream(emitter.take()));
  out.controlUnitBuffers.push_back(
      {0, 0, static_cast<uint32_t>(out.constantControlUnit.size()), "command_stream"});
  CARINA_RETURN_IF_ERROR(checkBuffers(out));
  return out;
}

}  // namespace carina::ethosn
