// SPDX-License-Identifier: Apache-2.0
#include "ethosn/compiler/planned.hpp"

#include <algorithm>
#include <deque>
#include <memory>

#include "ethosn/compiler/sections.hpp"

namespace carina::ethosn::compiler {
namespace {

/// Whether the pass can read the input from SRAM as another pass left it there.
bool takesFromSram(const Pass& pass, const FeatureMap& in, const FeatureMap& made) {
  const bool vector = pass.kind == PassKind::Mce && pass.weights.operation == MceOperation::FullyConnected;
  return pass.kind != PassKind::Copy && !vector && in.isWhole() && in.isSameAs(made);
}

/// Cycles to move a map in one transfer.
uint64_t transferCycles(const FeatureMap& map) {
  const auto bytes = static_cast<uint64_t>(int64_t{map.height} * map.width * map.channels);
  return stripesCycles(bytes / kDmaBytesPerCycle, 1);
}

/// A pass, and how it runs.
struct Step {
  const Pass* pass = nullptr;
  Plan plan;
};

/// The latest steps, and those before them: states share common prefixes.
struct Way {
  std::shared_ptr<const Way> before;
  std::vector<Step> steps;
};

/// A map that a pass left in SRAM for later ones.
struct Kept {
  FeatureMap map;
  TilePlan tile;
  size_t producer;  // step
  // Remaining readers, and those of them that would read it from SRAM.
  size_t readersLeft, takersLeft;
};

/// Successive passes whose weights can be loaded in one transfer.
struct Together {
  int64_t peak = 0;       // bytes of a bank that anything but the weights occupies
  int64_t bankBytes = 0;  // of the weights
  int64_t loadBytes = 0;
  size_t loads = 0;

  /// Adds the pass if it fits SRAM with the others and its weights, if any, can be loaded with theirs.
  bool joins(const Pass& pass, const Plan& plan, int64_t top) {
    const bool alone = plan.chained < 0 && !plan.handed;  // sections load theirs together anyway
    const bool weighted = pass.kind == PassKind::Mce;
    const int64_t room = std::max(peak, plan.peak), own = weighted ? plan.encoded->bankBytes : 0;
    if (!alone || (weighted && !isOneShortLoad(plan)) || room + bankBytes + own > top) return false;
    peak = room;
    bankBytes += own;
    if (weighted) loadBytes += plan.encoded->stripeBytes;
    loads += weighted ? 1 : 0;
    return true;
  }
  uint64_t cycles() const {
    return stripesCycles(static_cast<uint64_t>(loadBytes) / kDmaBytesPerCycle, loads > 0 ? 1 : 0);
  }

 private:
  /// Shorter than the minimum time of a transfer.
  static bool isOneShortLoad(const Plan& plan) {
    const auto bytes = static_cast<uint64_t>(plan.encoded->stripeBytes);
    return plan.channelStripes == 1 && plan.iterations == 1 &&
           bytes / kDmaBytesPerCycle + kStripeOverhead < kMinOfStripe;
  }
};

/// The first passes, planned in one of the ways tried.
struct State {
  std::shared_ptr<const Way> way;
  std::vector<Kept> kept;
  std::vector<bool> stored;  // whether the output is in DRAM, by step
  Together together;         // of the last passes
  uint64_t cost = 0;         // cycles of all steps
  uint64_t ahead = 0;        // cycles for later passes to load maps that could have stayed in SRAM

  uint64_t total() const { return cost + ahead; }
  /// Whether SRAM holds the same: then the cheaper state is better, whatever follows.
  bool keepsTheSame(const State& other) const {
    return std::equal(kept.begin(), kept.end(), other.kept.begin(), other.kept.end(),
                      [](const Kept& a, const Kept& b) {
                        return a.map.storage == b.map.storage && a.tile.address == b.tile.address;
                      });
  }
};

/// A beam search, pass by pass: each pass in every form that the planner has for it (output stays in SRAM or
/// not, with or without the current contents of SRAM, alone or in a section with later passes), from the best
/// few states that the preceding passes can leave.
class Planned {
 public:
  Planned(PassList list, const Target& target)
      : list_(std::move(list)), target_(target), passes_(std::move(list_.passes)) {
    list_.passes.clear();
    readers_.assign(list_.storages.size(), {});
    made_.assign(list_.storages.size(), nullptr);
    for (Pass& pass : passes_) {
      chooseAlgorithm(pass, target_);
      for (const FeatureMap& in : pass.inputs)
        readers_[static_cast<size_t>(in.storage)].push_back({&pass, &in});
      const auto made = static_cast<size_t>(pass.output.storage);
      if (pass.kind != PassKind::Copy && pass.output.isWhole() &&
          list_.storages[made].kind == Storage::Kind::Intermediate)
        made_[made] = &pass.output;
    }
  }

  Result<PlannedPasses> plan() {
    forms_.resize(passes_.size());
    states_.resize(passes_.size() + 1);
    states_[0].emplace_back();
    for (size_t at = 0; at < passes_.size(); ++at) {
      const std::vector<State> states = std::move(states_[at]);
      std::optional<Error> problem;
      for (const State& state : states) {
        tryAlone(state, at, problem);
        trySections(state, at);
      }
      const bool reached = std::any_of(states_.begin() + static_cast<std::ptrdiff_t>(at) + 1, states_.end(),
                                       [](const std::vector<State>& some) { return !some.empty(); });
      if (!reached) {
        CARINA_RETURN_IF_ERROR(passes_[at].kind == PassKind::Copy ? planCopyAlone(states.front(), at)
                                                                  : planOnBricks(states.front(), at));
      }
      forms_[at] = {};
    }
    takeSteps(states_.back().front());
    loadWeightsTogether();
    return PlannedPasses{std::move(list_), std::move(plans_)};
  }

 private:
  struct Reader {
    const Pass* pass;
    const FeatureMap* map;
  };

  /// Beam width: the number of states kept per position.
  static constexpr size_t kWidth = 4;

  void reach(size_t at, State state) {
    std::vector<State>& states = states_[at];
    const auto same = std::find_if(states.begin(), states.end(),
                                   [&state](const State& other) { return other.keepsTheSame(state); });
    if (same != states.end()) {
      if (same->total() <= state.total()) return;
      states.erase(same);
    }
    const auto behind =
        std::upper_bound(states.begin(), states.end(), state,
                         [](const State& a, const State& b) { return a.total() < b.total(); });
    states.insert(behind, std::move(state));
    if (states.size() > kWidth) states.pop_back();
  }

  const std::vector<Reader>& readersOf(const FeatureMap& map) const {
    return readers_[static_cast<size_t>(map.storage)];
  }

  /// Whether the pass would read the input from SRAM if it had been left there.
  bool isTaker(const Pass& pass, const FeatureMap& in) const {
    const FeatureMap* made = made_[static_cast<size_t>(in.storage)];
    return made != nullptr && takesFromSram(pass, in, *made);
  }

  size_t takers(const Pass& pass) const {
    const std::vector<Reader>& readers = readersOf(pass.output);
    return static_cast<size_t>(std::count_if(readers.begin(), readers.end(), [this](const Reader& reader) {
      return isTaker(*reader.pass, *reader.map);
    }));
  }

  static void store(State& state, const Kept& kept) {
    if (state.stored[kept.producer]) return;
    state.stored[kept.producer] = true;
    state.cost += transferCycles(kept.map);
  }

  /// Adds passes that run at the same time. Readers take from SRAM what the plan says; everything else must
  /// be in DRAM.
  void push(State& state, std::vector<Step> steps) const {
    for (const Step& step : steps) {
      const Pass& pass = *step.pass;
      const Plan& plan = step.plan;
      for (size_t i = 0; i < pass.inputs.size(); ++i) {
        const FeatureMap& in = pass.inputs[i];
        const auto kept = std::find_if(state.kept.begin(), state.kept.end(),
                                       [&in](const Kept& k) { return k.map.storage == in.storage; });
        if (kept != state.kept.end()) {
          if (!plan.resident[i]) store(state, *kept);
          --kept->readersLeft;
          if (isTaker(pass, in)) --kept->takersLeft;
        } else if (plan.chained != static_cast<int32_t>(i) && isTaker(pass, in)) {
          state.ahead -= std::min(state.ahead, transferCycles(in));
        }
      }
      std::erase_if(state.kept, [](const Kept& kept) { return kept.readersLeft == 0; });
      const size_t takersLeft = takers(pass);
      if (plan.stays) {
        const TilePlan whole{plan.output.address, plan.output.slotBytes * plan.output.slots, 1};
        state.kept.push_back(
            {pass.output, whole, state.stored.size(), readersOf(pass.output).size(), takersLeft});
      } else if (!plan.handed) {
        state.ahead += takersLeft * transferCycles(pass.output);
      }
      state.stored.push_back(!plan.stays && !plan.handed);
      state.cost += costOf(loadedTogether(state, step));
    }
    state.way = std::make_shared<const Way>(Way{state.way, std::move(steps)});
  }

  static bool isResident(const Kept& kept, const std::vector<size_t>& storages) {
    return std::count(storages.begin(), storages.end(), static_cast<size_t>(kept.map.storage)) > 0;
  }

  /// Moves what is kept, but for the residents, to DRAM for its remaining readers.
  static void evict(State& state, const std::vector<size_t>& residentStorages) {
    for (const Kept& kept : state.kept) {
      if (isResident(kept, residentStorages)) continue;
      store(state, kept);
      state.ahead += kept.takersLeft * transferCycles(kept.map);
    }
    std::erase_if(state.kept, [&](const Kept& kept) { return !isResident(kept, residentStorages); });
  }

  /// SRAM for a pass: the inputs that an earlier pass left there in the form that it needs, and the rest.
  static Occupied occupiedFor(const State& state, const Pass& pass, std::vector<size_t>& storages) {
    Occupied out;
    for (const Kept& kept : state.kept) {
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

  /// With SRAM as occupied; if `evicts`, everything but the residents is evicted.
  void tryAlone(const State& state, size_t at, const Occupied& occupied, const std::vector<size_t>& residents,
                bool evicts, std::optional<Error>& problem) {
    const Pass& pass = passes_[at];
    for (bool stays : {true, false}) {
      if (stays && takers(pass) == 0) continue;
      Result<Plan> plan = planPass(pass, list_, target_, forms_[at], occupied, stays);
      if (!plan.ok()) {
        if (!stays) problem = std::move(plan).error();
        continue;
      }
      State next = state;
      if (evicts) evict(next, residents);
      push(next, {{&pass, std::move(*plan)}});
      reach(at + 1, std::move(next));
    }
  }

  /// With everything that SRAM holds, without what only later passes need, with SRAM to itself.
  void tryAlone(const State& state, size_t at, std::optional<Error>& problem) {
    std::vector<size_t> residents;
    Occupied occupied = occupiedFor(state, passes_[at], residents);
    tryAlone(state, at, occupied, residents, false, problem);
    if (!occupied.others.empty()) {
      occupied.others.clear();
      tryAlone(state, at, occupied, residents, true, problem);
    }
    if (!occupied.residents.empty()) tryAlone(state, at, {}, {}, true, problem);
  }

  /// The step's work, without weights that are loaded with those of preceding passes: they lengthen that
  /// load.
  PassWork loadedTogether(State& state, const Step& step) const {
    const uint64_t before = state.together.cycles();
    const bool first = state.together.loads == 0;
    if (!state.together.joins(*step.pass, step.plan, roomForWeights())) {
      state.together = {};
      if (!state.together.joins(*step.pass, step.plan, roomForWeights())) state.together = {};
      return step.plan.work;
    }
    PassWork work = step.plan.work;
    if (first || step.pass->kind != PassKind::Mce) return work;
    work.weights = {};
    state.cost += state.together.cycles() - before;
    return work;
  }

  int64_t roomForWeights() const { return target_.bankBytes() - kPleKernelMaxBytes; }

  static uint64_t costOf(const PassWork& work) {
    constexpr uint64_t kHidden = 64;  // hidden traffic has a small cost
    return passCycles(work) + (work.input.bytes + work.weights.bytes + work.output.bytes) / kHidden;
  }

  /// How many passes from `at` on can hand their maps to each other.
  size_t chainFrom(size_t at) const {
    constexpr size_t kLongest = 8;
    size_t length = 1;
    while (length < kLongest && at + length < passes_.size()) {
      const Pass &first = passes_[at + length - 1], &second = passes_[at + length];
      const bool vector =
          second.kind == PassKind::Mce && second.weights.operation == MceOperation::FullyConnected;
      if (vector || !chainedInput(first, second, list_) || readersOf(first.output).size() != 1) break;
      ++length;
    }
    return length;
  }

  /// The passes as members of a section, with everything that SRAM holds, or with only the maps that they
  /// read. Fewer if the weights of one cannot be encoded as one stripe.
  std::vector<SectionMember> membersOf(const State& state, size_t at, size_t length, bool others,
                                       std::vector<size_t>& storages) {
    std::vector<SectionMember> out;
    for (size_t k = at; k < at + length; ++k) {
      const Pass& pass = passes_[k];
      SectionMember member{&pass, occupiedFor(state, pass, storages), nullptr};
      member.occupied.others.clear();
      if (pass.kind == PassKind::Mce) {
        auto weights = weightsOf(pass, *target_.variant, forms_[k], pass.mceChannels);
        if (!weights) break;
        member.weights = std::move(*weights);
      }
      out.push_back(std::move(member));
    }
    for (const Kept& kept : state.kept) {
      if (!others || isResident(kept, storages)) continue;
      for (SectionMember& member : out) member.occupied.others.push_back(kept.tile);
    }
    return out;
  }

  /// Sections that begin with the pass. If some passes do not fit, longer sections do not either.
  void trySections(const State& state, size_t at) {
    const size_t longest = chainFrom(at);
    for (bool others : {true, false}) {
      if (!others && state.kept.empty()) continue;
      for (size_t length = 2; length <= longest; ++length) {
        std::vector<size_t> storages;
        const std::vector<SectionMember> members = membersOf(state, at, length, others, storages);
        if (members.size() < length) break;
        bool found = false;
        for (bool stays : {true, false}) {
          if (stays && takers(passes_[at + length - 1]) == 0) continue;
          std::optional<SectionPlan> plan = planSection(members, state.stored.size(), list_, target_, stays);
          if (!plan) continue;
          found = true;
          State next = state;
          if (!others) evict(next, storages);
          std::vector<Step> steps;
          for (size_t k = 0; k < length; ++k) steps.push_back({&passes_[at + k], std::move(plan->plans[k])});
          push(next, std::move(steps));
          reach(at + length, std::move(next));
        }
        if (!found) break;
      }
    }
  }

  /// Appends the passes of a state and their plans to the result.
  void takeSteps(const State& state) {
    std::vector<const Way*> ways;
    for (const Way* way = state.way.get(); way != nullptr; way = way->before.get()) ways.push_back(way);
    for (size_t i = ways.size(); i-- > 0;) {
      for (const Step& step : ways[i]->steps) {
        list_.passes.push_back(*step.pass);
        plans_.push_back(step.plan);
        plans_.back().stored = state.stored[plans_.size() - 1];
      }
    }
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
    made_.push_back(nullptr);
    out.wholeHeight = map.height;
    out.wholeWidth = map.width;
    out.wholeChannels = map.channels;
    out.atY = out.atX = out.atC = 0;
    out.planar = false;
    return out;
  }

  /// Owns passes that are not in the input.
  const Pass& madeUp(Pass pass) { return madeUp_.emplace_back(std::move(pass)); }

  Status planCopy(State& state, const FeatureMap& from, const FeatureMap& to, const std::string& name) {
    Pass copy;
    copy.name = name;
    copy.inputs = {from};
    copy.output = to;
    WeightForms none;
    Result<Plan> plan = planPass(copy, list_, target_, none);
    if (plan.ok()) {
      push(state, {{&madeUp(std::move(copy)), std::move(*plan)}});
      return {};
    }
    // Some columns of a map in NHWC are a map as well: half of them may fit.
    if (from.width <= kBrickEdge) return std::move(plan).error();
    const int32_t half = roundUp(divideUp(from.width, 2), kBrickEdge);
    const auto part = [](FeatureMap map, int32_t x, int32_t width) {
      map.atX += x;
      map.width = width;
      return map;
    };
    CARINA_RETURN_IF_ERROR(planCopy(state, part(from, 0, half), part(to, 0, half), name));
    return planCopy(state, part(from, half, from.width - half), part(to, half, to.width - half), name);
  }

  Status planCopyAlone(State state, size_t at) {
    evict(state, {});
    const Pass& pass = passes_[at];
    CARINA_RETURN_IF_ERROR(planCopy(state, pass.inputs[0], pass.output, pass.name));
    reach(at + 1, std::move(state));
    return {};
  }

  /// With SRAM to itself; if Winograd's algorithm, whose blocks are smaller, finds no cut, the direct one
  /// may.
  Result<Plan> planDirectlyWhereNeeded(Pass& pass) const {
    WeightForms weights;
    Result<Plan> plan = planPass(pass, list_, target_, weights);
    if (plan.ok() || pass.kind != PassKind::Mce || pass.weights.algorithm == MceAlgorithm::Direct)
      return plan;
    chooseAlgorithm(pass, target_, false);
    weights.clear();
    return planPass(pass, list_, target_, weights);
  }

  Status planOnBricks(State state, size_t at) {
    evict(state, {});
    Pass pass = passes_[at];
    for (FeatureMap& in : pass.inputs) {
      if (!isRows(in)) continue;
      const FeatureMap bricks = onBricks(in);
      CARINA_RETURN_IF_ERROR(planCopy(state, in, bricks, pass.name));
      in = bricks;
    }
    const FeatureMap out = pass.output;
    if (isRows(out)) pass.output = onBricks(out);
    CARINA_TRY(Plan plan, planDirectlyWhereNeeded(pass));
    const FeatureMap made = pass.output;
    const std::string name = pass.name;
    push(state, {{&madeUp(std::move(pass)), std::move(plan)}});
    if (made.storage != out.storage) CARINA_RETURN_IF_ERROR(planCopy(state, made, out, name));
    reach(at + 1, std::move(state));
    return {};
  }

  /// Weights whose transfer would take less than the minimum time are loaded with those of an earlier pass,
  /// if SRAM can hold all of them until the last of these passes is done.
  void loadWeightsTogether() {
    for (size_t first = 0; first < plans_.size();) {
      Together passes;
      std::vector<size_t> weighted;
      size_t i = first;
      for (; i < plans_.size() && passes.joins(list_.passes[i], plans_[i], roomForWeights()); ++i) {
        if (list_.passes[i].kind == PassKind::Mce) weighted.push_back(i);
      }
      if (weighted.size() > 1) gather(weighted, roomForWeights() - passes.bankBytes);
      first = std::max(i, first + 1);
    }
  }

  void gather(const std::vector<size_t>& together, int64_t address) {
    Plan& first = plans_[together.front()];
    for (size_t i : together) {
      Plan& plan = plans_[i];
      plan.weights.address = address;
      address += plan.encoded->bankBytes;
      if (i == together.front()) continue;
      plan.weightsAreThere = true;
      first.together.push_back(i);
      first.togetherBytes += plan.encoded->stripeBytes;
    }
  }

  PassList list_;
  const Target& target_;
  std::vector<Pass> passes_;  // as given
  std::deque<Pass> madeUp_;
  std::vector<std::vector<Reader>> readers_;  // of each storage
  std::vector<const FeatureMap*> made_;       // of each storage, if a pass produces all of it
  std::vector<WeightForms> forms_;
  std::vector<std::vector<State>> states_;  // by number of planned passes; the best first
  std::vector<Plan> plans_;
};

}  // namespace

Result<PlannedPasses> planPasses(PassList list, const Target& target) {
  return Planned(std::move(list), target).plan();
}

}  // namespace carina::ethosn::compiler
