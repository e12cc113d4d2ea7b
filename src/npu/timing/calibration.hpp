// SPDX-License-Identifier: Apache-2.0
// The deviations of the cycle model from the public estimator of Arm's compiler, based on measurements. Every
// parameter has a value, the range that the evidence leaves open, and its evidence: FVP runs published with
// the source data of Kwon-GiHwan/mps4_prototyping_board (74 networks by target, 51 single operations) and
// ExecuTorch's MobileNetV2 on U85-128. docs/npu-model.md compares measured and modelled cycles in a table,
// which scripts/cycle_evidence.py maintains.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace carina::npu::timing {

/// The parameters with their calibrated values.
struct Rules {
  std::string_view name = "calibrated";
  std::string_view summary = "as measured";

  /// Multiplier cycles per tap and input byte of a pool. Range 1 to 4 (4: the public estimator). KWS 25x5
  /// average on U85-256: 2,015 cycles measured, 1,892 with 1, 7,570 with 4. All families; U55-32 has 1 in the
  /// estimator as well. Only 8-bit pools were measured; 16-bit ones are assumed to cost twice as much, as in
  /// earlier estimators.
  double poolCyclesPerTapAndByte = 1.0;

  /// U85, depthwise and part-kernel-first: whether the exact number of taps counts. The estimator rounds the
  /// taps of a kernel up to whole MAC steps of 4 (2 for 16-bit input); measured 3x3 layers cost nine taps
  /// (depthwise 96x96x8: 41,015 cycles, 41,472 by this rule, 55,296 by rounding). U55 and U65 round:
  /// otherwise U55-32 would be 8 % too fast.
  bool u85RealTaps = true;
  /// U85, the same operations: minimum number of taps that a kernel costs. Range 1 to 4, where 4 is a whole
  /// MAC step (also for 16-bit input, whose step is 2 taps). MobileNetV2, whose 1x1 layers of at most 32
  /// channels are part-kernel-first, takes 5,078,222 measured cycles on U85-128, 5,160,154 with 1, 5,951,236
  /// with 4; no single layer with fewer than four taps was measured.
  int64_t u85LeastTaps = 1;

  /// U85, depth-first: multiple that the input depth is padded to. Range 32 to 64. 276 -> 276 channels:
  /// 80,030 cycles measured, 80,640 with 32, 91,390 with the depth of the input block (64). The data does not
  /// distinguish depths of at most 32.
  int64_t u85DepthPadding = 32;
  /// U85, part-kernel-first: the same for its input depth. Range 8 to 32; 8 is the depth of a MAC step.
  int64_t u85PartKernelPadding = 8;

  /// U85: depth steps of an input block row that stay in the input buffer between output depth blocks. Range
  /// 3 to 5; exact on 3x3 convolutions of 8 steps, which read 1.5, 2, 2.5 and 4.5 times the input for 2, 3, 4
  /// and 8 output depth blocks.
  int64_t u85ResidentDepthSteps = 4;

  /// U65 and U85: whether accesses shorter than a burst cost only their bytes instead of whole bursts. AXI
  /// beats of the FVP are exact (288 writes where whole bursts give 2,304). On U85 short runs cost
  /// outstanding transactions instead of bytes.
  bool exactBytes = true;

  /// U85, elementwise: whether the exact depth counts instead of the depth rounded up to a brick of 16.
  /// Adding 96x96x4: 10,015 cycles measured on U85-256; 9,216 by this rule, 36,864 by bricks.
  bool u85RealElementwiseDepth = true;

  /// U85: an operation limited by a port pays for both ends of its pipeline, as one limited by the
  /// multipliers does: nothing is written before the first block is complete, and the data read last must
  /// still be processed and written. 1x1 of 6x6x128 on U85-512: 6,029 cycles measured, 6,117 by this rule,
  /// 4,572 without. AD (MicroNet) on U85-1024: 140,261 measured, 134,921 and 129,213.
  bool u85PortEnds = true;
  /// U85, depthwise: the output unit processes a block in slices as deep as a microblock, each as soon as its
  /// taps are done, so that only the last slice remains when the multipliers finish. 3x3 of 6x6x128 on
  /// U85-512 without latency: 1,271 cycles measured in total, 1,048 by this rule, 1,804 by whole blocks.
  bool u85DepthwiseSlices = true;

  /// Elementwise operations wait for their first block and drain their last one, as convolutions do.
  /// Measurements of small operations are not accurate enough to decide.
  bool elementwiseFills = false;
  /// Elementwise operations compute whole microblocks.
  bool elementwiseMicroblocks = false;

  /// A DMA transfer gets only what kernels leave of a port. Otherwise it gets at least every other access, as
  /// an arbiter among channels would grant them (shared_ports.hpp). 1x1 of 16x16x128 on U85-256: 36,832
  /// cycles measured, 48,463 with alternation, 49,434 with waiting; KWS on U65-256: 217,391 with both.
  bool transfersWait = false;

  /// An operation with BLOCKDEP loads its first input while the preceding one finishes.
  bool blockdepOverlap = true;
};

inline constexpr Rules kCalibrated{};

/// The calibrated rules, then each uncertain parameter at the other end of its range, then several at once.
/// Schedules are evaluated under all of them (`cycles_by_rules` of `carina profile --json`).
std::span<const Rules> ruleSets();
/// Null if no rules have this name.
const Rules* findRules(std::string_view name);

}  // namespace carina::npu::timing
