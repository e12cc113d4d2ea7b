// SPDX-License-Identifier: Apache-2.0
// How a pass is cut into stripes that fit SRAM, and where its tiles are placed.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ethosn/compiler/pass.hpp"
#include "ethosn/cost/metric.hpp"

namespace carina::ethosn::compiler {

/// A ring of slots in every SRAM bank.
struct TilePlan {
  int64_t address = 0;    // bytes in a bank
  int64_t slotBytes = 0;  // in a bank
  int32_t slots = 0;
};

struct Plan {
  int32_t rows = 0;      // of the MCE's output (PLE, copy: of the input) per stripe
  int32_t channels = 0;  // of the MCE's output (PLE, copy: of the input) per stripe
  int32_t rowStripes = 1, channelStripes = 1;
  int32_t inputRowStripes = 1;
  /// Of the MCE's output per stripe; 0: all. A stripe of some columns has its own slots, which include the
  /// rows and columns around it that the filter reads (PackedBox).
  int32_t columns = 0, columnStripes = 1;
  bool channelsOutside = false;  // the loop over channels is the outer one
  PleKernel kernel;              // with the block size that is fastest for such stripes
  bool needsAbove = false, needsBelow = false, needsLeft = false, needsRight = false;
  /// MCE stripes that accumulate over parts of the input channels for one PLE stripe, and the channels of
  /// each part but the last, as the MCE sees them.
  int32_t iterations = 1, iterationChannels = 0;
  std::vector<TilePlan> inputs;
  TilePlan weights, output;
  std::shared_ptr<const EncodedWeights> encoded;  // none: no MCE
  /// Later passes whose weights are loaded together with these, in one transfer, and follow them in SRAM.
  std::vector<size_t> together;
  int64_t togetherBytes = 0;
  bool weightsAreThere = false;  // loaded with those of an earlier pass
  int32_t chained = -1;  // input that the preceding pass produces stripe by stripe, in the same section
  int32_t kernelPlace =
      0;  // position of the PLE's code in SRAM: 0 at the end of the banks, 1 in front of that, ...
  std::vector<bool> resident;  // inputs already in SRAM, where an earlier pass left them
  bool stays = false;          // all of the output stays in SRAM: the slots are its stripes, in order
  bool handed = false;         // the next pass consumes the output stripe by stripe (its `chained` input)
  bool stored = true;          // in DRAM
  int64_t peak = 0;            // bytes of a bank, from address 0, that anything but the weights occupies
  PassWork work;               // estimate: the output is stored unless it stays or is handed on

  int32_t positions() const { return rowStripes * columnStripes; }
  int32_t stripes() const { return positions() * channelStripes; }
  int64_t weightLoadBytes() const { return encoded->stripeBytes + togetherBytes; }
};

/// What SRAM holds while a pass runs. A whole feature map is a tile of one slot.
struct Occupied {
  /// An input that an earlier pass left in SRAM, whole.
  struct Resident {
    size_t input = 0;
    TilePlan tile;
  };
  std::vector<Resident> residents;
  std::vector<TilePlan> others;  // feature maps for later passes
};

/// Places tiles in a bank, from address 0 up, around those already there.
class TileRoom {
 public:
  explicit TileRoom(std::span<const TilePlan> taken);
  void place(TilePlan& tile);
  int64_t end() const { return end_; }  // of the placed tiles
  int64_t peak() const;                 // of everything in the bank

 private:
  std::vector<std::pair<int64_t, int64_t>> taken_;
  int64_t end_ = 0;
};

/// Weights of one pass, encoded for several numbers of channels per stripe, so that later attempts to plan
/// the pass reuse them.
struct WeightForm {
  int32_t channels = 0, iterationInputs = 0;  // of a stripe; 0: all inputs at once
  std::shared_ptr<const EncodedWeights> encoded;
};
using WeightForms = std::vector<WeightForm>;

/// The weights of an MCE pass for a number of output channels, and of input channels, per stripe.
Result<std::shared_ptr<const EncodedWeights>> weightsOf(const Pass& pass, const Variant& variant,
                                                        WeightForms& forms, int32_t channels,
                                                        int32_t iterationInputs = 0);

/// How rows of a feature map, with all columns and some channels, are laid out in DRAM.
struct BoxLayout {
  bool inOne = true;              // one command moves it
  bool strided = false;           // a write that skips bricks between those that it writes
  bool rowByRow = false;          // one command per row of bricks; otherwise, unless inOne, one per brick
  int32_t rows = 1, columns = 1;  // of bricks

  int32_t commands() const { return inOne ? 1 : rowByRow ? rows : rows * columns; }
};
BoxLayout boxLayout(const PassList& list, const FeatureMap& map, int32_t height, int32_t channels,
                    bool reads);

/// A part of an input for a stripe of some columns, and its position in the slot. What is below and to the
/// right follows the stripe; what is above and to the left is at the end of the slot, where the MCE expects
/// it.
struct PackedBox {
  int32_t y = 0, x = 0, height = 0, width = 0;
  int32_t slotY = 0, slotX = 0;
};
std::vector<PackedBox> packedBoxes(const Plan& plan, const FeatureMap& in, int32_t row, int32_t column);
int32_t packedHeight(const Plan& plan, const FeatureMap& in);
int32_t packedWidth(const Plan& plan);

/// Output rows that result from `rows` of the MCE's output (PLE, copy: of the input).
int32_t outputRows(const Pass& pass, int32_t rows);
int32_t outputColumns(const Pass& pass, int32_t columns);
int32_t outputChannels(const Pass& pass, int32_t channels, const Variant& variant);
/// Whether a stripe's last row is completed by the next stripe below it, which has the missing rows.
bool endsRowsLater(const Pass& pass);

/// Channels of all four sub-maps of a feature map.
int32_t interleavedChannels(int32_t channels, const Variant& variant);

/// Bytes in a bank between adjacent 8x8 groups of a stripe.
int64_t groupStride(int32_t channels, const Variant& variant);

/// MCE and PLE cycles of a stripe of `rows` and `channels` of the MCE's output (PLE: of the input), with one
/// of the pass's kernels. `columns` 0: all.
uint64_t mceCyclesOf(const Pass& pass, const PleKernel& kernel, const Variant& variant, int32_t rows,
                     int32_t channels, int32_t columns = 0);
uint64_t pleCyclesOf(const Pass& pass, const PleKernel& kernel, const Variant& variant, int32_t rows,
                     int32_t channels, int32_t columns = 0);

/// Determines the kernels that the pass can use, and selects Winograd's algorithm if `winograd` is set and it
/// is faster.
void chooseAlgorithm(Pass& pass, const Target& target, bool winograd = true);

/// One of the pass's kernels that processes an MCE stripe as one block: only then are its sums still in the
/// accumulators when the next stripe begins.
std::optional<PleKernel> oneBlockKernel(const Pass& pass, int32_t rows, int32_t columns);

/// The pass's fastest kernel for a stripe of `rows` and `channels` of the MCE's output.
PleKernel fastestKernel(const Pass& pass, const Variant& variant, int32_t rows, int32_t channels);

/// The cut with the fewest cycles by cost/metric.hpp. Resident inputs may be cut in rows only. With `stays`
/// the output stays in SRAM; fails if it cannot.
Result<Plan> planPass(const Pass& pass, const PassList& list, const Target& target, WeightForms& weights,
                      const Occupied& occupied = {}, bool stays = false);

/// The part of the input channels that an iteration accumulates over. Successive PLE stripes go through the
/// parts in opposite directions, so that two of them share one.
inline int32_t partOf(int32_t iterations, size_t stripe, int32_t iteration) {
  return stripe % 2 == 0 ? iteration : iterations - 1 - iteration;
}

/// Input slots for one stripe, including the rows around it if the filter reads them.
int32_t slotsAround(const Plan& plan);

/// A cut in rows only, without addresses and slots of the weights. All other slots are as few as possible
/// (`generous`: one more, so that the next stripe overlaps). Empty if the pass cannot be cut like that.
std::optional<Plan> planRows(const Pass& pass, const PassList& list, const Target& target, int32_t rows,
                             const Occupied& occupied, bool stays, bool generous);
/// The work of a pass under a plan that has slots.
PassWork workOfPlan(const Pass& pass, const PassList& list, const Target& target, const Plan& plan);

}  // namespace carina::ethosn::compiler
