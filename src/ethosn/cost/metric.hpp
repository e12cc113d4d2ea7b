// SPDX-License-Identifier: Apache-2.0
// The measure by which Arm's planner chooses, the best public stand-in for time: within a pass, transfers,
// MCE and PLE run side by side, but for what must be there before the first stripe and what is left after the
// last one. Every stripe and every transfer takes a least number of cycles.
#pragma once

#include <cstdint>

#include "ethosn/stream/ple_kernels.hpp"

namespace carina::ethosn {

inline constexpr uint64_t kDmaBytesPerCycle = 16;
inline constexpr uint64_t kStripeOverhead = 100, kLeastOfStripe = 2500;

/// Cycles of something that is done stripe by stripe.
uint64_t stripesCycles(uint64_t cycles, uint64_t stripes, uint64_t overhead = kStripeOverhead);

/// Cycles that the PLE needs around each stripe of a kernel.
uint64_t pleStripeOverhead(PleOperation operation);

/// Transfers between DRAM and SRAM for one map of a pass.
struct Transfers {
  uint64_t bytes = 0, commands = 0;
  uint64_t stripes = 0;  // of the pass, over which they are spread

  uint64_t cycles() const;
  /// Of those, the cycles of the first stripe (of an output: the last), which nothing of the pass runs
  /// beside.
  uint64_t aloneCycles() const;
};

struct PassWork {
  Transfers input, weights, output;
  uint64_t mceCycles = 0, mceStripes = 0;
  uint64_t pleCycles = 0, pleStripes = 0;
  uint64_t pleOverhead = kStripeOverhead;  // of each stripe
};
uint64_t passCycles(const PassWork& pass);

}  // namespace carina::ethosn
