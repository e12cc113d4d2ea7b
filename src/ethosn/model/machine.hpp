// SPDX-License-Identifier: Apache-2.0
// The state of the NPU during a run, and the units that operate on it (dma.cpp, mce.cpp, ple.cpp).
// machine.cpp executes the lists.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <vector>

#include "ethosn/model/buffers.hpp"
#include "ethosn/model/run.hpp"
#include "ethosn/model/sram.hpp"
#include "ethosn/model/timeline.hpp"
#include "ethosn/stream/ple_kernels.hpp"
#include "ethosn/weights/weight_decoder.hpp"

namespace carina::ethosn::model {

// Cost of the model in steps of work, measured on one core of a 2020s x86 machine and rounded up.
inline constexpr double kCommandSteps = 500;
inline constexpr double kMovedSteps = 2;                      // per byte between DRAM and SRAM
inline constexpr double kPixelSteps = 40, kElementSteps = 2;  // of a feature map that the MCE reads
inline constexpr double kWeightSteps = 10;                    // per weight decoded
inline constexpr double kProductSteps = 1.0 / 16, kDepthwiseSteps = 0.5;  // per multiplication
inline constexpr double kResultSteps = 8;                                 // per result of the MCE
inline constexpr double kPleSteps = 16;                                   // per element of the PLE

/// Elements [y][x][c].
struct Block {
  int32_t h = 0, w = 0, c = 0;
  std::vector<uint8_t> data;

  const uint8_t* at(int64_t y, int64_t x) const { return data.data() + (y * w + x) * c; }
  uint8_t* at(int64_t y, int64_t x) { return data.data() + (y * w + x) * c; }
};

/// What the last PROGRAM_MCE_STRIPE of an agent set, decoded.
struct MceStripe {
  bool programmed = false;
  uint32_t agent = 0;
  MceScheduler common;
  ProgramMceStripe registers;
};

/// Results of an MCE stripe on their way to the PLE.
struct MceOutput {
  uint32_t agent = 0, ordinal = 0;  // of the stripe
  uint32_t mceif = 0;               // times that MCEIF had been configured before
  Block block;
};

/// What MAXPOOL_3X3 keeps between stripes: the last output row, which needs the first input row of the next
/// stripe.
struct PendingRow {
  bool any = false;
  Tile tile;
  int32_t y = 0, w = 0, c = 0;
  std::vector<int16_t> values;  // -129: nothing yet
};

class Machine {
 public:
  Machine(const CommandStream& stream, const Target& target, const RunOptions& options, Buffers buffers,
          WorkBudget& work);

  Status run();
  RunResult result();

 private:
  enum class Progress : uint8_t { Done, Blocked };
  // machine.cpp: the lists
  Result<Progress> step(Queue queue);
  Result<Progress> wait(Queue queue, const WaitForCounter& wait);
  Result<Progress> execute(Queue queue, const Command& command);
  Status configMceif(const ConfigMceif& command);
  Status loadPleCode(const LoadPleCodeIntoPleSram& command);
  Error blocked() const;
  Error placed(Error error, Queue queue) const;
  size_t offsetOf(Queue queue, size_t command) const;
  void finish(Counter counter, Queue queue);  // counts, and records the clock at the end

  // For all units
  /// Charges the budget (base/work_budget.hpp) for what is about to be done.
  Status spend(double steps);
  void find(std::string message);
  void assume(Assumption assumption) { assumptions_.insert(assumption); }
  Access access() const { return {counter_, counters_[static_cast<size_t>(counter_)] + 1}; }
  void touchSram(int64_t address, int64_t bytes, uint32_t banks, bool write);
  /// The elements in rows [y0, y1) and columns [x0, x1) of a tile.
  void touchTile(const Tile& tile, int64_t y0, int64_t y1, int64_t x0, int64_t x1, int64_t c, bool write);
  void touchDram(const Buffers::View& view, int64_t offset, int64_t bytes, bool write);
  void report(const std::optional<Conflict>& conflict, std::string_view where, bool write);
  AgentStats& stats(uint32_t agent) { return result_.stats.agents[agent]; }

  // dma.cpp
  Status transfer(const DmaCommand& command);
  struct Transfer;
  Status linear(const Transfer& transfer);
  Status bricks(const Transfer& transfer);
  Status cells(const Transfer& transfer);
  Status weights(const Transfer& transfer);
  Status checkDram(const Transfer& transfer, uint64_t end) const;

  // mce.cpp
  Status startMce(const StartMceStripe& command);
  struct Convolution;
  Status fetchPlane(const Convolution& conv, int subfilter, std::vector<int16_t>& plane);
  std::vector<std::vector<int64_t>> placesOfWeights(const Convolution& conv) const;
  Status convolve(const Convolution& conv, std::vector<int32_t>& sums);
  Status vectorProduct(const Convolution& conv, std::vector<int32_t>& sums);
  Status decodeWeights(const Convolution& conv, size_t count);
  Result<Convolution> makeConvolution();
  uint64_t mceCycles(const Convolution& conv) const;
  Block scaleResults(const Convolution& conv, std::span<const int32_t> sums) const;

  // ple.cpp, ple_pooling.cpp
  Result<Progress> startPle(const StartPleStripe& command);
  struct Kernel;
  Status fused(const Kernel& kernel, const Block& input);
  Status fusedPixelwise(const Kernel& kernel, const Block& input);
  Status maxPool3x3(const Kernel& kernel, const Block& input);
  Status mean(const Kernel& kernel, const Block& input);
  Status standalone(const Kernel& kernel);
  Status addition(const Kernel& kernel);
  Status multiplication(const Kernel& kernel);
  Status averagePool(const Kernel& kernel);
  Status maxPool1d(const Kernel& kernel);
  Result<Block> readTile(int64_t address, int32_t h, int32_t w, int32_t c);
  Status writeTile(int64_t address, const Block& block);

  const CommandStream& stream_;
  Target target_;
  const Variant& variant_;
  RunOptions options_;
  Buffers buffers_;
  Sram sram_;
  AccessMap sramAccesses_;
  WorkBudget& work_;
  RunResult result_;
  Timeline time_;
  std::set<Assumption> assumptions_;

  std::array<size_t, kQueues> position_{};
  std::array<std::vector<size_t>, kQueues> offsets_;
  std::array<Clock, kQueues> clocks_;               // what each list knows to be done
  std::array<std::vector<Clock>, kCounters> ends_;  // by ordinal - 1: what is known when it is done
  std::array<uint32_t, kCounters> counters_{};
  Queue queue_ = Queue::DmaRead;        // being executed
  Counter counter_ = Counter::DmaRead;  // incremented by the command being executed

  MceStripe mce_;
  std::vector<int32_t> accumulators_;
  std::map<std::pair<uint32_t, int32_t>, OgState> ogs_;  // by agent and OG
  std::vector<DecodedOfm> ofms_;                         // of the stripe last decoded
  struct DecodedKey {
    uint32_t agent = 0, loads = 0;
    size_t count = 0, ofms = 0;
    std::array<uint32_t, 4> addresses{};
    friend bool operator==(const DecodedKey&, const DecodedKey&) = default;
  };
  std::optional<DecodedKey> decoded_;
  std::array<int64_t, 32> streamBytes_{};  // by OG: size of its stream in SRAM
  uint32_t weightLoads_ = 0;
  std::deque<MceOutput> outputs_;
  uint32_t consumedStripes_ = 0;  // MCE stripes up to here were consumed by the PLE, or have no results
  std::optional<uint32_t> mceifConfig_;
  std::optional<uint16_t> loadedKernel_;
  PendingRow pending_;
};

}  // namespace carina::ethosn::model
