// SPDX-License-Identifier: Apache-2.0
#include "npu/timing/shared_ports.hpp"

#include <algorithm>

namespace carina::npu::timing {

Cycles SharedPorts::kernel(Cycles from, Cycles start, Cycles end, const Work& work) {
  for (size_t port = 0; port < work.size(); ++port) {
    if (work[port] == 0) continue;
    free_[port] = std::max(free_[port], from) + work[port];
    end = std::max(end, free_[port]);
  }
  for (size_t port = 0; port < work.size(); ++port) {
    Users& users = users_[port];
    if (work[port] == 0) {
      users.gap += std::max<Cycles>(start - kernelEnd_, 0);
      continue;
    }
    if (from > users.workEnd) users.start = from;
    users.workEnd = free_[port];
    users.end = end;
    users.gap = 0;
  }
  kernelEnd_ = end;
  return end;
}

SharedPorts::Transfer SharedPorts::transfer(Cycles start, Cycles end, const Work& work, bool alternating) {
  Transfer placed{end, 0};
  for (size_t port = 0; port < work.size(); ++port) {
    if (work[port] == 0) continue;
    if (alternating)
      placed.kernelDelay = std::max(placed.kernelDelay, delayBy(start, work[port], users_[port]));
    free_[port] = std::max(free_[port], start) + work[port];
    placed.end =
        std::max(placed.end, alternating ? std::min(free_[port], start + 2 * work[port]) : free_[port]);
  }
  kernelEnd_ += placed.kernelDelay;
  return placed;
}

Cycles SharedPorts::delayBy(Cycles start, Cycles work, Users& users) {
  // Both want the port from here on, and each has half of it; what the transfer moved before is done.
  const Cycles both = std::max(start, users.start);
  const Cycles left = work - (both - start);
  if (left <= 0 || users.workEnd <= both) return 0;
  users.workEnd += std::min(left, users.workEnd - both);
  const Cycles late = std::max<Cycles>(users.workEnd - users.end, 0);
  users.end += late;
  const Cycles waited = std::min(late, users.gap);
  users.gap -= waited;
  return late - waited;
}

}  // namespace carina::npu::timing
