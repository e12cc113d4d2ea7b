// SPDX-License-Identifier: Apache-2.0
// Commands of planned passes: agents and the four lists, with waits.
#pragma once

#include <optional>

#include "ethosn/compiler/plan.hpp"
#include "ethosn/stream/command_stream.hpp"

namespace carina::ethosn::compiler {

/// Passes run one after the other; within a pass DMA, MCE, PLE and stores of different stripes overlap as far
/// as its tiles have slots.
class Emitter {
 public:
  /// `buffers`: id of the DRAM buffer of each storage.
  Emitter(const PassList& list, const Target& target, std::span<const uint32_t> buffers)
      : list_(list), target_(target), variant_(*target.variant), buffers_(buffers) {}

  /// `weights`: id of the buffer with the pass's weights. Fails on a map that the DMA cannot reach as it is
  /// laid out.
  Status emit(const Pass& pass, const Plan& plan, uint32_t weights);

  uint32_t agents() const { return static_cast<uint32_t>(stream_.agents.size()); }
  CommandStream take() { return std::move(stream_); }

 private:
  struct Tile {
    TilePlan plan;
    std::vector<int64_t> keys;    // what each slot holds; -1: nothing
    std::vector<uint32_t> users;  // count of the counter that frees it
    size_t next = 0;
    int64_t address(size_t slot) const { return plan.address + static_cast<int64_t>(slot) * plan.slotBytes; }
  };
  struct Stripe {
    int32_t row = 0, channel = 0;  // numbers
    int32_t y = 0, height = 0;     // of what the MCE makes (PLE, copy: of the input)
    int32_t c = 0, channels = 0;
    int32_t outY = 0, outHeight = 0, outC = 0, outChannels = 0;
  };
  struct Box {
    int32_t y, height, c, channels;
  };

  void wait(Queue queue, Counter counter, uint32_t value);
  uint32_t addAgent(Agent agent);
  void barrier();
  void loadKernel();
  Stripe stripeAt(int32_t row, int32_t channel) const;
  static Tile makeTile(const TilePlan& plan);
  /// The slot that holds `key`; loads it with `load(address)` when it is not there, after waiting for the
  /// slot's users.
  template <typename Load>
  Result<size_t> acquire(Tile& tile, int64_t key, Counter freedBy, Load&& load);
  Status transfer(Queue queue, CommandType type, uint32_t agent, const FeatureMap& map, const Box& box,
                  int64_t address);
  Status loadInputs(const Stripe& stripe);
  Status mceStripe(const Stripe& stripe);
  void pleStripe(const Stripe& stripe, int64_t outAddress);
  ProgramMceStripe program(const Stripe& stripe) const;
  void programFilter(const Stripe& stripe, ProgramMceStripe& out) const;
  MceScheduler mceAgent() const;
  Agent::Ifm streamer(const FeatureMap& map) const;
  std::array<uint32_t, 8> scratch(const Stripe& stripe, int64_t outAddress) const;
  Status passStripes();
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
  std::optional<uint16_t> kernelInSram_;

  // Of the pass under way.
  const Pass* pass_ = nullptr;
  const Plan* plan_ = nullptr;
  uint16_t kernel_ = 0;
  std::vector<Tile> inputs_;
  Tile weights_, output_;
  std::vector<uint32_t> inputAgents_;
  uint32_t weightAgent_ = 0, loaderAgent_ = 0, mceAgent_ = 0, pleAgent_ = 0, outputAgent_ = 0;
  std::array<size_t, 3> slots_{};  // of the rows above, at, and below the stripe
  size_t weightSlot_ = 0;
  std::vector<size_t> inputSlots_;
};

}  // namespace carina::ethosn::compiler
