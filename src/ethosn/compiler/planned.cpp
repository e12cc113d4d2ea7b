// SPDX-License-Identifier: Apache-2.0
#include "ethosn/compiler/planned.hpp"

#include <algorithm>

#include "ethosn/compiler/sections.hpp"

namespace carina::ethosn::compiler {
namespace {

/// Whether the pass can take the input from SRAM as another pass left it there.
bool takesFromSram(const Pass& pass, const FeatureMap& in, const FeatureMap& made) {
  const bool vector = pass.kind == PassKind::Mce && pass.weights.operation == MceOperation::FullyConnected;
  return pass.kind != PassKind::Copy && !vector && in.isWhole() && in.isSameAs(made);
}

/// Cycles to move a map in one go.
uint64_t transferCycles(const FeatureMap& map) {
  const auto bytes = static_cast<uint64_t>(int64_t{map.height} * map.width * map.channels);
  return stripesCycles(bytes / kDmaBytesPerCycle, 1);
}

class Planned {
 public:
  Planned(PassList list, const Target& target) : list_(std::move(list)), target_(target) {}

  Result<PlannedPasses> plan() {
    std::vector<Pass> passes = std::move(list_.passes);
    list_.passes.clear();
    readers_.assign(list_.storages.size(), {});
    for (const Pass& pass : passes) {
      for (const FeatureMap& in : pass.inputs)
        readers_[static_cast<size_t>(in.storage)].push_back({&pass, &in});
    }
    for (Pass& pass : passes) chooseAlgorithm(pass, *target_.variant);
    forms_.resize(passes.size());
    for (size_t i = 0; i < passes.size();) {
      CARINA_TRY(const size_t count, planNext(passes, i));
      for (size_t end = i + count; i < end; ++i) forms_[i] = {};
    }
    loadWeightsTogether();
    return PlannedPasses{std::move(list_), std::move(plans_)};
  }

 private:
  /// A map that a pass left in SRAM for later ones.
  struct Kept {
    FeatureMap map;
    TilePlan tile;
    size_t producer;     // pass
    size_t readersLeft;  // passes that are still to be planned
  };
  struct Reader {
    const Pass* pass;
    const FeatureMap* map;
  };
  /// What of SRAM a plan does without.
  enum class Evicted : uint8_t { Nothing, Others, All };
  struct Choice {
    Plan plan;
    uint64_t cost = UINT64_MAX;
    Evicted evicted = Evicted::Nothing;
    std::vector<size_t> storages;  // of what the pass takes from SRAM, unless evicted
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
    plan.stored = !plan.stays && !plan.handed;
    if (plan.stays) {
      const TilePlan whole{plan.output.address, plan.output.slotBytes * plan.output.slots, 1};
      kept_.push_back({pass.output, whole, plans_.size(), readersOf(pass.output).size()});
    }
    list_.passes.push_back(std::move(pass));
    plans_.push_back(std::move(plan));
  }

  const std::vector<Reader>& readersOf(const FeatureMap& map) const {
    return readers_[static_cast<size_t>(map.storage)];
  }

  /// Passes that would take the output from SRAM.
  size_t takers(const Pass& pass) const {
    const Storage& storage = list_.storages[static_cast<size_t>(pass.output.storage)];
    if (pass.kind == PassKind::Copy || !pass.output.isWhole() || storage.kind != Storage::Kind::Intermediate)
      return 0;
    const std::vector<Reader>& readers = readersOf(pass.output);
    return static_cast<size_t>(std::count_if(readers.begin(), readers.end(), [&pass](const Reader& reader) {
      return takesFromSram(*reader.pass, *reader.map, pass.output);
    }));
  }

  static bool isResident(const Kept& kept, const std::vector<size_t>& storages) {
    return std::count(storages.begin(), storages.end(), static_cast<size_t>(kept.map.storage)) > 0;
  }

  /// What is kept goes to DRAM for those that still need it.
  void evict(const std::vector<size_t>& residentStorages) {
    std::erase_if(kept_, [&](const Kept& kept) {
      if (isResident(kept, residentStorages)) return false;
      plans_[kept.producer].stored = true;
      return true;
    });
  }

  /// Cycles that it costs later to have evicted what is not resident.
  uint64_t evictionCycles(const std::vector<size_t>& residentStorages) const {
    uint64_t cycles = 0;
    for (const Kept& kept : kept_) {
      if (isResident(kept, residentStorages)) continue;
      cycles += transferCycles(kept.map) * (kept.readersLeft + (plans_[kept.producer].stored ? 0 : 1));
    }
    return cycles;
  }

  /// Inputs that an earlier pass left in SRAM just as this one needs them.
  Occupied occupiedFor(const Pass& pass, std::vector<size_t>& storages) const {
    Occupied out;
    for (const Kept& kept : kept_) {
      bool used = false;
      for (size_t i = 0; i < pass.inputs.size(); ++i) {
        if (!takesFromSram(pass, pass.inputs[i], kept.map)) continue;
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

  void consider(const Pass& pass, const Occupied& occupied, Evicted evicted, uint64_t evictions,
                WeightForms& weights, Choice& best, std::optional<Error>& problem) const {
    const uint64_t readers = takers(pass);
    for (bool stays : {true, false}) {
      if (stays && readers == 0) continue;
      Result<Plan> plan = planPass(pass, list_, target_, weights, occupied, stays);
      if (!plan.ok()) {
        if (!stays) problem = std::move(plan).error();
        continue;
      }
      const uint64_t later = stays ? 0 : readers * transferCycles(pass.output);
      const uint64_t cost = costOf(plan->work) + evictions + later;
      if (cost < best.cost) best = {std::move(*plan), cost, evicted, {}};
    }
  }

  /// With everything that SRAM holds, without what only later passes need, with SRAM to itself: whichever
  /// costs least, what it costs later passes included.
  Choice choose(const Pass& pass, WeightForms& weights, std::optional<Error>& problem) const {
    std::vector<size_t> storages;
    Occupied occupied = occupiedFor(pass, storages);
    Choice best;
    consider(pass, occupied, Evicted::Nothing, 0, weights, best, problem);
    if (!occupied.others.empty()) {
      occupied.others.clear();
      consider(pass, occupied, Evicted::Others, evictionCycles(storages), weights, best, problem);
    }
    if (!occupied.residents.empty())
      consider(pass, {}, Evicted::All, evictionCycles({}), weights, best, problem);
    best.storages = std::move(storages);
    return best;
  }

  /// Gives how many passes have been planned: one, or a section.
  Result<size_t> planNext(std::vector<Pass>& passes, size_t at) {
    Pass& pass = passes[at];
    std::optional<Error> problem;
    Choice best = choose(pass, forms_[at], problem);
    if (best.cost == UINT64_MAX) {
      if (pass.kind == PassKind::Copy) return std::move(*problem);
      evict({});
      CARINA_RETURN_IF_ERROR(planOnBricks(pass));
      return 1;
    }
    if (!best.plan.stays) {
      if (const size_t count = planSectionAt(passes, at, best.plan)) return count;
    }
    if (best.evicted == Evicted::Others) evict(best.storages);
    if (best.evicted == Evicted::All) evict({});
    push(std::move(pass), std::move(best.plan));
    return 1;
  }

  static uint64_t costOf(const PassWork& work) {
    constexpr uint64_t kHidden = 64;  // traffic that something else hides counts a little
    return passCycles(work) + (work.input.bytes + work.weights.bytes + work.output.bytes) / kHidden;
  }

  /// How many passes from `at` on can hand each other their maps.
  size_t chainFrom(const std::vector<Pass>& passes, size_t at) const {
    constexpr size_t kLongest = 8;
    size_t length = 1;
    while (length < kLongest && at + length < passes.size()) {
      const Pass &first = passes[at + length - 1], &second = passes[at + length];
      const bool vector =
          second.kind == PassKind::Mce && second.weights.operation == MceOperation::FullyConnected;
      if (vector || !chainedInput(first, second, list_) || readersOf(first.output).size() != 1) break;
      ++length;
    }
    return length;
  }

  /// What the passes cost one by one, the first by its plan: with what is after them up to each length.
  std::vector<uint64_t> costsOneByOne(const std::vector<Pass>& passes, size_t at, size_t length,
                                      const Plan& first) {
    std::vector<uint64_t> costs;
    uint64_t sum = 0;
    std::optional<TilePlan> left;
    for (size_t k = 0; k < length; ++k) {
      const Pass& pass = passes[at + k];
      Choice best;
      std::optional<Error> problem;
      if (k > 0) {
        Occupied occupied;
        if (left)
          occupied.residents.push_back(
              {static_cast<size_t>(*chainedInput(passes[at + k - 1], pass, list_)), *left});
        consider(pass, occupied, Evicted::Nothing, 0, forms_[at + k], best, problem);
        if (left)
          consider(pass, {}, Evicted::All, 2 * transferCycles(passes[at + k - 1].output), forms_[at + k],
                   best, problem);
        if (best.cost == UINT64_MAX) break;
      }
      const Plan& plan = k == 0 ? first : best.plan;
      left = std::nullopt;
      if (plan.stays) left = TilePlan{plan.output.address, plan.output.slotBytes * plan.output.slots, 1};
      sum += costOf(plan.work);
      costs.push_back(sum + (plan.stays ? 0 : takers(pass) * transferCycles(pass.output)));
    }
    return costs;
  }

  /// The passes as members of a section, with what SRAM holds for them, or with SRAM to itself but for the
  /// maps that they read.
  std::vector<SectionMember> membersOf(const std::vector<Pass>& passes, size_t at, size_t length, bool others,
                                       std::vector<size_t>& storages) {
    std::vector<SectionMember> out;
    for (size_t k = 0; k < length; ++k) {
      const Pass& pass = passes[at + k];
      SectionMember member{&pass, occupiedFor(pass, storages), nullptr};
      member.occupied.others.clear();
      if (pass.kind == PassKind::Mce) {
        for (const auto& [channels, form] : forms_[at + k]) {
          if (channels == pass.mceChannels) member.weights = &form;
        }
      }
      out.push_back(std::move(member));
    }
    for (const Kept& kept : kept_) {
      if (!others || isResident(kept, storages)) continue;
      for (SectionMember& member : out) member.occupied.others.push_back(kept.tile);
    }
    return out;
  }

  /// Plans a section where that saves something over one pass after the other; gives its length, or 0.
  size_t planSectionAt(std::vector<Pass>& passes, size_t at, const Plan& first) {
    const size_t longest = chainFrom(passes, at);
    if (longest < 2) return 0;
    const std::vector<uint64_t> alone = costsOneByOne(passes, at, longest, first);
    SectionPlan best;
    uint64_t gain = 0;
    bool evicts = false;
    std::vector<size_t> kept;
    for (size_t length = 2; length <= alone.size(); ++length) {
      for (bool others : {true, false}) {
        if (!others && kept_.empty()) continue;
        std::vector<size_t> storages;
        const std::vector<SectionMember> members = membersOf(passes, at, length, others, storages);
        const uint64_t evictions = others ? 0 : evictionCycles(storages);
        const Pass& last = passes[at + length - 1];
        for (bool stays : {true, false}) {
          const uint64_t readers = takers(last);
          if (stays && readers == 0) continue;
          std::optional<SectionPlan> plan = planSection(members, plans_.size(), list_, target_, stays);
          if (!plan) continue;
          uint64_t cost = evictions + (stays ? 0 : readers * transferCycles(last.output));
          for (const Plan& some : plan->plans) cost += costOf(some.work);
          if (cost + gain >= alone[length - 1]) continue;
          gain = alone[length - 1] - cost;
          best = std::move(*plan);
          evicts = !others;
          kept = storages;
        }
      }
    }
    if (gain == 0) return 0;
    if (evicts) evict(kept);
    for (size_t k = 0; k < best.plans.size(); ++k) push(std::move(passes[at + k]), std::move(best.plans[k]));
    return best.plans.size();
  }

  bool isRows(const FeatureMap& map) const {
    return list_.storages[static_cast<size_t>(map.storage)].layout == Layout::Nhwc && map.wholeWidth > 1;
  }

  FeatureMap onBricks(const FeatureMap& map) {
    FeatureMap out = map;
    out.storage = static_cast<int32_t>(list_.storages.size());
    list_.storages.push_back(
        {Storage::Kind::Intermediate, Layout::Nhwcb, map.height, map.width, map.channels, "bricks"});
    readers_.emplace_back();
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
    WeightForms none;
    CARINA_TRY(Plan plan, planPass(copy, list_, target_, none));
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
    WeightForms weights;
    CARINA_TRY(Plan plan, planPass(pass, list_, target_, weights));
    const FeatureMap made = pass.output;
    const std::string name = pass.name;
    push(std::move(pass), std::move(plan));
    return made.storage == out.storage ? Status() : planCopy(made, out, name);
  }

  /// Weights that take a transfer less than its least time come with those of a pass in front, where SRAM has
  /// room for all of them until the last of these passes is done.
  void loadWeightsTogether() {
    const int64_t top = target_.bankBytes() - kPleKernelMaxBytes;
    for (size_t first = 0; first < plans_.size();) {
      int64_t bankBytes = 0, peak = 0;
      std::vector<size_t> together;
      size_t i = first;
      for (; i < plans_.size(); ++i) {
        const Plan& plan = plans_[i];
        const bool weighted = list_.passes[i].kind == PassKind::Mce;
        const int64_t room = std::max(peak, plan.peak), own = weighted ? plan.encoded.bankBytes : 0;
        const bool alone = plan.chained < 0 && !plan.handed;  // sections have theirs together anyway
        if (!alone || (weighted && !isOneShortLoad(plan)) || room + bankBytes + own > top) break;
        peak = room;
        bankBytes += own;
        if (weighted) together.push_back(i);
      }
      if (together.size() > 1) gather(together, top - bankBytes);
      first = std::max(i, first + 1);
    }
  }

  bool isOneShortLoad(const Plan& plan) const {
    const auto bytes = static_cast<uint64_t>(plan.encoded.stripeBytes);
    return plan.channelStripes == 1 && bytes / kDmaBytesPerCycle + kStripeOverhead < kLeastOfStripe;
  }

  void gather(const std::vector<size_t>& together, int64_t address) {
    Plan& first = plans_[together.front()];
    for (size_t i : together) {
      Plan& plan = plans_[i];
      plan.weights.address = address;
      address += plan.encoded.bankBytes;
      if (i == together.front()) continue;
      plan.weightsAreThere = true;
      first.together.push_back(i);
      first.togetherBytes += plan.encoded.stripeBytes;
    }
  }

  PassList list_;
  const Target& target_;
  std::vector<Plan> plans_;
  std::vector<std::vector<Reader>> readers_;  // of each storage, among the passes as they were given
  std::vector<Kept> kept_;
  std::vector<WeightForms> forms_;  // of the passes as they were given
};

}  // namespace

Result<PlannedPasses> planPasses(PassList list, const Target& target) {
  return Planned(std::move(list), target).plan();
}

}  // namespace carina::ethosn::compiler
