// SPDX-License-Identifier: Apache-2.0
// When commands would run if each took the time that the cost metric of Arm's planner gives
// (cost/metric.hpp): two DMA queues, the MCE and the PLE in parallel, delayed only by the waits of the lists.
#pragma once

#include <array>
#include <vector>

#include "ethosn/stream/command_stream.hpp"

namespace carina::ethosn::model {

/// Cycles since the start. Commands of a list are added in their order; a wait for a counter is added after
/// the command that it waits for.
class Timeline {
 public:
  /// The list continues when the counter has reached the value (from 1).
  void wait(Queue queue, Counter counter, uint32_t value);
  /// A transfer begins after the preceding ones; the list continues as long as the queue has a free entry.
  void transfer(Queue queue, uint64_t bytes);
  void mceStripe(uint64_t cycles);
  /// Consumes the results of the MCE stripes up to `lastMce` (from 1; 0: none): begins when the first of them
  /// does, and ends after the last.
  void pleStripe(uint64_t cycles, uint32_t firstMce, uint32_t lastMce);
  /// A command that takes no time.
  void instant(Queue queue, Counter counter);

  uint64_t end() const { return end_; }

 private:
  void finish(Counter counter, uint64_t at);
  uint64_t& now(Queue queue) { return now_[static_cast<size_t>(queue)]; }
  uint64_t& free(Queue queue) { return free_[static_cast<size_t>(queue)]; }

  std::array<uint64_t, kQueues> now_{};   // of the lists
  std::array<uint64_t, kQueues> free_{};  // when their units are free
  std::array<std::vector<uint64_t>, kCounters> ends_;
  std::vector<uint64_t> mceStarts_;
  uint64_t end_ = 0;
};

}  // namespace carina::ethosn::model
