// SPDX-License-Identifier: Apache-2.0
// How a pass is cut into stripes that fit SRAM, and where its tiles lie.
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
  int32_t rows = 0;      // of what the MCE makes (PLE and copy: of the input) per stripe
  int32_t channels = 0;  // of the output of the MCE (PLE, copy: of the input) per stripe
  int32_t rowStripes = 1, channelStripes = 1;
  int32_t inputRowStripes = 1;
  /// Of what the MCE makes per stripe; 0: all. Stripes of some columns have their slots to themselves: with
  /// the rows and columns around them that the filter looks at (PackedBox).
  int32_t columns = 0, columnStripes = 1;
  bool channelsOutside = false;  // the loop over channels is the outer one
  PleKernel kernel;              // in the blocks that are the fastest for such stripes
  bool needsAbove = false, needsBelow = false, needsLeft = false, needsRight = false;
  /// Stripes of the MCE that add up over parts of the input's channels for one stripe of the PLE, and the
  /// channels of each part but the last, as the MCE sees them.
  int32_t iterations = 1, iterationChannels = 0;
  std::vector<TilePlan> inputs;
  TilePlan weights, output;
  std::shared_ptr<const EncodedWeights> encoded;  // none: no MCE
  /// Weights of passes behind this one that come with its own, in one transfer, behind them in SRAM.
  std::vector<size_t> together;
  int64_t togetherBytes = 0;
  bool weightsAreThere = false;  // they came with those of an earlier pass
  int32_t chained = -1;          // input that the pass in front makes stripe by stripe, in the same section
  int32_t kernelPlace =
      0;  // where in SRAM the PLE's code lies: 0 at the end of the banks, 1 in front of that, ...
  std::vector<bool> resident;  // inputs that lie in SRAM already, where an earlier pass left them
  bool stays = false;   // the output stays in SRAM, whole: the slots are its stripes, one behind the other
  bool handed = false;  // the pass behind takes the output stripe by stripe (its `chained` input)
  bool stored = true;   // in DRAM
  int64_t peak = 0;     // bytes of a bank, from address 0, that anything but the weights takes
  PassWork work;        // as far as it is known without running: with the output stored or staying

  int32_t positions() const { return rowStripes * columnStripes; }
  int32_t stripes() const { return positions() * channelStripes; }
  int64_t weightLoadBytes() const { return encoded->stripeBytes + togetherBytes; }
};

/// What SRAM holds while a pass runs. A whole map is a tile of one slot.
struct Occupied {
  /// An input that an earlier pass left in SRAM, whole.
  struct Resident {
    size_t input = 0;
    TilePlan tile;
  };
  std::vector<Resident> residents;
  std::vector<TilePlan> others;  // maps for later passes
};

/// Lays tiles into a bank, from address 0 up, around those that are there.
class TileRoom {
 public:
  explicit TileRoom(std::span<const TilePlan> taken);
  void place(TilePlan& tile);
  int64_t end() const { return end_; }  // of what was placed
  int64_t peak() const;                 // of all that the bank holds

 private:
  std::vector<std::pair<int64_t, int64_t>> taken_;
  int64_t end_ = 0;
};

/// Weights of one pass, encoded for several numbers of channels per stripe: what was encoded once is used
/// again by the next attempt to plan the pass.
struct WeightForm {
  int32_t channels = 0, iterationInputs = 0;  // of a stripe; 0: all inputs at once
  std::shared_ptr<const EncodedWeights> encoded;
};
using WeightForms = std::vector<WeightForm>;

/// The weights of an MCE pass for so many channels of its output per stripe, and of its input.
Result<std::shared_ptr<const EncodedWeights>> weightsOf(const Pass& pass, const Variant& variant,
                                                        WeightForms& forms, int32_t channels,
                                                        int32_t iterationInputs = 0);

/// How rows of a map, of all columns and some channels, lie in DRAM.
struct BoxLayout {
  bool inOne = true;              // one command moves it
  bool strided = false;           // a write that leaves out bricks between those that it writes
  bool rowByRow = false;          // a command for each row of bricks; otherwise, unless inOne, for each brick
  int32_t rows = 1, columns = 1;  // of bricks

  int32_t commands() const { return inOne ? 1 : rowByRow ? rows : rows * columns; }
};
BoxLayout boxLayout(const PassList& list, const FeatureMap& map, int32_t height, int32_t channels,
                    bool reads);

/// A part of an input for a stripe of some columns, and where it lies in the slot: what is below and to the
/// right of the stripe behind it, what is above and to the left at the end of the slot, as the MCE looks for
/// it there.
struct PackedBox {
  int32_t y = 0, x = 0, height = 0, width = 0;
  int32_t slotY = 0, slotX = 0;
};
std::vector<PackedBox> packedBoxes(const Plan& plan, const FeatureMap& in, int32_t row, int32_t column);
int32_t packedHeight(const Plan& plan, const FeatureMap& in);
int32_t packedWidth(const Plan& plan);

/// Rows of the output that `rows` of the MCE's (input's) make.
int32_t outputRows(const Pass& pass, int32_t rows);
int32_t outputColumns(const Pass& pass, int32_t columns);
int32_t outputChannels(const Pass& pass, int32_t channels, const Variant& variant);
/// Whether a stripe's last row is ended by the next stripe below it, which has the rows that it lacks.
bool endsRowsLater(const Pass& pass);

/// Channels of the four sub-maps of a map.
int32_t interleavedChannels(int32_t channels, const Variant& variant);

/// Bytes in a bank between neighbouring 8x8 groups of a stripe.
int64_t groupStride(int32_t channels, const Variant& variant);

/// Cycles of MCE and PLE for a stripe of so many rows and channels of what the MCE makes (PLE: of the input),
/// with one of the pass's kernels. `columns`: 0: all.
uint64_t mceCyclesOf(const Pass& pass, const PleKernel& kernel, const Variant& variant, int32_t rows,
                     int32_t channels, int32_t columns = 0);
uint64_t pleCyclesOf(const Pass& pass, const PleKernel& kernel, const Variant& variant, int32_t rows,
                     int32_t channels, int32_t columns = 0);

/// Finds the kernels that the pass can take, and chooses Winograd's algorithm where that is faster and
/// `winograd`.
void chooseAlgorithm(Pass& pass, const Target& target, bool winograd = true);

/// Of the pass's kernels one that takes a stripe of the MCE as one block: only then its sums are in the
/// accumulators when the next stripe begins.
std::optional<PleKernel> oneBlockKernel(const Pass& pass, int32_t rows, int32_t columns);

/// Of the pass's kernels the fastest for a stripe of so many rows and channels of what the MCE makes.
PleKernel fastestKernel(const Pass& pass, const Variant& variant, int32_t rows, int32_t channels);

/// The cut of least cycles by the measure of cost/metric.hpp. Resident inputs may be cut in rows only. With
/// `stays` the output is to stay in SRAM; fails where it cannot.
Result<Plan> planPass(const Pass& pass, const PassList& list, const Target& target, WeightForms& weights,
                      const Occupied& occupied = {}, bool stays = false);

/// The part of the input's channels that an iteration adds up over: back and forth, so that two stripes of
/// the PLE in turn share one.
inline int32_t partOf(int32_t iterations, size_t stripe, int32_t iteration) {
  return stripe % 2 == 0 ? iteration : iterations - 1 - iteration;
}

/// Slots of input for one stripe: with the rows around it, where the filter looks at them.
int32_t slotsAround(const Plan& plan);

/// A cut in rows alone, with all slots but those of the weights as few as they can be (`generous`: one more,
/// so that what comes next overlaps), and no addresses. None where the pass cannot be cut so.
std::optional<Plan> planRows(const Pass& pass, const PassList& list, const Target& target, int32_t rows,
                             const Occupied& occupied, bool stays, bool generous);
/// What a pass does by a plan with slots.
PassWork workOfPlan(const Pass& pass, const PassList& list, const Target& target, const Plan& plan);

}  // namespace carina::ethosn::compiler
