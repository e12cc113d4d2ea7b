// SPDX-License-Identifier: Apache-2.0
// Block configurations: the OFM blocks (and, on U85, microblocks) that an operation may use, the IFM block
// that each of them needs, and the placement of the buffers. Used by the compiler's search, the timing model
// and the stream checker. Rules: ethosu-architecture 1.1, 1.3, 1.4.
#pragma once

#include <optional>
#include <span>

#include "npu/isa/operation.hpp"
#include "npu/targets/target.hpp"

namespace carina::npu {

/// Buffers in SHRAM (U55/U65), in banks of 1 KiB: the values of the IB_END, IFM2_IB_START and AB_START
/// registers.
struct ShramLayout {
  int32_t ifmEnd = 0;
  int32_t ifm2Start = 0;  // 0 if there is no second, non-scalar input
  int32_t accumulatorStart = 0;
  friend bool operator==(const ShramLayout&, const ShramLayout&) = default;
};

/// OFM microblocks of a variant in table (search) order; one entry on U55/U65.
std::span<const BlockShape> microblocks(const Target& target);
/// U85 microblock for an ACC_FORMAT code (0: 1x1, 1: 1x2, 2: 1x4, 3: 2x2, 4: 2x4, 5: 4x4); empty if the
/// variant does not have it.
std::optional<BlockShape> microblockFromCode(const Target& target, int32_t code);
/// Whether the operation may use this microblock (always on U55/U65).
bool microblockAllowed(const Target& target, const KernelOperation& op, BlockShape microblock);
/// The allowed microblock that pads the OFM least; ties go to the first in table order. All are allowed if
/// the operation's accumulator output is disabled.
BlockShape preferredMicroblock(const Target& target, const KernelOperation& op);
/// U85 on-chip RAMs in bytes.
struct U85Buffers {
  int32_t input = 0, accumulator = 0, output = 0, chaining = 0;
};
U85Buffers u85Buffers(const Target& target);

/// The rules for one operation; everything that does not depend on the block is computed once.
class BlockRules {
 public:
  /// Reads kind, shapes, types, kernel, upscale, traversal, sparsity, activation, accumulator, transpose and
  /// reverse of `op`, and on U85 its microblock, but not its block. Does not retain `op`.
  BlockRules(const Target& target, const KernelOperation& op);

  /// Block heights, widths and depths are multiples of this.
  BlockShape granule() const { return granule_; }
  /// Largest block, in OFM axes before a transpose.
  BlockShape limit() const { return limit_; }
  BlockShape microblock() const { return microblock_; }
  /// IFM depth that depth-reducing operations process at a time; 0 if IFM and OFM depth advance together.
  int32_t reductionDepth() const { return reductionDepth_; }

  /// IFM block that an OFM block needs, with the kernel clamped to one sub-kernel, rounded up to the
  /// hardware's allocation unit.
  BlockShape ifmBlock(BlockShape ofmBlock) const;
  /// SHRAM layout (U55/U65), or nothing if the block does not fit.
  std::optional<ShramLayout> shram(BlockShape ofmBlock) const;
  /// Whether the block respects granule, limit and buffer sizes. `buffers`: number of blocks that the U85
  /// input and accumulator RAMs must hold (with 2, loading overlaps computation; 1 is still legal). U55/U65
  /// always hold two.
  bool fits(BlockShape ofmBlock, int32_t buffers = 2) const;
  /// Why the hardware cannot run a block; the stricter rules of compilers (granule, double buffering on U85)
  /// do not apply.
  Status check(BlockShape ofmBlock) const;

 private:
  BlockShape ifmBlockU55(BlockShape block) const;
  BlockShape ifmBlockU85(BlockShape block) const;
  bool fitsU85(BlockShape block, int32_t buffers) const;

  const Target& target_;
  OperationKind kind_;
  BlockShape granule_, limit_, microblock_;
  int32_t reductionDepth_ = 0, accumulatorBits_ = 32;  // as stored; 48-bit accumulators of a U85 take 64
  int32_t ifmBits_ = 8, ifmHeight_ = 1, ifmWidth_ = 1, ifmDepth_ = 1;
  int32_t kernelH_ = 1, kernelW_ = 1, strideY_ = 1,
          strideX_ = 1;  // dilated kernel, at most 8 (1 for elementwise)
  int32_t upscale_ = 1, nearest_ = 0;
  bool elementwise_ = false, equalDepth_ = false, hasIfm2_ = false, flatRow_ = false, usesLut_ = false;
};

/// Whether the activation reads table memory.
bool usesTableMemory(const Target& target, const Activation& activation);

}  // namespace carina::npu
