// SPDX-License-Identifier: Apache-2.0
#include "ethosn/cost/metric.hpp"

#include <algorithm>

namespace carina::ethosn {

uint64_t stripesCycles(uint64_t cycles, uint64_t stripes, uint64_t overhead) {
  return stripes == 0 ? 0 : std::max(cycles + stripes * overhead, stripes * kMinOfStripe);
}

uint64_t pleStripeOverhead(PleOperation operation) {
  switch (operation) {
    case PleOperation::Addition:
    case PleOperation::AdditionRescale:
      return 1500;
    case PleOperation::Multiplication:
      return 0;
    default:
      return kStripeOverhead;
  }
}

uint64_t Transfers::cycles() const {
  return stripesCycles(bytes / kDmaBytesPerCycle, commands);
}

uint64_t Transfers::aloneCycles() const {
  const uint64_t parts = std::max<uint64_t>(1, std::min(commands, stripes));
  return cycles() / parts;
}

uint64_t passCycles(const PassWork& pass) {
  const uint64_t alone = pass.input.aloneCycles() + pass.weights.aloneCycles() + pass.output.aloneCycles();
  const auto beside = [](const Transfers& transfers) { return transfers.cycles() - transfers.aloneCycles(); };
  return alone + std::max({beside(pass.input) + beside(pass.weights), beside(pass.output),
                           stripesCycles(pass.mceCycles, pass.mceStripes),
                           stripesCycles(pass.pleCycles, pass.pleStripes, pass.pleOverhead)});
}

}  // namespace carina::ethosn
