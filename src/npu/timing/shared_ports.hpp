// SPDX-License-Identifier: Apache-2.0
// Memory ports that kernels and DMA transfers share: two queues, each in order, of which operations are
// placed as a stream has them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace carina::npu::timing {

using Cycles = int64_t;

/// What goes through a port goes through one after the other: a port is busy for the sum of what kernels and
/// transfers move. An arbiter gives a transfer every other access while a kernel wants the port as well, so
/// that a kernel which is placed already may end later than it was said to.
class SharedPorts {
 public:
  using Work = std::array<Cycles, 2>;  // cycles that each port is busy

  /// Places the next kernel. `from`: when it begins to use the ports, at most its `start`; `end`: the
  /// earliest that it may end. Returns when it ends.
  Cycles kernel(Cycles from, Cycles start, Cycles end, const Work& work);

  struct Transfer {
    Cycles end = 0;
    Cycles kernelDelay = 0;  // that the latest kernel ends later than it was said to
  };
  /// Places the next transfer. `end`: the earliest that it may end. Not `alternating`: it comes after what
  /// kernels move.
  Transfer transfer(Cycles start, Cycles end, const Work& work, bool alternating);

  /// When all that was placed has gone through a port.
  Cycles free(size_t port) const { return free_[port]; }

 private:
  /// Kernels that use the port without a pause, up to the latest one that does.
  struct Users {
    Cycles start = 0, workEnd = 0;  // of what they move
    Cycles end = 0;                 // of the latest
    Cycles gap = 0;                 // in which no kernel runs, since then
  };

  /// How much later the latest kernel ends because a transfer begins at `start`.
  static Cycles delayBy(Cycles start, Cycles work, Users& users);

  Cycles kernelEnd_ = 0;
  std::array<Cycles, 2> free_{};
  std::array<Users, 2> users_;
};

}  // namespace carina::npu::timing
