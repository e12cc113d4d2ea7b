// SPDX-License-Identifier: Apache-2.0
// Memory ports shared by kernels and DMA transfers: two in-order queues, whose operations are placed in
// stream order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace carina::npu::timing {

using Cycles = int64_t;

enum class Queue : uint8_t { Kernels, Transfers };

/// Who wins a port when a kernel and a transfer compete for it.
enum class Arbiter : uint8_t {
  Alternates,   // a transfer gets what the kernel leaves, and at least every other cycle
  KernelsFirst  // a transfer gets only what the kernel leaves
};

/// Kernels request a port in an evenly distributed share of their cycles, transfers in as many cycles as they
/// can get. A kernel makes up for cycles that transfers take, as far as it leaves port cycles unused: its
/// blocks are read and written ahead. Anything beyond that delays it. Placing an operation may therefore
/// delay the end of concurrent operations of the other queue beyond the end returned for them.
class SharedPorts {
 public:
  using Work = std::array<Cycles, 2>;  // cycles that each port is busy

  struct Operation {
    Cycles start = 0;
    Cycles end = 0;    // at the earliest
    Work work{};       // from `begin` on
    Cycles begin = 0;  // when it begins to use the ports; at most `start`
  };
  /// Places the next operation of a queue. When it starts, all but the latest kDepth - 1 of the other queue
  /// must have ended. Returns its end time as currently known.
  Cycles place(Queue queue, const Operation& operation, Arbiter arbiter);

  /// Unfinished operations that a queue may have: the hardware's maximum, and one that waits.
  static constexpr size_t kDepth = 5;

  /// Start and end of the latest operation of a queue, or of the one placed `back` operations earlier; 0 if
  /// that is not among the latest kDepth, since it has then ended.
  Cycles start(Queue queue) const { return lane(queue).at(0).start; }
  Cycles end(Queue queue, size_t back = 0) const { return back < kDepth ? lane(queue).at(back).end : 0; }

  /// Cycles of a port that kernels leave unused in this interval, excluding those that transfers have taken.
  double leftByKernels(size_t port, Cycles from, Cycles until) const;

 private:
  struct Placed {
    Cycles begin = 0, start = 0, end = 0;
    Cycles overlap = 0;             // with the preceding operation
    std::array<double, 2> share{};  // of the cycles of each port
    std::array<double, 2> spare{};  // of a kernel: unused cycles of each port

    void moveTo(Cycles newStart) {
      begin += newStart - start;
      end += newStart - start;
      start = newStart;
    }
  };
  /// The latest operations of a queue.
  struct Lane {
    std::array<Placed, kDepth> ring{};
    size_t latest = 0;
    Work free{};  // when each port has served the queue's own operations

    Placed& at(size_t back) { return ring[(latest + kDepth - back) % kDepth]; }
    const Placed& at(size_t back) const { return ring[(latest + kDepth - back) % kDepth]; }
    /// How many of the latest operations end after `from`.
    size_t unfinished(Cycles from) const;
    void push(const Placed& placed);
    /// Delays the end of an operation, and the operations after it.
    void delay(size_t back, Cycles end);
  };

  const Lane& lane(Queue queue) const { return lanes_[static_cast<size_t>(queue)]; }
  /// End of an operation that runs concurrently with those of the other queue, which it delays.
  Cycles runConcurrently(Queue queue, Placed& placed, Arbiter arbiter);
  /// The share of a port's cycles that a transfer can get while a kernel runs.
  static double concurrentWithKernel(const Placed& kernel, size_t port, Arbiter arbiter);
  /// Remaining work of a kernel and a concurrent transfer, in cycles that each would take alone.
  struct Pair {
    double kernel = 0, transfer = 0;
  };
  /// Runs both until one of them is done; returns the elapsed time.
  static double runTogether(Placed& kernel, const Placed& transfer, Pair& left, Arbiter arbiter);

  std::array<Lane, 2> lanes_;
};

}  // namespace carina::npu::timing
