// SPDX-License-Identifier: Apache-2.0
// When commands would run if each took what the measure of Arm's planner says (cost/metric.hpp): two DMA
// queues, the MCE and the PLE side by side, held up by the waits of the lists only.
#pragma once

#include <array>
#include <vector>

#include "ethosn/stream/command_stream.hpp"

namespace carina::ethosn::model {

/// Cycles since the beginning. Commands of a list come in their order; a wait for a counter comes after the
/// command that it waits for.
class Timeline {
 public:
  /// The list goes on when the counter has reached the value (from 1).
  void wait(Queue queue, Counter counter, uint32_t value);
  /// A transfer begins behind those in front of it; the list goes on as long as the queue has room.
  void transfer(Queue queue, uint64_t bytes);
  void mceStripe(uint64_t cycles);
  /// Takes the results of the MCE stripes up to `lastMce` (from 1; 0: none): it begins when the first of them
  /// does, and ends after the last.
  void pleStripe(uint64_t cycles, uint32_t firstMce, uint32_t lastMce);
  /// What takes no time of its own.
  void instant(Queue queue, Counter counter);

  uint64_t end() const { return end_; }

 private:
  void finish(Counter counter, uint64_t at);
  uint64_t& now(Queue queue) { return now_[static_cast<size_t>(queue)]; }
  uint64_t& free(Queue queue) { return free_[static_cast<size_t>(queue)]; }

  std::array<uint64_t, kQueues> now_{};   // of the lists
  std::array<uint64_t, kQueues> free_{};  // when their units are
  std::array<std::vector<uint64_t>, kCounters> ends_;
  std::vector<uint64_t> mceStarts_;
  uint64_t end_ = 0;
};

}  // namespace carina::ethosn::model
