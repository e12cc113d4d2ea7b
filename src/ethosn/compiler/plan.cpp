// SPDX-License-Identifier: Apache-2.0
#include "ethosn/compiler/plan.hpp"

#include <algorithm>

namespace carina::ethosn::compiler {
namespace {

bool halves(PleOperation operation) {
  return operation == PleOperation::Interleave2x2 || operation == PleOperation::MaxPool2x2 ||
         operation == PleOperation::Downsample2x2;
}

/// Kernels that look at neighbouring rows see whole planes only.
bool splitsRows(const Pass& pass) {
  if (pass.kind == PassKind::Copy) return true;
  if (pass.kind == PassKind::Mce && pass.weights.operation == MceOperation::FullyConnected) return false;
  switch (pass.kernel.operation) {
    case PleOperation::AvgPool3x3:
    case PleOperation::MaxPool3x3Even:
    case PleOperation::MaxPool3x3Odd:
    case PleOperation::MeanXy7x7:
    case PleOperation::MeanXy8x8:
    case PleOperation::MaxPool1d:
      return false;
    default:
      return true;
  }
}

/// Whether a stripe of output channels needs all input channels.
bool mixesChannels(const Pass& pass) {
  return pass.kind == PassKind::Mce && pass.weights.operation != MceOperation::Depthwise;
}

bool canSplitChannels(const FeatureMap& map, const PassList& list) {
  return !map.planar &&
         (list.storages[static_cast<size_t>(map.storage)].layout == Layout::Nhwcb || map.wholeWidth == 1);
}

bool splitsChannels(const Pass& pass, const PassList& list) {
  if (!canSplitChannels(pass.output, list)) return false;
  if (mixesChannels(pass)) return true;
  return std::all_of(pass.inputs.begin(), pass.inputs.end(),
                     [&list](const FeatureMap& in) { return canSplitChannels(in, list); });
}

struct Needs {
  bool above = false, below = false;
};

/// Whether the filter reaches beyond the rows of its own stripe.
Needs reach(const Pass& pass) {
  Needs out;
  if (pass.kind != PassKind::Mce || pass.weights.operation == MceOperation::FullyConnected) return out;
  const std::vector<SubFilter> subs = subFilters(pass.weights);
  for (size_t i = 0; i < subs.size(); ++i) {
    out.above |= pass.subTop[i] > 0;
    out.below |= subs[i].height - 1 - pass.subTop[i] > 0 || pass.resampling == Resampling::Bilinear;
  }
  return out;
}

class Planner {
 public:
  Planner(const Pass& pass, const PassList& list, const Target& target, const Occupied& occupied)
      : pass_(pass), list_(list), target_(target), variant_(*target.variant), occupied_(occupied) {}

  Result<Plan> plan();

 private:
  struct Cut {
    int32_t rows, channels;
    int64_t cost;
  };
  std::vector<Cut> cuts() const;
  Result<bool> tryCut(const Cut& cut, Plan& plan);
  int64_t inputSlotBytes(const FeatureMap& in, int32_t rows, int32_t channels) const;
  bool place(Plan& plan) const;

  int32_t allRows() const { return pass_.kind == PassKind::Mce ? pass_.mceHeight : pass_.inputs[0].height; }
  int32_t allChannels() const {
    return pass_.kind == PassKind::Mce ? pass_.mceChannels : pass_.inputs[0].channels;
  }
  bool isVector() const {
    return pass_.kind == PassKind::Mce && pass_.weights.operation == MceOperation::FullyConnected;
  }

  const Pass& pass_;
  const PassList& list_;
  const Target& target_;
  const Variant& variant_;
  const Occupied& occupied_;
  std::vector<std::pair<int32_t, EncodedWeights>> encoded_;  // by channels per stripe
};

/// Ways to cut, the fewest stripes first; those that load something twice count four times.
std::vector<Planner::Cut> Planner::cuts() const {
  const bool halved = pass_.kind != PassKind::Copy && halves(pass_.kernel.operation);
  const int32_t rowUnit = halved || pass_.upscale() == 2 ? 16 : 8;
  const int32_t channelUnit = std::max(16, mixesChannels(pass_) ? variant_.ogs() : variant_.banks());
  const auto sizes = [](int32_t all, int32_t unit, bool allowed) {
    std::vector<int32_t> out = {all};
    for (int32_t n = 2; allowed && n <= divideUp(all, unit); ++n) {
      const int32_t size = roundUp(divideUp(all, n), unit);
      if (size < out.back()) out.push_back(size);
    }
    return out;
  };
  std::vector<Cut> out;
  for (int32_t rows : sizes(allRows(), rowUnit, splitsRows(pass_))) {
    const int32_t rowStripes = divideUp(allRows(), rows);
    // The stripe of an output that is taller than the input has no rows of its own to start from.
    const int32_t inputRows = pass_.inputs[0].height;
    if (pass_.kind == PassKind::Mce && rowStripes > 1 &&
        divideUp(inputRows, rows / pass_.upscale()) < rowStripes)
      continue;
    for (int32_t channels : sizes(allChannels(), channelUnit, splitsChannels(pass_, list_))) {
      const int32_t channelStripes = divideUp(allChannels(), channels);
      const bool twice = rowStripes > 1 && channelStripes > 1 && pass_.kind == PassKind::Mce;
      out.push_back({rows, channels, int64_t{rowStripes} * channelStripes * (twice ? 4 : 1)});
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const Cut& a, const Cut& b) { return a.cost < b.cost; });
  return out;
}

int64_t Planner::inputSlotBytes(const FeatureMap& in, int32_t rows, int32_t channels) const {
  if (isVector()) return groupStride(pass_.inputChannels, variant_);
  return groupStride(channels, variant_) * divideUp(in.width, 8) * divideUp(std::min(rows, in.height), 8);
}

/// Tiles from address 0 up; the PLE's code lies at the end of each bank.
bool Planner::place(Plan& plan) const {
  std::vector<std::pair<int64_t, int64_t>> taken;
  for (const Occupied::Resident& kept : occupied_.residents) {
    taken.emplace_back(kept.tile.address, kept.tile.address + kept.tile.slotBytes);
  }
  for (const TilePlan& kept : occupied_.others)
    taken.emplace_back(kept.address, kept.address + kept.slotBytes);
  std::sort(taken.begin(), taken.end());
  int64_t at = 0;
  const auto lay = [&](TilePlan& tile) {
    const int64_t bytes = tile.slotBytes * tile.slots;
    for (const auto& [from, to] : taken) {
      if (at < to && at + bytes > from) at = to;
    }
    tile.address = at;
    at += bytes;
  };
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    if (!plan.resident[i]) lay(plan.inputs[i]);
  }
  for (const Occupied::Resident& kept : occupied_.residents)
    plan.inputs[kept.input].address = kept.tile.address;
  lay(plan.weights);
  if (pass_.kind != PassKind::Copy) lay(plan.output);
  return at <= target_.bankBytes() - kPleKernelMaxBytes;
}

Result<bool> Planner::tryCut(const Cut& cut, Plan& plan) {
  plan = {};
  plan.rows = cut.rows;
  plan.channels = cut.channels;
  plan.rowStripes = divideUp(allRows(), cut.rows);
  plan.channelStripes = divideUp(allChannels(), cut.channels);
  const bool mixes = mixesChannels(pass_);
  const Needs needs = reach(pass_);
  const int32_t inputRows = pass_.inputs[0].height, stripeRows = cut.rows / pass_.upscale();
  plan.inputRowStripes = isVector() || plan.rowStripes == 1 ? 1 : divideUp(inputRows, stripeRows);
  plan.needsAbove = needs.above && plan.inputRowStripes > 1;
  plan.needsBelow = (needs.below || plan.inputRowStripes > plan.rowStripes) && plan.inputRowStripes > 1;
  const int32_t stripes = plan.rowStripes * plan.channelStripes;
  plan.resident.assign(pass_.inputs.size(), false);
  for (const Occupied::Resident& kept : occupied_.residents) {
    if (plan.rowStripes > 1 || (plan.channelStripes > 1 && !mixes)) return false;
    plan.resident[kept.input] = true;
  }

  const bool strided = pass_.kind == PassKind::Mce && pass_.weights.strideX == 2;
  const int32_t inputChannels = mixes     ? pass_.inputChannels
                                : strided ? interleavedChannels(cut.channels, variant_)
                                          : cut.channels;
  for (const FeatureMap& in : pass_.inputs) {
    const int32_t slotRows = plan.rowStripes == 1 ? in.height : stripeRows;
    const int32_t loads = plan.inputRowStripes * (mixes ? 1 : plan.channelStripes);
    const int32_t neighbours = plan.needsAbove || plan.needsBelow ? 4 : 2;
    plan.inputs.push_back({0, inputSlotBytes(in, slotRows, inputChannels), std::min(loads, neighbours)});
  }
  if (pass_.kind != PassKind::Copy) {
    const int32_t outWidth = isVector() ? 1 : pass_.output.width;
    const int64_t bytes = groupStride(outputChannels(pass_, cut.channels, variant_), variant_) *
                          divideUp(outWidth, 8) * divideUp(outputRows(pass_, cut.rows), 8);
    plan.output = {0, bytes, std::min(stripes, 2)};
  }
  if (!place(plan)) {
    // Three slots do for a filter that looks at its neighbours: nothing is loaded ahead.
    for (TilePlan& tile : plan.inputs) {
      tile.slots = std::min(tile.slots, plan.needsAbove || plan.needsBelow ? 3 : 1);
    }
    plan.output.slots = std::min(plan.output.slots, 1);
    if (!place(plan)) return false;
  }
  if (pass_.kind != PassKind::Mce) return true;

  auto found =
      std::find_if(encoded_.begin(), encoded_.end(), [&](const auto& e) { return e.first == cut.channels; });
  if (found == encoded_.end()) {
    CARINA_TRY(EncodedWeights encoded,
               encodeWeights(pass_.weights, variant_, {cut.channels, roundUp(pass_.weights.inputs, 1024)}));
    encoded_.emplace_back(cut.channels, std::move(encoded));
    found = encoded_.end() - 1;
  }
  const int64_t reloads = int64_t{plan.rowStripes - 1} * static_cast<int64_t>(found->second.bytes.size());
  const int64_t inputAgain =
      int64_t{plan.channelStripes - 1} * inputRows * pass_.inputs[0].width * pass_.inputs[0].channels;
  plan.channelsOutside = plan.rowStripes > 1 && plan.channelStripes > 1 && inputAgain < reloads;
  for (int32_t slots : {plan.channelStripes, 2, 1}) {
    plan.weights = {0, found->second.bankBytes, std::min(slots, plan.channelStripes)};
    if (!place(plan)) continue;
    plan.encoded = found->second;
    return true;
  }
  return false;
}

Result<Plan> Planner::plan() {
  Plan plan;
  for (const Cut& cut : cuts()) {
    CARINA_TRY(const bool fits, tryCut(cut, plan));
    if (fits) return plan;
  }
  return fail(Code::DoesNotFit, "no stripe of {}x{}x{} fits the {} bytes of SRAM", pass_.inputs[0].height,
              pass_.inputs[0].width, pass_.inputs[0].channels, target_.sramBytes)
      .at(pass_.name)
      .withRemedy("choose a variant with more SRAM, or keep the operator on the CPU");
}

}  // namespace

int32_t outputRows(const Pass& pass, int32_t rows) {
  if (pass.kind == PassKind::Copy) return rows;
  if (!splitsRows(pass)) return pass.output.height;
  return halves(pass.kernel.operation) ? divideUp(rows, 2) : rows;
}

int32_t outputChannels(const Pass& pass, int32_t channels, const Variant& variant) {
  const bool interleaves =
      pass.kind != PassKind::Copy && pass.kernel.operation == PleOperation::Interleave2x2;
  return interleaves ? interleavedChannels(channels, variant) : channels;
}

int32_t interleavedChannels(int32_t channels, const Variant& variant) {
  const int32_t banks = variant.banks(), rest = channels % banks;
  return channels / banks * 4 * banks + (rest == 0 ? 0 : 3 * banks + rest);
}

int64_t groupStride(int32_t channels, const Variant& variant) {
  return int64_t{divideUp(channels, variant.banks())} * 64;
}

Result<Plan> planPass(const Pass& pass, const PassList& list, const Target& target,
                      const Occupied& occupied) {
  return Planner(pass, list, target, occupied).plan();
}

}  // namespace carina::ethosn::compiler
