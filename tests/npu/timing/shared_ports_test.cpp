// SPDX-License-Identifier: Apache-2.0
// Ports that kernels and transfers share: end times, and that no port exceeds its throughput.
#include "npu/timing/shared_ports.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace carina::npu::timing {
namespace {

Cycles kernel(SharedPorts& ports, Cycles start, Cycles end, SharedPorts::Work work,
              Arbiter arbiter = Arbiter::Alternates) {
  return ports.place(Queue::Kernels, {start, end, work, start}, arbiter);
}

Cycles transfer(SharedPorts& ports, Cycles start, Cycles end, SharedPorts::Work work,
                Arbiter arbiter = Arbiter::Alternates) {
  return ports.place(Queue::Transfers, {start, end, work, start}, arbiter);
}

TEST(SharedPorts, ATransferDelaysTheKernelThatRuns) {
  // A kernel that keeps the second port busy, and a transfer that needs the port for 300 cycles.
  SharedPorts ports;
  EXPECT_EQ(kernel(ports, 0, 1000, {0, 1000}), 1000);
  EXPECT_EQ(transfer(ports, 100, 400, {0, 300}), 700);
  EXPECT_EQ(ports.end(Queue::Kernels), 1300);
}

TEST(SharedPorts, AKernelDelaysTheTransferThatRuns) {
  SharedPorts ports;
  EXPECT_EQ(transfer(ports, 0, 1000, {0, 1000}), 1000);
  EXPECT_EQ(kernel(ports, 100, 400, {0, 300}), 700);
  EXPECT_EQ(ports.end(Queue::Transfers), 1300);
}

TEST(SharedPorts, AKernelIsDelayedOnlyBeyondTheCyclesItLeavesFree) {
  SharedPorts ports;
  EXPECT_EQ(kernel(ports, 0, 1000, {0, 600}), 1000);
  EXPECT_EQ(transfer(ports, 0, 300, {0, 300}), 600);
  EXPECT_EQ(ports.end(Queue::Kernels), 1000);
  EXPECT_EQ(transfer(ports, 600, 750, {0, 150}), 900);
  EXPECT_EQ(ports.end(Queue::Kernels), 1050);  // 50 cycles more than the kernel leaves
}

TEST(SharedPorts, ATransferUsesTheCyclesThatTheKernelLeavesFree) {
  SharedPorts ports;
  kernel(ports, 0, 1000, {0, 250});
  EXPECT_EQ(transfer(ports, 0, 300, {0, 300}), 400);
  EXPECT_EQ(transfer(ports, 400, 800, {0, 100}), 800);  // a quarter of the port is always available
  EXPECT_EQ(ports.end(Queue::Kernels), 1000);
}

TEST(SharedPorts, CyclesLeftByKernels) {
  SharedPorts ports;
  kernel(ports, 0, 1000, {0, 250});
  EXPECT_DOUBLE_EQ(ports.leftByKernels(1, 500, 1500), 875);  // three quarters, then all
  EXPECT_DOUBLE_EQ(ports.leftByKernels(0, 500, 1500), 1000);
  kernel(ports, 1000, 2000, {0, 900});
  EXPECT_DOUBLE_EQ(ports.leftByKernels(1, 500, 1500), 425);
}

TEST(SharedPorts, TheNextKernelWaitsForADelayedOne) {
  SharedPorts ports;
  kernel(ports, 0, 1000, {0, 1000});
  EXPECT_EQ(kernel(ports, 1050, 1500, {0, 0}), 1500);  // 50 cycles after it
  EXPECT_EQ(transfer(ports, 100, 400, {0, 300}), 700);
  EXPECT_EQ(ports.end(Queue::Kernels, 1), 1300);
  EXPECT_EQ(ports.start(Queue::Kernels), 1300);
  EXPECT_EQ(ports.end(Queue::Kernels), 1750);
}

TEST(SharedPorts, ATransferOutlivesTheKernelAndThenHasThePortAlone) {
  SharedPorts ports;
  kernel(ports, 0, 200, {0, 200});
  EXPECT_EQ(transfer(ports, 100, 1100, {0, 1000}), 1200);
  EXPECT_EQ(ports.end(Queue::Kernels), 300);  // half of the port for 200 cycles
}

TEST(SharedPorts, ATransferThatEndsBeforeTheKernelStartsDelaysNothing) {
  SharedPorts ports;
  kernel(ports, 500, 900, {0, 400});  // placed earlier, but it waits for another
  EXPECT_EQ(transfer(ports, 0, 300, {0, 300}), 300);
  EXPECT_EQ(ports.end(Queue::Kernels), 900);
  EXPECT_EQ(transfer(ports, 300, 600, {0, 300}), 700);  // alone for 200 cycles, then every other access
  EXPECT_EQ(ports.end(Queue::Kernels), 1000);
}

TEST(SharedPorts, OperationsOfAQueueShareThePort) {
  // Members of a chain: the second begins with the first and moves as much data.
  SharedPorts ports;
  EXPECT_EQ(kernel(ports, 0, 1000, {0, 700}), 1000);
  EXPECT_EQ(ports.place(Queue::Kernels, {1000, 1100, {0, 700}, 0}, Arbiter::Alternates), 1400);
}

TEST(SharedPorts, KernelsFirst) {
  SharedPorts ports;
  kernel(ports, 0, 1000, {0, 1000}, Arbiter::KernelsFirst);
  EXPECT_EQ(transfer(ports, 100, 400, {0, 300}, Arbiter::KernelsFirst), 1300);
  EXPECT_EQ(kernel(ports, 1000, 1200, {0, 100}, Arbiter::KernelsFirst), 1200);
  EXPECT_EQ(ports.end(Queue::Transfers), 1400);
}

/// Reference that knows all operations in advance and simulates steps of a fraction of a cycle.
class Simulation {
 public:
  explicit Simulation(Arbiter arbiter) : arbiter_(arbiter) {}

  void place(Queue queue, const SharedPorts::Operation& operation) {
    queues_[static_cast<size_t>(queue)].push_back({operation,
                                                   static_cast<double>(operation.end - operation.start),
                                                   {spare(operation, 0), spare(operation, 1)}});
  }
  /// The end of the last operation of each queue.
  std::array<double, 2> run() {
    std::array<size_t, 2> next{};
    std::array<double, 2> ends{};
    for (double now = 0; next[0] < queues_[0].size() || next[1] < queues_[1].size(); now += kStep) {
      std::array<Running*, 2> running{};
      for (size_t q = 0; q < 2; ++q) {
        if (next[q] == queues_[q].size()) continue;
        Running& first = queues_[q][next[q]];
        if (static_cast<double>(first.operation.start) <= now) running[q] = &first;
      }
      const auto [kernels, transfers] = speeds(running[0], running[1]);
      const std::array<double, 2> speed{kernels, transfers};
      for (size_t q = 0; q < 2; ++q) {
        if (running[q] == nullptr) continue;
        running[q]->left -= speed[q] * kStep;
        if (running[q]->left > 1e-9) continue;
        ends[q] = now + kStep;
        ++next[q];
      }
    }
    return ends;
  }

 private:
  static constexpr double kStep = 1.0 / 16;
  struct Running {
    SharedPorts::Operation operation;
    double left = 0;
    std::array<double, 2> spare{};

    double share(size_t port) const {
      return static_cast<double>(operation.work[port]) / static_cast<double>(operation.end - operation.start);
    }
  };
  static double spare(const SharedPorts::Operation& operation, size_t port) {
    return static_cast<double>(operation.end - operation.start - operation.work[port]);
  }

  std::pair<double, double> speeds(Running* kernel, const Running* transfer) const {
    if (kernel == nullptr || transfer == nullptr) return {1, 1};
    double transfers = 1, kernels = 1;
    for (size_t port = 0; port < 2; ++port) {
      if (transfer->share(port) == 0) continue;
      double has = 1 - kernel->share(port);
      if (arbiter_ == Arbiter::Alternates) has = std::max(has, 0.5);
      transfers = std::min(transfers, has / transfer->share(port));
    }
    if (arbiter_ == Arbiter::KernelsFirst) return {1, transfers};
    for (size_t port = 0; port < 2; ++port) {
      if (kernel->share(port) == 0) continue;
      const double beyond = transfers * transfer->share(port) - kernel->spare[port] / kStep;
      kernels = std::min(kernels, 1 - std::max(beyond, 0.0));
    }
    for (size_t port = 0; port < 2; ++port) {
      const double taken = kernel->share(port) > 0 ? transfers * transfer->share(port) : 0;
      kernel->spare[port] = std::max(kernel->spare[port] + (1 - kernels - taken) * kStep, 0.0);
    }
    return {kernels, transfers};
  }

  Arbiter arbiter_;
  std::array<std::vector<Running>, 2> queues_;
};

RC_GTEST_PROP(SharedPorts, MatchesASimulationOfAllOperations, ()) {
  const Arbiter arbiter = *rc::gen::element(Arbiter::Alternates, Arbiter::KernelsFirst);
  SharedPorts ports;
  Simulation simulation(arbiter);
  SharedPorts::Work moved{};
  const int count = *rc::gen::inRange(1, 24);
  for (int i = 0; i < count; ++i) {
    const SharedPorts::Work work{*rc::gen::inRange<Cycles>(0, 300), *rc::gen::inRange<Cycles>(0, 300)};
    for (size_t port = 0; port < moved.size(); ++port) moved[port] += work[port];
    const Cycles cycles = std::max({work[0], work[1], *rc::gen::inRange<Cycles>(1, 400)});
    const Queue queue = *rc::gen::element(Queue::Kernels, Queue::Transfers);
    // An operation starts once it is placed, its predecessor has finished, and all but the latest of the
    // other queue have finished.
    const Queue other = queue == Queue::Kernels ? Queue::Transfers : Queue::Kernels;
    const Cycles start = std::max(ports.end(queue), ports.end(other, SharedPorts::kDepth - 1)) +
                         *rc::gen::element<Cycles>(0, 0, 100);
    const SharedPorts::Operation operation{start, start + cycles, work, start};
    RC_LOG() << (queue == Queue::Kernels ? "kernel " : "transfer ") << start << " + " << cycles << ", ports "
             << work[0] << ' ' << work[1] << '\n';
    RC_ASSERT(ports.place(queue, operation, arbiter) >= operation.end);
    simulation.place(queue, operation);
  }
  const std::array<double, 2> ends = simulation.run();
  // Under KernelsFirst, a cycle gained by rounding an end may be one in which a kernel blocks a transfer
  // entirely.
  for (size_t q = 0; q < ends.size() && arbiter == Arbiter::Alternates; ++q) {
    const auto end = static_cast<double>(ports.end(static_cast<Queue>(q)));
    RC_ASSERT(end >= ends[q] - 4 * count);
    RC_ASSERT(end <= ends[q] + 4 * count);
  }
  for (const Cycles port : moved)
    RC_ASSERT(std::max(ports.end(Queue::Kernels), ports.end(Queue::Transfers)) >= port);
}

}  // namespace
}  // namespace carina::npu::timing
