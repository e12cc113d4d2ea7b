// SPDX-License-Identifier: Apache-2.0
#include "ethosn/model/timeline.hpp"

#include <algorithm>

#include "ethosn/cost/metric.hpp"

namespace carina::ethosn::model {
namespace {

constexpr size_t kDmaQueue = 4;  // commands in flight

}  // namespace

void Timeline::finish(Counter counter, uint64_t at) {
  ends_[static_cast<size_t>(counter)].push_back(at);
  end_ = std::max(end_, at);
}

void Timeline::wait(Queue queue, Counter counter, uint32_t value) {
  const std::vector<uint64_t>& ends = ends_[static_cast<size_t>(counter)];
  if (value > 0 && value <= ends.size()) now(queue) = std::max(now(queue), ends[value - 1]);
}

void Timeline::transfer(Queue queue, uint64_t bytes) {
  const Counter counter = queue == Queue::DmaWrite ? Counter::DmaWrite : Counter::DmaRead;
  const std::vector<uint64_t>& ends = ends_[static_cast<size_t>(counter)];
  if (ends.size() >= kDmaQueue) now(queue) = std::max(now(queue), ends[ends.size() - kDmaQueue]);
  free(queue) = std::max(now(queue), free(queue)) + stripesCycles(bytes / kDmaBytesPerCycle, 1);
  finish(counter, free(queue));
}

void Timeline::mceStripe(uint64_t cycles) {
  const uint64_t start = std::max(now(Queue::Mce), free(Queue::Mce));
  mceStarts_.push_back(start);
  free(Queue::Mce) = start + stripesCycles(cycles, 1);
  finish(Counter::MceStripe, free(Queue::Mce));
}

void Timeline::pleStripe(uint64_t cycles, uint32_t firstMce, uint32_t lastMce) {
  uint64_t start = std::max(now(Queue::Ple), free(Queue::Ple));
  if (firstMce > 0) start = std::max(start, mceStarts_[firstMce - 1]);
  uint64_t end = start + cycles;
  if (lastMce > 0) end = std::max(end, ends_[static_cast<size_t>(Counter::MceStripe)][lastMce - 1]);
  free(Queue::Ple) = end;
  finish(Counter::PleStripe, end);
}

void Timeline::instant(Queue queue, Counter counter) {
  finish(counter, now(queue));
}

}  // namespace carina::ethosn::model
