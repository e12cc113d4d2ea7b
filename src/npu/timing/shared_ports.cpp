// SPDX-License-Identifier: Apache-2.0
#include "npu/timing/shared_ports.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace carina::npu::timing {
namespace {

constexpr double kNothing = 1e-6;  // of a cycle

/// What remains when `part` is done.
double rest(double whole, double part) {
  return whole - part > kNothing ? whole - part : 0.0;
}

/// A time in whole cycles, limited so that sums of times do not overflow.
Cycles upTo(double time) {
  return static_cast<Cycles>(std::ceil(std::min(time - kNothing, 0x1p60)));
}

}  // namespace

Cycles SharedPorts::place(Queue queue, const Operation& operation, Arbiter arbiter) {
  Lane& lane = lanes_[static_cast<size_t>(queue)];
  Placed& before = lane.at(0);
  Placed placed{operation.begin,
                operation.start,
                std::max(operation.end, before.end),
                std::max<Cycles>(before.end - operation.start, 0),
                {},
                {}};
  for (size_t port = 0; port < lane.free.size(); ++port) {
    if (operation.work[port] == 0) continue;
    lane.free[port] = std::max(lane.free[port], operation.begin) + operation.work[port];
    placed.end = std::max(placed.end, lane.free[port]);
  }
  const auto cycles = static_cast<double>(placed.end - placed.begin);
  const auto together = static_cast<double>(before.end - std::max(placed.begin, before.begin));
  for (size_t port = 0; port < lane.free.size(); ++port) {
    const auto work = static_cast<double>(operation.work[port]);
    placed.spare[port] = cycles - work;
    if (work == 0) continue;
    placed.share[port] = work / cycles;
    if (together <= 0) continue;
    // Its traffic while the preceding operation still runs counts for that operation.
    const double more = placed.share[port] * together;
    const auto beforeCycles = static_cast<double>(before.end - before.begin);
    before.share[port] = std::min(before.share[port] + more / beforeCycles, 1.0);
    before.spare[port] = std::max(before.spare[port] - more, 0.0);
  }
  placed.end = runConcurrently(queue, placed, arbiter);
  lane.push(placed);
  return placed.end;
}

Cycles SharedPorts::runConcurrently(Queue queue, Placed& placed, Arbiter arbiter) {
  const bool kernel = queue == Queue::Kernels;
  Lane& other = lanes_[kernel ? 1 : 0];
  auto now = static_cast<double>(placed.begin);
  auto left = static_cast<double>(placed.end - placed.begin);
  for (size_t back = other.unfinished(placed.begin); back-- > 0 && left > 0;) {
    Placed& beside = other.at(back);
    const double alone = std::clamp(static_cast<double>(beside.begin) - now, 0.0, left);
    const double otherLeft = static_cast<double>(beside.end) - (now + alone);
    if (otherLeft <= 0) continue;
    now += alone;
    left -= alone;
    if (left <= 0) break;
    Pair both = kernel ? Pair{left, otherLeft} : Pair{otherLeft, left};
    now += kernel ? runTogether(placed, beside, both, arbiter) : runTogether(beside, placed, both, arbiter);
    left = kernel ? both.kernel : both.transfer;
    other.delay(back, upTo(now + (kernel ? both.transfer : both.kernel)));
  }
  return upTo(now + left);
}

double SharedPorts::concurrentWithKernel(const Placed& kernel, size_t port, Arbiter arbiter) {
  return std::max(1 - kernel.share[port], arbiter == Arbiter::Alternates ? 0.5 : 0.0);
}

double SharedPorts::runTogether(Placed& kernel, const Placed& transfer, Pair& left, Arbiter arbiter) {
  const bool alternates = arbiter == Arbiter::Alternates;
  double speed = 1;  // of the transfer
  for (size_t port = 0; port < kernel.share.size(); ++port) {
    if (transfer.share[port] > 0)
      speed = std::min(speed, concurrentWithKernel(kernel, port, arbiter) / transfer.share[port]);
  }
  double time = 0;
  while (left.kernel > 0 && left.transfer > 0) {
    // Once the kernel has no unused cycles left, it waits for what the transfer takes; meanwhile it leaves
    // the other port unused.
    double kernelSpeed = 1;
    std::array<double, 2> taken{};
    for (size_t port = 0; port < taken.size() && alternates; ++port) {
      if (kernel.share[port] == 0) continue;
      taken[port] = speed * transfer.share[port];
      if (kernel.spare[port] == 0) kernelSpeed = std::min(kernelSpeed, 1 - taken[port]);
    }
    double step = std::numeric_limits<double>::infinity();
    if (speed > 0) step = std::min(step, left.transfer / speed);
    if (kernelSpeed > 0) step = std::min(step, left.kernel / kernelSpeed);
    for (size_t port = 0; port < taken.size(); ++port) {
      const double less = taken[port] - (1 - kernelSpeed);
      if (kernel.spare[port] > 0 && less > 0) step = std::min(step, kernel.spare[port] / less);
    }
    time += step;
    left.kernel = rest(left.kernel, step * kernelSpeed);
    left.transfer = rest(left.transfer, step * speed);
    for (size_t port = 0; port < taken.size(); ++port)
      kernel.spare[port] = rest(kernel.spare[port] + step * (1 - kernelSpeed), step * taken[port]);
  }
  return time;
}

double SharedPorts::leftByKernels(size_t port, Cycles from, Cycles until) const {
  auto left = static_cast<double>(until - from);
  const Lane& kernels = lane(Queue::Kernels);
  for (size_t back = kernels.unfinished(from); back-- > 0;) {
    const Placed& kernel = kernels.at(back);
    const auto time = static_cast<double>(std::min(kernel.end, until) - std::max(kernel.begin, from));
    if (time > 0) left -= time - std::min(time * (1 - kernel.share[port]), kernel.spare[port]);
  }
  return left;
}

size_t SharedPorts::Lane::unfinished(Cycles from) const {
  size_t count = 0;
  while (count < kDepth && at(count).end > from) ++count;
  return count;
}

void SharedPorts::Lane::push(const Placed& placed) {
  latest = (latest + 1) % kDepth;
  ring[latest] = placed;
}

void SharedPorts::Lane::delay(size_t back, Cycles end) {
  const Cycles latestEnd = at(0).end;
  at(back).end = std::max(at(back).end, end);
  while (back-- > 0) {
    Placed& placed = at(back);
    const Cycles start = at(back + 1).end - placed.overlap;
    if (start <= placed.start) break;
    placed.moveTo(start);
  }
  for (Cycles& port : free) port += at(0).end - latestEnd;
}

}  // namespace carina::npu::timing
