// SPDX-License-Identifier: Apache-2.0
#include "ethosn/compiler/sections.hpp"

#include <algorithm>

namespace carina::ethosn::compiler {
namespace {

int32_t rowsOf(const Pass& pass) {
  return pass.kind == PassKind::Mce ? pass.mceHeight : pass.inputs[0].height;
}

class SectionPlanner {
 public:
  SectionPlanner(std::span<const SectionMember> members, size_t first, const PassList& list,
                 const Target& target, bool stays)
      : members_(members), first_(first), list_(list), target_(target), stays_(stays) {}

  std::optional<SectionPlan> plan() const {
    std::optional<SectionPlan> best;
    const int32_t all = rowsOf(*members_[0].pass);
    for (int32_t rows = 8; rows < all; rows += 8) {
      for (Slots slots : {Slots::Ahead, Slots::TransfersAhead, Slots::Fewest}) {
        std::optional<SectionPlan> some = cut(rows, slots);
        if (!some) continue;
        if (!best || some->cycles < best->cycles) best = std::move(some);
        break;
      }
    }
    return best;
  }

 private:
  /// Slots for stripes ahead of the current one: in all rings, in those of transfers, in none.
  enum class Slots : uint8_t { Ahead, TransfersAhead, Fewest };

  /// Plans for `rows` of the first pass per stripe.
  std::optional<SectionPlan> cut(int32_t rows, Slots slots) const {
    SectionPlan out;
    for (size_t k = 0; k < members_.size(); ++k) {
      const Pass& pass = *members_[k].pass;
      const bool last = k + 1 == members_.size();
      std::optional<Plan> plan =
          planRows(pass, list_, target_, rows, members_[k].occupied, last && stays_, slots != Slots::Fewest);
      if (!plan || plan->rowStripes < 2) return std::nullopt;
      if (k > 0 && !link(out.plans.back(), *plan, *members_[k - 1].pass, pass, slots)) return std::nullopt;
      plan->handed = !last;
      // Stripes begin at whole rows of bricks.
      const int32_t made = outputRows(pass, rows);
      if (made % kBrickEdge != 0 || rows % (kBrickEdge * pass.upscale()) != 0) return std::nullopt;
      if (!last) rows = made * members_[k + 1].pass->upscale();
      out.plans.push_back(std::move(*plan));
    }
    if (!place(out.plans)) return std::nullopt;
    for (size_t k = 0; k < members_.size(); ++k) {
      Plan& plan = out.plans[k];
      plan.work = workOfPlan(*members_[k].pass, list_, target_, plan);
      plan.work.weights = {};
      if (!plan.weightsAreThere && members_[k].weights != nullptr)
        plan.work.weights = {static_cast<uint64_t>(plan.weightLoadBytes()), 1, 1};
      out.cycles += passCycles(plan.work);
    }
    return out;
  }

  /// The output ring of the first is the input of the second.
  static bool link(Plan& first, Plan& second, const Pass& front, const Pass& behind, Slots slots) {
    for (size_t i = 0; i < behind.inputs.size(); ++i) {
      if (behind.inputs[i].storage == front.output.storage) second.chained = static_cast<int32_t>(i);
    }
    TilePlan& ring = second.inputs[static_cast<size_t>(second.chained)];
    if (second.inputRowStripes != first.rowStripes || ring.slotBytes != first.output.slotBytes) return false;
    if (slots == Slots::TransfersAhead) ring.slots = std::min(ring.slots, slotsAround(second));
    first.output.slots = ring.slots;
    return true;
  }

  bool place(std::vector<Plan>& plans) const {
    std::vector<TilePlan> taken = members_[0].occupied.others;
    for (const SectionMember& member : members_) {
      for (const Occupied::Resident& kept : member.occupied.residents) taken.push_back(kept.tile);
    }
    TileRoom room(taken);
    for (size_t k = 0; k < plans.size(); ++k) {
      Plan& plan = plans[k];
      for (size_t i = 0; i < plan.inputs.size(); ++i) {
        if (!plan.resident[i] && plan.chained != static_cast<int32_t>(i)) room.place(plan.inputs[i]);
      }
      for (const Occupied::Resident& kept : members_[k].occupied.residents)
        plan.inputs[kept.input].address = kept.tile.address;
      room.place(plan.output);
      if (plan.chained >= 0)
        plan.inputs[static_cast<size_t>(plan.chained)].address = plans[k - 1].output.address;
    }
    const int64_t used = room.peak();
    for (Plan& plan : plans) plan.peak = used;
    return used <= placeWeights(plans, target_.bankBytes() - placeKernels(plans));
  }

  /// Places the code of the PLE kernels; returns the bytes of a bank that it occupies.
  int64_t placeKernels(std::vector<Plan>& plans) const {
    std::vector<PleKernel> kernels;
    for (size_t k = 0; k < plans.size(); ++k) {
      const PleKernel& kernel = plans[k].kernel;
      const auto found = std::find(kernels.begin(), kernels.end(), kernel);
      plans[k].kernelPlace = static_cast<int32_t>(found - kernels.begin());
      if (found == kernels.end()) kernels.push_back(kernel);
    }
    return kPleKernelMaxBytes * static_cast<int64_t>(kernels.size());
  }

  /// Places all weights below `top`, in order; returns their first byte.
  int64_t placeWeights(std::vector<Plan>& plans, int64_t top) const {
    int64_t bytes = 0;
    for (const SectionMember& member : members_)
      bytes += member.weights != nullptr ? member.weights->bankBytes : 0;
    int64_t at = top - bytes;
    Plan* leader = nullptr;
    for (size_t k = 0; k < plans.size(); ++k) {
      const std::shared_ptr<const EncodedWeights>& weights = members_[k].weights;
      if (weights == nullptr) continue;
      Plan& plan = plans[k];
      plan.weights = {at, weights->bankBytes, 1};
      at += weights->bankBytes;
      plan.encoded = weights;
      if (leader == nullptr) {
        leader = &plan;
        continue;
      }
      plan.weightsAreThere = true;
      leader->together.push_back(first_ + k);
      leader->togetherBytes += weights->stripeBytes;
    }
    return top - bytes;
  }

  std::span<const SectionMember> members_;
  size_t first_;
  const PassList& list_;
  const Target& target_;
  bool stays_;
};

}  // namespace

std::optional<int32_t> chainedInput(const Pass& first, const Pass& second, const PassList& list) {
  const Storage& storage = list.storages[static_cast<size_t>(first.output.storage)];
  if (first.kind == PassKind::Copy || second.kind == PassKind::Copy || !first.output.isWhole() ||
      storage.kind != Storage::Kind::Intermediate)
    return std::nullopt;
  for (size_t i = 0; i < second.inputs.size(); ++i) {
    const FeatureMap& in = second.inputs[i];
    if (in.isWhole() && in.isSameAs(first.output)) return static_cast<int32_t>(i);
  }
  return std::nullopt;
}

std::optional<SectionPlan> planSection(std::span<const SectionMember> members, size_t first,
                                       const PassList& list, const Target& target, bool stays) {
  return SectionPlanner(members, first, list, target, stays).plan();
}

}  // namespace carina::ethosn::compiler
