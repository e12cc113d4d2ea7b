// SPDX-License-Identifier: Apache-2.0
// The cost metric of Arm's planner, the best public proxy for time: within a pass, transfers, MCE and PLE run
// in parallel, except for what must be present before the first stripe and what remains after the last one.
// Every stripe and every transfer costs a minimum number of cycles.
#pragma once

#include <cstdint>

#include "ethosn/stream/ple_kernels.hpp"

namespace carina::ethosn {

inline constexpr uint64_t kDmaBytesPerCycle = 16;
inline constexpr uint64_t kStripeOverhead = 100, kMinOfStripe = 2500;

/// Cycles of work that is done stripe by stripe.
uint64_t stripesCycles(uint64_t cycles, uint64_t stripes, uint64_t overhead = kStripeOverhead);

/// Overhead of the PLE, in cycles, for each stripe of a kernel.
uint64_t pleStripeOverhead(PleOperation operation);

/// Transfers between DRAM and SRAM for one feature map, or the weights, of a pass.
struct Transfers {
  uint64_t bytes = 0, commands = 0;
  uint64_t stripes = 0;  // of the pass, over which the transfers are spread

  uint64_t cycles() const;
  /// The part of these that falls to the first stripe (for an output: the last), while nothing else of the
  /// pass runs.
  uint64_t aloneCycles() const;
};

struct PassWork {
  Transfers input, weights, output;
  uint64_t mceCycles = 0, mceStripes = 0;
  uint64_t pleCycles = 0, pleStripes = 0;
  uint64_t pleOverhead = kStripeOverhead;  // per stripe
};
uint64_t passCycles(const PassWork& pass);

}  // namespace carina::ethosn
