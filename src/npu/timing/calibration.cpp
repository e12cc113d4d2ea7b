// SPDX-License-Identifier: Apache-2.0
// Settings of the cycle model (calibration.hpp).
#include "npu/timing/calibration.hpp"

#include <array>

namespace carina::npu::timing {
namespace {

template <typename Change>
constexpr Rules changed(std::string_view name, std::string_view summary, const Change& change) {
  Rules rules;
  rules.name = name;
  rules.summary = summary;
  change(rules);
  return rules;
}

constexpr void padTo64(Rules& rules) {
  rules.u85DepthPadding = 64;
  rules.u85PartKernelPadding = 32;
}

constexpr std::array kSets{
    kCalibrated,
    changed("no-overlap", "operations with BLOCKDEP wait for the preceding one",
            [](Rules& r) { r.blockdepOverlap = false; }),
    changed("transfers-wait", "transfers get only the port bandwidth that kernels leave",
            [](Rules& r) { r.transfersWait = true; }),
    changed("elementwise-fill", "elementwise operations pay fill and drain",
            [](Rules& r) { r.elementwiseFills = true; }),
    changed("elementwise-microblocks", "elementwise operations compute whole microblocks",
            [](Rules& r) { r.elementwiseMicroblocks = true; }),
    changed("pool-4", "4 cycles per tap of a pool", [](Rules& r) { r.poolCyclesPerTapAndByte = 4; }),
    changed("whole-bursts", "short accesses cost whole bursts", [](Rules& r) { r.exactBytes = false; }),
    changed("small-kernels", "kernels of fewer than 4 taps pay a whole MAC step",
            [](Rules& r) { r.u85LeastTaps = 4; }),
    changed("resident-3", "3 depth steps stay in the input buffer",
            [](Rules& r) { r.u85ResidentDepthSteps = 3; }),
    changed("resident-5", "5 depth steps stay in the input buffer",
            [](Rules& r) { r.u85ResidentDepthSteps = 5; }),
    changed("depth-64", "depth-first pads to 64 channels", [](Rules& r) { r.u85DepthPadding = 64; }),
    changed("depth-64-part", "and part-kernel-first to 32", padTo64),
    changed("depth-64-part-fill", "and elementwise operations pay fill and drain",
            [](Rules& r) {
              padTo64(r);
              r.elementwiseFills = true;
            }),
    changed("estimator", "as in the public estimator",
            [](Rules& r) {
              r.poolCyclesPerTapAndByte = 4;
              r.u85RealTaps = false;
              r.u85DepthPadding = 64;
              r.u85ResidentDepthSteps = 1;
              r.exactBytes = false;
              r.u85RealElementwiseDepth = false;
              r.u85PortEnds = false;
              r.u85DepthwiseSlices = false;
            }),
};

}  // namespace

std::span<const Rules> ruleSets() {
  return kSets;
}

const Rules* findRules(std::string_view name) {
  for (const Rules& rules : kSets) {
    if (rules.name == name) return &rules;
  }
  return nullptr;
}

}  // namespace carina::npu::timing
