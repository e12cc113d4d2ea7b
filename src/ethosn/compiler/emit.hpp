// SPDX-License-Identifier: Apache-2.0
// Commands of planned passes: agents and the four lists, with waits.
#pragma once

#include <map>
#include <optional>

#include "ethosn/compiler/plan.hpp"
#include "ethosn/compiler/sram_uses.hpp"
#include "ethosn/stream/command_stream.hpp"

namespace carina::ethosn::compiler {

/// Input channels that the MCE accumulates over in one stripe.
int32_t partChannels(const Pass& pass, const Plan& plan, int32_t part);

/// Passes are emitted one after the other. DMA, MCE, PLE and stores of different stripes overlap as far as
/// tiles have slots; those of a pass overlap with preceding passes as far as they use other parts of SRAM.
class Emitter {
 public:
  /// `buffers`: id of the DRAM buffer of each storage.
  Emitter(const PassList& list, const Target& target, std::span<const uint32_t> buffers)
      : list_(list),
        target_(target),
        variant_(*target.variant),
        buffers_(buffers),
        madeAt_(list.storages.size()),
        storedAt_(list.storages.size()) {}

  /// A pass, its plan, and the id of the buffer with its weights.
  struct Job {
    const Pass* pass;
    const Plan* plan;
    uint32_t weights;
  };
  /// Emits a section: one pass, or several that hand their feature maps to each other stripe by stripe.
  /// Returns the first agent of each pass. Fails if the DMA cannot access a feature map in its layout.
  Result<std::vector<uint32_t>> emit(std::span<const Job> section);

  uint32_t agents() const { return static_cast<uint32_t>(stream_.agents.size()); }
  CommandStream take() { return std::move(stream_); }

 private:
  struct Tile {
    TilePlan plan;
    std::vector<int64_t> keys;    // what each slot holds; -1: nothing
    std::vector<uint32_t> users;  // value of the counter that frees it
    size_t next = 0;
    int64_t address(size_t slot) const { return plan.address + static_cast<int64_t>(slot) * plan.slotBytes; }
  };
  struct Stripe {
    int32_t row = 0, column = 0, channel = 0;  // indices
    int32_t y = 0, height = 0;                 // of the MCE's output (PLE, copy: of the input)
    int32_t x = 0, width = 0;
    int32_t c = 0, channels = 0;
    int32_t outY = 0, outHeight = 0, outX = 0, outWidth = 0, outC = 0, outChannels = 0;
  };
  struct Box {
    int32_t y, height, c, channels;
    int32_t x = 0, width = -1;  // -1: all columns
  };
  /// State of a pass of the current section.
  struct Running {
    const Pass* pass = nullptr;
    const Plan* plan = nullptr;
    uint16_t kernel = 0;
    int64_t kernelAddress = 0;
    std::vector<Tile> inputs;
    Tile weights, output;
    std::vector<uint32_t> inputAgents;
    uint32_t residentsReady = 0;  // PLE stripes done
    uint32_t weightAgent = 0, loaderAgent = 0, mceAgent = 0, pleAgent = 0, outputAgent = 0;
    std::array<size_t, 3> slots{};  // of the rows above, at, and below the stripe
    size_t weightSlot = 0;
    int32_t iteration = 0, part = 0;  // of the MCE stripe; of the input channels
    std::vector<size_t> inputSlots;
    std::vector<uint32_t> madeAt;  // PLE stripes done, by row stripe
    int32_t made = 0;              // row stripes
    std::optional<std::pair<Box, size_t>>
        unfinished;  // box and slot that are stored once the next stripe has completed their rows
  };

  void wait(Queue queue, Counter counter, uint32_t value);
  uint32_t addAgent(const Agent& agent);
  void waitForRoom(Queue queue, const TilePlan& tile);
  void loadKernel();
  void chooseKernel();
  Stripe stripeAt(int32_t row, int32_t column, int32_t channel) const;
  static Tile makeTile(const TilePlan& plan);
  /// The slot that holds `key`. If there is none, waits for the users of a slot and fills it with
  /// `load(address)`.
  template <typename Load>
  Result<size_t> acquire(Tile& tile, int64_t key, Counter freedBy, Load&& load);
  size_t nextSlot(const Tile& tile, int64_t firstKey, int64_t lastKey) const;
  /// `rowStride`: if the slot is wider than the box, bytes in a bank between rows of bricks.
  Status transfer(Queue queue, CommandType type, uint32_t agent, const FeatureMap& whole, const Box& box,
                  int64_t address, int64_t rowStride = 0);
  Status loadInputs(const Stripe& stripe);
  Status loadPacked(size_t input, const Stripe& stripe);
  Status loadWeights(const Stripe& stripe);
  Status mceStripe(const Stripe& stripe);
  void pleStripe(const Stripe& stripe, int64_t outAddress);
  ProgramMceStripe program(const Stripe& stripe) const;
  void programFilter(const Stripe& stripe, ProgramMceStripe& out) const;
  MceScheduler mceAgent() const;
  Agent::Ifm streamer(const FeatureMap& map) const;
  std::array<uint32_t, 8> scratch(const Stripe& stripe, int64_t outAddress) const;
  Status passStripes();
  Status passStripe(const Stripe& stripe);
  Status mceStripes(const Stripe& stripe);
  Status storeStripe(const Box& box, size_t slot);
  Status makeRows(size_t pass, int32_t upTo);
  Status begin(const Job& job);
  void takeFromChain(size_t input, const Stripe& stripe);
  void beginInputs();
  Status beginWeights(uint32_t weights);
  void noteUses();
  uint32_t count(Counter counter) const { return counts_[static_cast<size_t>(counter)]; }
  uint32_t& count(Counter counter) { return counts_[static_cast<size_t>(counter)]; }

  const PassList& list_;
  const Target& target_;
  const Variant& variant_;
  std::span<const uint32_t> buffers_;
  CommandStream stream_;
  std::array<uint32_t, kCounters> counts_{};
  std::array<std::array<uint32_t, kCounters>, kQueues> waited_{};
  uint32_t readId_ = 0, writeId_ = 0;
  std::map<int64_t, uint16_t> kernelsInSram_;  // by address
  std::optional<uint16_t> kernelInPle_, mceifKernel_;
  SramUses uses_;
  std::vector<uint32_t> madeAt_, storedAt_;  // by storage: PLE stripes done, stores done

  std::vector<Running> section_;
  Running* now_ = nullptr;  // the pass for which a stripe is being emitted
};

}  // namespace carina::ethosn::compiler
