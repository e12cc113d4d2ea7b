// SPDX-License-Identifier: Apache-2.0
#include "ethosn/compiler/plan.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace carina::ethosn::compiler {
namespace {

bool halves(PleOperation operation) {
  return operation == PleOperation::Interleave2x2 || operation == PleOperation::MaxPool2x2 ||
         operation == PleOperation::Downsample2x2 || operation == PleOperation::MaxPool3x3Even ||
         operation == PleOperation::MaxPool3x3Odd;
}

/// Kernels that read neighbouring rows need whole planes.
bool splitsRows(const Pass& pass) {
  if (pass.kind == PassKind::Copy) return true;
  if (pass.kind == PassKind::Mce && pass.weights.operation == MceOperation::FullyConnected) return false;
  switch (pass.kernel.operation) {
    case PleOperation::AvgPool3x3:
    case PleOperation::MeanXy7x7:
    case PleOperation::MeanXy8x8:
    case PleOperation::MaxPool1d:
    case PleOperation::TransposeXy:
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
  bool above = false, below = false, left = false, right = false;
};

/// Whether the filter reads beyond the rows and columns of its own stripe.
Needs reach(const Pass& pass) {
  Needs out;
  if (pass.kind != PassKind::Mce || pass.weights.operation == MceOperation::FullyConnected) return out;
  const std::vector<SubFilter> subs = subFilters(pass.weights);
  for (size_t i = 0; i < subs.size(); ++i) {
    out.above |= pass.subTop[i] > 0;
    out.below |= subs[i].height - 1 - pass.subTop[i] > 0 || pass.resampling == Resampling::Bilinear;
    out.left |= pass.subLeft[i] > 0;
    out.right |= subs[i].width - 1 - pass.subLeft[i] > 0;
  }
  return out;
}

constexpr int32_t kMostIterations = 32;  // over parts of a layer's input channels

/// Traffic that the metric hides, because something else takes longer, still has a small cost.
constexpr uint64_t kHiddenBytesPerCycle = 64;

class Planner {
 public:
  Planner(const Pass& pass, const PassList& list, const Target& target, WeightForms& weights,
          const Occupied& occupied, bool stays)
      : pass_(pass),
        list_(list),
        target_(target),
        variant_(*target.variant),
        weights_(weights),
        occupied_(occupied),
        stays_(stays) {}

  Result<Plan> plan();
  std::optional<Plan> rowsOnly(int32_t rows, bool generous) const;
  PassWork workOf(const Plan& plan) const;

 private:
  struct Cut {
    int32_t rows, channels;
    bool channelsOutside;
    int32_t iterationChannels = 0;  // 0: all at once
    int32_t columns = 0;            // 0: all
  };
  struct Candidate {
    uint64_t cost;
    Plan plan;
  };
  std::vector<Cut> cuts() const;
  std::vector<Cut> cutsOfInputs() const;
  Result<std::optional<Candidate>> best();
  bool prepare(const Cut& cut, Plan& plan) const;
  bool prepareColumns(const Cut& cut, Plan& plan) const;
  void trySlots(Plan plan, std::optional<Candidate>& best) const;
  void tryIterations(Plan plan, std::optional<Candidate>& best) const;
  bool tryPlace(Plan plan, std::optional<Candidate>& best) const;
  int64_t inputSlotBytes(const FeatureMap& in, int32_t rows, int32_t channels) const;
  int64_t weightBankBytes(int32_t channels, int32_t iterationChannels) const;
  Transfers iteratedTransfers(const Plan& plan) const;
  Transfers packedTransfers(const Plan& plan) const;
  /// Input channels of the convolution; `channels` is as the MCE sees them, four sub-maps if it is strided.
  int32_t weightInputs(int32_t channels) const { return isStrided() ? channels / 4 : channels; }
  bool place(Plan& plan) const;
  Transfers inputTransfers(const Plan& plan) const;

  int32_t allRows() const { return pass_.kind == PassKind::Mce ? pass_.mceHeight : pass_.inputs[0].height; }
  int32_t allChannels() const {
    return pass_.kind == PassKind::Mce ? pass_.mceChannels : pass_.inputs[0].channels;
  }
  bool isVector() const {
    return pass_.kind == PassKind::Mce && pass_.weights.operation == MceOperation::FullyConnected;
  }
  bool isStrided() const { return pass_.kind == PassKind::Mce && pass_.weights.strideX == 2; }

  const Pass& pass_;
  const PassList& list_;
  const Target& target_;
  const Variant& variant_;
  WeightForms& weights_;
  const Occupied& occupied_;
  bool stays_;
};

std::vector<Planner::Cut> Planner::cuts() const {
  const bool halved = pass_.kind != PassKind::Copy && halves(pass_.kernel.operation);
  const int32_t rowUnit = halved || pass_.upscale() == 2 ? 16 : 8;
  const int32_t channelUnit = std::max(16, mixesChannels(pass_) ? variant_.ogs() : variant_.banks());
  const auto sizes = [](int32_t all, int32_t unit, bool allowed) {
    std::vector<int32_t> out = {all};
    // Finer granularity while there are few stripes, when one more makes a difference.
    const int32_t most = allowed ? divideUp(all, unit) : 1;
    for (int32_t n = 2; n <= most; n = n == most ? most + 1 : std::min(most, n + std::max(1, n / 4))) {
      const int32_t size = roundUp(divideUp(all, n), unit);
      if (size < out.back()) out.push_back(size);
    }
    return out;
  };
  std::vector<Cut> out;
  for (int32_t rows : sizes(allRows(), rowUnit, splitsRows(pass_))) {
    const int32_t rowStripes = divideUp(allRows(), rows);
    // If the output is taller than the input, a stripe may have no input rows of its own.
    const int32_t inputRows = pass_.inputs[0].height;
    if (pass_.kind == PassKind::Mce && rowStripes > 1 &&
        divideUp(inputRows, rows / pass_.upscale()) < rowStripes)
      continue;
    // Every stripe must have rows of the output.
    if (rowStripes > 1 && outputRows(pass_, rows) * (rowStripes - 1) >= pass_.output.height &&
        pass_.kind != PassKind::Copy)
      continue;
    for (int32_t channels : sizes(allChannels(), channelUnit, !stays_ && splitsChannels(pass_, list_))) {
      const bool both = rowStripes > 1 && channels < allChannels();
      // If a stripe reads its own channels only, they are the outer loop: rows that a filter, or the next
      // stripe of a pooling, needs again then follow each other.
      const bool anyOrder = mixesChannels(pass_) && !endsRowsLater(pass_);
      if (!both || anyOrder) out.push_back({rows, channels, false});
      if (both) out.push_back({rows, channels, true});
    }
  }
  return out;
}

/// Stripes of as many outputs as the OGs have accumulators for, over parts of the input channels, and over
/// some of the columns if a block cannot hold all.
std::vector<Planner::Cut> Planner::cutsOfInputs() const {
  std::vector<Cut> out;
  if (!mixesChannels(pass_) || isVector() || pass_.upscale() == 2 || !splitsRows(pass_) ||
      endsRowsLater(pass_) || !splitsChannels(pass_, list_) || !canSplitChannels(pass_.inputs[0], list_))
    return out;
  const int32_t unit = isStrided() ? 4 * variant_.banks() : std::max(kBrickDepth, variant_.igs());
  const int32_t most = std::min(kMostIterations, divideUp(pass_.inputChannels, unit));
  constexpr int32_t kWidestBlock = 32;
  const bool wide = pass_.mceWidth > kWidestBlock;
  const bool halved = halves(pass_.kernel.operation);
  const auto add = [&](int32_t rows, int32_t columns) {
    for (int32_t n = wide ? 1 : 2; n <= most; ++n) {
      for (bool channelsOutside : {true, false})
        out.push_back({rows, std::min(variant_.ogs(), allChannels()), channelsOutside,
                       roundUp(divideUp(pass_.inputChannels, n), unit), columns});
    }
  };
  for (int32_t rows : {32, 16, 8}) {
    const int32_t stripe = std::min(rows, allRows());
    if (halved && rows == 8 && stripe < allRows()) continue;
    if (!wide) add(stripe, 0);
    for (int32_t columns : {32, 16, 8}) {
      if (wide && !(halved && columns == 8)) add(stripe, columns);
    }
  }
  return out;
}

int64_t Planner::inputSlotBytes(const FeatureMap& in, int32_t rows, int32_t channels) const {
  if (isVector()) return groupStride(pass_.inputChannels, variant_);
  return groupStride(channels, variant_) * divideUp(in.width, 8) * divideUp(std::min(rows, in.height), 8);
}

/// Tiles from address 0 up, the weights last; the PLE's code is at the end of each bank.
bool Planner::place(Plan& plan) const {
  std::vector<TilePlan> taken = occupied_.others;
  for (const Occupied::Resident& kept : occupied_.residents) taken.push_back(kept.tile);
  TileRoom room(taken);
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    if (!plan.resident[i]) room.place(plan.inputs[i]);
  }
  for (const Occupied::Resident& kept : occupied_.residents)
    plan.inputs[kept.input].address = kept.tile.address;
  if (pass_.kind != PassKind::Copy) room.place(plan.output);
  plan.peak = room.peak();
  room.place(plan.weights);
  return room.end() <= target_.bankBytes() - kPleKernelMaxBytes;
}

/// The part of the plan for a cut in columns. False if a stripe has no part of the input or of the output.
bool Planner::prepareColumns(const Cut& cut, Plan& plan) const {
  if (cut.columns == 0) return true;
  const FeatureMap& in = pass_.inputs[0];
  const Needs needs = reach(pass_);
  plan.columns = cut.columns;
  plan.columnStripes = divideUp(pass_.mceWidth, cut.columns);
  const int32_t inputStripes = divideUp(in.width, cut.columns);
  if (inputStripes < plan.columnStripes || plan.inputRowStripes < plan.rowStripes) return false;
  if (outputColumns(pass_, cut.columns) * (plan.columnStripes - 1) >= pass_.output.width ||
      outputRows(pass_, cut.rows) * (plan.rowStripes - 1) >= pass_.output.height)
    return false;
  plan.needsLeft = needs.left;
  plan.needsRight = needs.right || inputStripes > plan.columnStripes;
  return true;
}

/// All of the plan but slots and addresses. False if the cut is impossible.
bool Planner::prepare(const Cut& cut, Plan& plan) const {
  plan.rows = cut.rows;
  plan.channels = cut.channels;
  plan.channelsOutside = cut.channelsOutside;
  plan.rowStripes = divideUp(allRows(), cut.rows);
  plan.channelStripes = divideUp(allChannels(), cut.channels);
  plan.kernel = fastestKernel(pass_, variant_, cut.rows, cut.channels);
  if (cut.iterationChannels > 0) {
    plan.iterations = divideUp(pass_.inputChannels, cut.iterationChannels);
    plan.iterationChannels = cut.iterationChannels;
    const std::optional<PleKernel> kernel =
        oneBlockKernel(pass_, cut.rows, cut.columns > 0 ? cut.columns : pass_.mceWidth);
    if (!kernel || !occupied_.residents.empty()) return false;
    plan.kernel = *kernel;
  }
  plan.stays = stays_;
  const bool mixes = mixesChannels(pass_);
  const Needs needs = reach(pass_);
  const int32_t inputRows = pass_.inputs[0].height, stripeRows = cut.rows / pass_.upscale();
  plan.inputRowStripes = isVector() || plan.rowStripes == 1 ? 1 : divideUp(inputRows, stripeRows);
  plan.needsAbove = needs.above && plan.inputRowStripes > 1;
  plan.needsBelow = (needs.below || plan.inputRowStripes > plan.rowStripes) && plan.inputRowStripes > 1;
  if (!prepareColumns(cut, plan)) return false;
  plan.resident.assign(pass_.inputs.size(), false);
  for (const Occupied::Resident& kept : occupied_.residents) {
    if (plan.inputRowStripes > kMaxTileSlots || (plan.channelStripes > 1 && !mixes)) return false;
    plan.resident[kept.input] = true;
  }
  // An output that stays consists of successive stripes, each of whole groups of eight rows.
  const bool aligned = plan.rowStripes == 1 || outputRows(pass_, cut.rows) % kBrickEdge == 0;
  if (stays_ && (plan.channelStripes > 1 || plan.columns > 0 || !aligned)) return false;
  const int32_t inputChannels = plan.iterations > 1 ? plan.iterationChannels
                                : mixes             ? pass_.inputChannels
                                : isStrided()       ? interleavedChannels(cut.channels, variant_)
                                                    : cut.channels;
  for (const FeatureMap& in : pass_.inputs) {
    const int32_t slotRows = plan.rowStripes == 1 ? in.height : stripeRows;
    const int64_t bytes = plan.columns > 0 ? groupStride(inputChannels, variant_) * (packedWidth(plan) / 8) *
                                                 (packedHeight(plan, in) / 8)
                                           : inputSlotBytes(in, slotRows, inputChannels);
    plan.inputs.push_back({0, bytes, 1});
  }
  if (pass_.kind != PassKind::Copy) {
    const int32_t outWidth = isVector()         ? 1
                             : plan.columns > 0 ? outputColumns(pass_, plan.columns)
                                                : pass_.output.width;
    const int64_t bytes = groupStride(outputChannels(pass_, cut.channels, variant_), variant_) *
                          divideUp(outWidth, 8) * divideUp(outputRows(pass_, cut.rows), 8);
    plan.output = {0, bytes, stays_ ? plan.rowStripes : 1};
  }
  return true;
}

/// Bytes of a bank for the weights of a stripe: exact if they have been encoded, otherwise in proportion.
int64_t Planner::weightBankBytes(int32_t channels, int32_t iterationChannels) const {
  const auto exact = std::find_if(weights_.begin(), weights_.end(), [&](const WeightForm& form) {
    return form.channels == channels && form.iterationInputs == weightInputs(iterationChannels);
  });
  if (exact != weights_.end()) return exact->encoded->bankBytes;
  const int64_t stripe = weights_.front().encoded->bankBytes * channels / allChannels();
  return (iterationChannels > 0 ? stripe * iterationChannels / pass_.inputChannels : stripe) / 16 * 16 + 32;
}

bool Planner::tryPlace(Plan plan, std::optional<Candidate>& best) const {
  if (!place(plan)) return false;
  plan.work = workOf(plan);
  const PassWork& work = plan.work;
  const uint64_t traffic = work.input.bytes + work.weights.bytes + work.output.bytes;
  const uint64_t cost = passCycles(work) + traffic / kHiddenBytesPerCycle;
  if (!best || cost < best->cost) best = Candidate{cost, std::move(plan)};
  return true;
}

/// Every stripe loads its part of the rows around it; the weights of a channel stripe are kept for all rows
/// if they fit.
void Planner::tryIterations(Plan plan, std::optional<Candidate>& best) const {
  plan.weights.slotBytes = weightBankBytes(plan.channels, plan.iterationChannels);
  const int32_t around = plan.columns > 0 ? 1 : 1 + (plan.needsAbove ? 1 : 0) + (plan.needsBelow ? 1 : 0);
  for (int32_t inputSlots : {2 * around, around + 1, around}) {
    for (int32_t weightSlots : {plan.iterations + 1, plan.iterations, 2, 1}) {
      plan.inputs[0].slots = inputSlots;
      plan.weights.slots = weightSlots;
      plan.output.slots = std::min(plan.stripes(), inputSlots > around ? 2 : 1);
      if (tryPlace(plan, best)) return;
    }
  }
}

/// Rings of as many slots as fit: more slots load more ahead and reload less.
void Planner::trySlots(Plan plan, std::optional<Candidate>& best) const {
  const bool mixes = mixesChannels(pass_), around = plan.needsAbove || plan.needsBelow;
  const int32_t loads = plan.inputRowStripes * (mixes ? 1 : plan.channelStripes);
  const bool weighted = pass_.kind == PassKind::Mce;
  if (weighted) plan.weights.slotBytes = weightBankBytes(plan.channels, 0);
  // Three slots suffice for a filter that reads neighbouring rows; nothing is loaded ahead.
  const int32_t most = plan.channelsOutside ? kMaxTileSlots : around ? 4 : 2;
  const std::array<int32_t, 3> inputSlots = {most, around ? 4 : 2, around ? 3 : 1};
  for (size_t generous = 0; generous < inputSlots.size(); ++generous) {
    for (int32_t weightSlots : {weighted ? plan.channelStripes : 0, 2, 1}) {
      if (weightSlots > plan.channelStripes || (!weighted && weightSlots > 0)) continue;
      for (size_t i = 0; i < plan.inputs.size(); ++i) {
        plan.inputs[i].slots =
            plan.resident[i] ? plan.inputRowStripes : std::min(loads, inputSlots[generous]);
      }
      plan.weights.slots = weightSlots;
      const int32_t fewest = plan.rowStripes > 1 && endsRowsLater(pass_) ? 2 : 1;
      if (!stays_ && pass_.kind != PassKind::Copy)
        plan.output.slots = generous + 1 < inputSlots.size() ? std::min(plan.stripes(), 2) : fewest;
      if (tryPlace(plan, best)) return;
    }
  }
}

/// Transfers of an input whose stripes have their own slots: all of it for every MCE stripe, unless output
/// channels are the inner loop and one slot holds all input channels.
Transfers Planner::packedTransfers(const Plan& plan) const {
  Transfers out;
  const FeatureMap& in = pass_.inputs[0];
  const bool once = plan.iterations == 1 && !plan.channelsOutside;
  const uint64_t times = once ? 1 : static_cast<uint64_t>(plan.channelStripes);
  for (int32_t part = 0; part < plan.iterations; ++part) {
    const int32_t channels =
        std::min(plan.iterationChannels, pass_.inputChannels - part * plan.iterationChannels);
    for (int32_t position = 0; position < plan.positions(); ++position) {
      for (const PackedBox& box :
           packedBoxes(plan, in, position / plan.columnStripes, position % plan.columnStripes)) {
        const int32_t rows = divideUp(box.height, 8), columns = divideUp(box.width, 8);
        out.bytes += times * static_cast<uint64_t>(int64_t{64} * rows * columns * channels);
        out.commands += times * static_cast<uint64_t>(rows * (plan.iterations == 1 ? 1 : columns));
      }
    }
  }
  return out;
}

/// Transfers of an input that MCE stripes load in parts of its channels: what is not in a slot replaces the
/// least recently used part.
Transfers Planner::iteratedTransfers(const Plan& plan) const {
  Transfers out;
  const FeatureMap& in = pass_.inputs[0];
  const BoxLayout box = boxLayout(list_, in, std::min(plan.rows, in.height), plan.iterationChannels, true);
  if (plan.columns > 0) return packedTransfers(plan);
  std::vector<std::pair<int32_t, int32_t>> slots;  // row and part, the most recently used last
  const auto use = [&](int32_t row, int32_t part) {
    const std::pair<int32_t, int32_t> key(row, part);
    const size_t there = std::erase(slots, key);
    slots.push_back(key);
    if (there > 0) return;
    if (slots.size() > static_cast<size_t>(plan.inputs[0].slots)) slots.erase(slots.begin());
    const int32_t height =
        std::min(plan.inputRowStripes == 1 ? in.height : plan.rows, in.height - row * plan.rows);
    const int32_t channels =
        std::min(plan.iterationChannels, pass_.inputChannels - part * plan.iterationChannels);
    out.bytes += static_cast<uint64_t>(int64_t{roundUp(height, 8)} * roundUp(in.width, 8) * channels);
    out.commands += static_cast<uint64_t>(box.commands());
  };
  for (int32_t stripe = 0; stripe < plan.stripes(); ++stripe) {
    const int32_t row = plan.channelsOutside ? stripe % plan.rowStripes : stripe / plan.channelStripes;
    const int32_t first = std::max(0, row - (plan.needsAbove ? 1 : 0)),
                  last = std::min(plan.inputRowStripes - 1, row + (plan.needsBelow ? 1 : 0));
    for (int32_t iteration = 0; iteration < plan.iterations; ++iteration) {
      for (int32_t part = first; part <= last; ++part)
        use(part, partOf(plan.iterations, static_cast<size_t>(stripe), iteration));
    }
  }
  return out;
}

Transfers Planner::inputTransfers(const Plan& plan) const {
  if (plan.iterations > 1 || plan.columns > 0) return iteratedTransfers(plan);
  Transfers out;
  const bool mixes = mixesChannels(pass_);
  for (size_t i = 0; i < pass_.inputs.size(); ++i) {
    if (plan.resident[i] || plan.chained == static_cast<int32_t>(i)) continue;
    const FeatureMap& in = pass_.inputs[i];
    // With channels as the outer loop, every channel stripe goes through the ring again.
    const bool again = mixes && plan.channelsOutside && plan.inputs[i].slots < plan.inputRowStripes;
    const int32_t times = mixes ? (again ? plan.channelStripes : 1) : plan.channelStripes;
    const int32_t channels = mixes         ? pass_.inputChannels
                             : isStrided() ? interleavedChannels(plan.channels, variant_)
                                           : plan.channels;
    const int32_t rows = plan.inputRowStripes == 1 ? in.height : plan.rows / pass_.upscale();
    const BoxLayout box = boxLayout(list_, in, rows, isVector() ? in.channels : channels, true);
    out.commands += static_cast<uint64_t>(plan.inputRowStripes * times) *
                    static_cast<uint64_t>(isVector() ? 1 : box.commands());
    const int64_t each = isVector() ? int64_t{64} * pass_.inputChannels
                         : list_.storages[static_cast<size_t>(in.storage)].layout == Layout::Nhwc
                             ? int64_t{in.height} * in.width * in.channels
                             : int64_t{roundUp(in.height, 8)} * roundUp(in.width, 8) * in.channels;
    out.bytes += static_cast<uint64_t>(each) * static_cast<uint64_t>(mixes ? times : 1);
  }
  return out;
}

PassWork Planner::workOf(const Plan& plan) const {
  PassWork work;
  work.input = inputTransfers(plan);
  const auto rowStripes = static_cast<uint64_t>(plan.positions()),
             channelStripes = static_cast<uint64_t>(plan.channelStripes);
  const uint64_t stripes = rowStripes * channelStripes;
  if (pass_.kind == PassKind::Mce) {
    const int32_t once = plan.iterations * (plan.channelsOutside ? 1 : plan.channelStripes);
    const bool alwaysNew = plan.channelsOutside && plan.iterations == 1;
    const bool again = rowStripes > 1 && !alwaysNew && plan.weights.slots < once;
    work.weights.commands =
        channelStripes * static_cast<uint64_t>(plan.iterations) * (again ? rowStripes : 1);
    work.weights.bytes = work.weights.commands * static_cast<uint64_t>(plan.weights.slotBytes) *
                         static_cast<uint64_t>(variant_.banks());
  }
  if (!plan.stays && !plan.handed) {
    const FeatureMap& out = pass_.output;
    const int32_t rows = plan.rowStripes == 1 ? out.height : outputRows(pass_, plan.rows);
    const int32_t channels =
        plan.channelStripes == 1 ? out.channels : outputChannels(pass_, plan.channels, variant_);
    FeatureMap part = out;
    if (plan.columns > 0) part.width = std::min(outputColumns(pass_, plan.columns), out.width);
    work.output.commands =
        stripes * static_cast<uint64_t>(boxLayout(list_, part, rows, channels, false).commands());
    const bool rowsOnly = list_.storages[static_cast<size_t>(out.storage)].layout == Layout::Nhwc;
    work.output.bytes = static_cast<uint64_t>(rowsOnly ? int64_t{out.height} * out.width * out.channels
                                                       : int64_t{roundUp(out.height, 8)} *
                                                             roundUp(out.width, 8) * out.channels);
  }
  if (pass_.kind == PassKind::Mce) {
    work.mceStripes = stripes * static_cast<uint64_t>(plan.iterations);
    work.mceCycles =
        mceCyclesOf(pass_, plan.kernel, variant_, plan.rows, plan.channels, plan.columns) * stripes;
  }
  if (pass_.kind != PassKind::Copy) {
    work.pleStripes = stripes;
    work.pleCycles =
        pleCyclesOf(pass_, plan.kernel, variant_, plan.rows, plan.channels, plan.columns) * stripes;
    work.pleOverhead = pleStripeOverhead(pass_.kernel.operation);
  }
  // A ring without a free slot is filled after the stripe is done, without overlap.
  const bool around = plan.needsAbove || plan.needsBelow;
  const auto spread = [stripes](bool beside) { return beside ? stripes : 1; };
  bool ahead = true;
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const bool there = plan.resident[i] || plan.chained == static_cast<int32_t>(i);
    const int32_t both = 1 + (plan.needsAbove ? 1 : 0) + (plan.needsBelow ? 1 : 0);
    const int32_t needed = plan.columns > 0 ? 1 : plan.iterations > 1 ? both : around ? 3 : 1;
    ahead &= there || plan.inputs[i].slots > needed;
  }
  work.input.stripes = spread(ahead);
  work.weights.stripes = spread(plan.weights.slots > 1);
  work.output.stripes = spread(plan.output.slots > 1);
  return work;
}

std::optional<Plan> Planner::rowsOnly(int32_t rows, bool generous) const {
  Plan plan;
  if (!splitsRows(pass_) || endsRowsLater(pass_) || !prepare({rows, allChannels(), false}, plan))
    return std::nullopt;
  if (plan.inputRowStripes < plan.rowStripes) return std::nullopt;
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const int32_t slots = slotsAround(plan);
    plan.inputs[i].slots =
        plan.resident[i] ? plan.inputRowStripes : std::min(plan.inputRowStripes, slots + (generous ? 1 : 0));
  }
  if (!stays_) plan.output.slots = std::min(plan.rowStripes, generous ? 2 : 1);
  return plan;
}

Result<std::optional<Planner::Candidate>> Planner::best() {
  std::optional<Candidate> best;
  for (const Cut& cut : cuts()) {
    Plan plan;
    if (prepare(cut, plan)) trySlots(std::move(plan), best);
  }
  if (best) return best;
  for (const Cut& cut : cutsOfInputs()) {
    Plan plan;
    if (prepare(cut, plan)) tryIterations(std::move(plan), best);
  }
  return best;
}

Result<Plan> Planner::plan() {
  const bool weighted = pass_.kind == PassKind::Mce;
  if (weighted && weights_.empty()) {
    if (auto form = weightsOf(pass_, variant_, weights_, allChannels()); !form.ok())
      return std::move(form).error();
  }
  // Repeats until the weights of the best cut have been encoded, so that their sizes are known.
  for (;;) {
    CARINA_TRY(std::optional<Candidate> found, best());
    if (!found) break;
    Plan& plan = found->plan;
    if (!weighted) return std::move(plan);
    const size_t forms = weights_.size();
    CARINA_TRY(plan.encoded,
               weightsOf(pass_, variant_, weights_, plan.channels, weightInputs(plan.iterationChannels)));
    if (weights_.size() != forms) continue;
    return std::move(plan);
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
  if (endsRowsLater(pass) && rows >= pass.mceHeight) return pass.output.height;
  return halves(pass.kernel.operation) ? divideUp(rows, 2) : rows;
}

int32_t outputColumns(const Pass& pass, int32_t columns) {
  return halves(pass.kernel.operation) ? divideUp(columns, 2) : columns;
}

int32_t packedHeight(const Plan& plan, const FeatureMap& in) {
  const int32_t own = roundUp(plan.rowStripes == 1 ? in.height : plan.rows, 8);
  return own + (plan.needsAbove ? 8 : 0) + (plan.needsBelow ? 8 : 0);
}

int32_t packedWidth(const Plan& plan) {
  return roundUp(plan.columns, 8) + (plan.needsLeft ? 8 : 0) + (plan.needsRight ? 8 : 0);
}

std::vector<PackedBox> packedBoxes(const Plan& plan, const FeatureMap& in, int32_t row, int32_t column) {
  const int32_t y = row * plan.rows, x = column * plan.columns;
  const int32_t rows = plan.rowStripes == 1 ? in.height : plan.rows + (plan.needsBelow ? 8 : 0);
  const int32_t height = std::min(rows, in.height - y),
                width = std::min(plan.columns + (plan.needsRight ? 8 : 0), in.width - x);
  const int32_t top = packedHeight(plan, in) - 8, left = packedWidth(plan) - 8;
  std::vector<PackedBox> out = {{y, x, height, width, 0, 0}};
  const bool above = plan.needsAbove && row > 0, before = plan.needsLeft && column > 0;
  if (before) out.push_back({y, x - 8, height, 8, 0, left});
  if (above) out.push_back({y - 8, x, 8, width, top, 0});
  if (above && before) out.push_back({y - 8, x - 8, 8, 8, top, left});
  return out;
}

bool endsRowsLater(const Pass& pass) {
  return pass.kind == PassKind::Mce && (pass.kernel.operation == PleOperation::MaxPool3x3Even ||
                                        pass.kernel.operation == PleOperation::MaxPool3x3Odd);
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

int32_t slotsAround(const Plan& plan) {
  return plan.needsAbove || plan.needsBelow ? 3 : 1;
}

TileRoom::TileRoom(std::span<const TilePlan> taken) {
  for (const TilePlan& tile : taken)
    taken_.emplace_back(tile.address, tile.address + tile.slotBytes * tile.slots);
  std::sort(taken_.begin(), taken_.end());
}

void TileRoom::place(TilePlan& tile) {
  const int64_t bytes = tile.slotBytes * tile.slots;
  for (const auto& [from, to] : taken_) {
    if (end_ < to && end_ + bytes > from) end_ = to;
  }
  tile.address = end_;
  end_ += bytes;
}

int64_t TileRoom::peak() const {
  return std::max(end_, taken_.empty() ? 0 : taken_.back().second);
}

BoxLayout boxLayout(const PassList& list, const FeatureMap& map, int32_t height, int32_t channels,
                    bool reads) {
  BoxLayout out;
  if (map.planar || list.storages[static_cast<size_t>(map.storage)].layout == Layout::Nhwc) return out;
  const int32_t bricks = divideUp(map.wholeChannels, kBrickDepth);
  const bool allChannels = divideUp(channels, kBrickDepth) == bricks;
  out.rows = divideUp(height, kBrickEdge);
  out.columns = divideUp(map.width, kBrickEdge);
  // Writes may skip bricks between two that they write.
  out.strided = !reads && !allChannels && channels <= kBrickDepth;
  const bool wide = out.columns == divideUp(map.wholeWidth, kBrickEdge);
  out.rowByRow = allChannels || out.strided;
  out.inOne = (out.rowByRow && (wide || out.rows == 1)) || (out.rows == 1 && out.columns == 1);
  return out;
}

Result<std::shared_ptr<const EncodedWeights>> weightsOf(const Pass& pass, const Variant& variant,
                                                        WeightForms& forms, int32_t channels,
                                                        int32_t iterationInputs) {
  for (const WeightForm& form : forms) {
    if (form.channels == channels && form.iterationInputs == iterationInputs) return form.encoded;
  }
  const int32_t inputs = iterationInputs > 0 ? iterationInputs : roundUp(pass.weights.inputs, 1024);
  CARINA_TRY(EncodedWeights encoded, encodeWeights(pass.weights, variant, {channels, inputs}));
  forms.push_back({channels, iterationInputs, std::make_shared<const EncodedWeights>(std::move(encoded))});
  return forms.back().encoded;
}

Result<Plan> planPass(const Pass& pass, const PassList& list, const Target& target, WeightForms& weights,
                      const Occupied& occupied, bool stays) {
  return Planner(pass, list, target, weights, occupied, stays).plan();
}

std::optional<Plan> planRows(const Pass& pass, const PassList& list, const Target& target, int32_t rows,
                             const Occupied& occupied, bool stays, bool generous) {
  WeightForms none;
  return Planner(pass, list, target, none, occupied, stays).rowsOnly(rows, generous);
}

PassWork workOfPlan(const Pass& pass, const PassList& list, const Target& target, const Plan& plan) {
  WeightForms none;
  return Planner(pass, list, target, none, {}, plan.stays).workOf(plan);
}

}  // namespace carina::ethosn::compiler
