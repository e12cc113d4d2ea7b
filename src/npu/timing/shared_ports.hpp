// SPDX-License-Identifier: Apache-2.0
// Memory ports that kernels and DMA transfers share: two queues, each in order, of which operations are
// placed as a stream has them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace carina::npu::timing {

using Cycles = int64_t;

enum class Queue : uint8_t { Kernels, Transfers };

/// Who has a port that a kernel and a transfer want at the same time.
enum class Arbiter : uint8_t {
  Alternates,   // a transfer has what the kernel leaves, and every other cycle at least
  KernelsFirst  // a transfer has what the kernel leaves
};

/// Kernels ask for a port in an even share of their cycles, transfers in as many as they can have. A kernel
/// makes up for cycles that transfers take, as far as it leaves cycles of the port: its blocks are read and
/// written ahead. What transfers take beyond that makes it later. So an operation that is placed makes those
/// of the other queue that run at the same time end later than they were said to.
class SharedPorts {
 public:
  using Work = std::array<Cycles, 2>;  // cycles that each port is busy

  struct Operation {
    Cycles start = 0;
    Cycles end = 0;    // the earliest
    Work work{};       // from `begin` on
    Cycles begin = 0;  // when it begins to use the ports, at most `start`
  };
  /// Places the next operation of a queue. It starts when all but the latest kDepth - 1 of the other queue
  /// have ended. Returns when it ends, as far as is known.
  Cycles place(Queue queue, const Operation& operation, Arbiter arbiter);

  /// Operations of a queue that may be unfinished: the most that hardware has, and one that waits.
  static constexpr size_t kDepth = 5;

  /// When the latest operation of a queue starts and ends, or one placed `back` operations earlier; 0 where
  /// it is not among the latest kDepth, which have ended.
  Cycles start(Queue queue) const { return lane(queue).at(0).start; }
  Cycles end(Queue queue, size_t back = 0) const { return back < kDepth ? lane(queue).at(back).end : 0; }

  /// Cycles of a port that kernels leave in this time, without those that transfers have taken.
  double leftByKernels(size_t port, Cycles from, Cycles until) const;

 private:
  struct Placed {
    Cycles begin = 0, start = 0, end = 0;
    Cycles overlap = 0;             // with the operation before
    std::array<double, 2> share{};  // of the cycles of each port
    std::array<double, 2> spare{};  // of a kernel: cycles that it leaves of each port

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
    Work free{};  // when the queue's own operations have gone through each port

    Placed& at(size_t back) { return ring[(latest + kDepth - back) % kDepth]; }
    const Placed& at(size_t back) const { return ring[(latest + kDepth - back) % kDepth]; }
    /// How many of the latest end after `from`.
    size_t unfinished(Cycles from) const;
    void push(const Placed& placed);
    /// Makes an operation end later, and those after it.
    void delay(size_t back, Cycles end);
  };

  const Lane& lane(Queue queue) const { return lanes_[static_cast<size_t>(queue)]; }
  /// When an operation ends that runs beside those of the other queue, which it delays.
  Cycles runBeside(Queue queue, Placed& placed, Arbiter arbiter);
  /// The share of a port's cycles that a transfer can have beside a kernel.
  static double besideKernel(const Placed& kernel, size_t port, Arbiter arbiter);
  /// What is left to do for a kernel and a transfer that run at the same time, in cycles of each by itself.
  struct Pair {
    double kernel = 0, transfer = 0;
  };
  /// Runs both until one of them is done, and returns the time that it takes.
  static double runTogether(Placed& kernel, const Placed& transfer, Pair& left, Arbiter arbiter);

  std::array<Lane, 2> lanes_;
};

}  // namespace carina::npu::timing
