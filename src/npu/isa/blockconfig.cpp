// SPDX-License-Identifier: Apache-2.0
// Block configuration rules (blockconfig.hpp).
#include "npu/isa/blockconfig.hpp"

#include <algorithm>
#include <array>

#include "base/shape.hpp"
#include "npu/targets/mac_array.hpp"

namespace carina::npu {
namespace {

/// IFM allocation unit of a microblock, by bits of the block's IFM depth.
BlockShape allocationUnit(const Target& target, BlockShape ub, int64_t depthBits) {
  const MacArray& array = macArrayOf(target);
  const AllocationUnits& units = ub.h == 1 && ub.w == 4 ? array.wideAllocation : array.allocation;
  return units[depthBits <= 128 ? 0 : depthBits <= 256 ? 1 : 2];
}

bool isReduceExtremum(PoolMode mode) {
  return mode == PoolMode::Max || mode == PoolMode::Min;
}

/// Element size that determines the legal microblocks; pools that read IFM2 instead of the IFM count as
/// 8-bit.
int32_t lookupBits(const KernelOperation& op) {
  if (op.kind == OperationKind::Pool && op.pool == PoolMode::None) return 8;
  return elementBytes(op.ifm.type) * 8;
}

}  // namespace

std::span<const BlockShape> microblocks(const Target& target) {
  return macArrayOf(target).microblocks;
}

std::optional<BlockShape> microblockFromCode(const Target& target, int32_t code) {
  constexpr std::array<std::array<int32_t, 2>, 6> kShapes{{{1, 1}, {1, 2}, {1, 4}, {2, 2}, {2, 4}, {4, 4}}};
  if (code < 0 || code >= static_cast<int32_t>(kShapes.size())) return std::nullopt;
  const auto shape = kShapes[static_cast<size_t>(code)];
  for (const BlockShape& ub : microblocks(target)) {
    if (ub.h == shape[0] && ub.w == shape[1]) return ub;
  }
  return std::nullopt;
}

bool microblockAllowed(const Target& target, const KernelOperation& op, BlockShape microblock) {
  const auto all = microblocks(target);
  if (std::find(all.begin(), all.end(), microblock) == all.end()) return false;
  if (!target.isU85() || !op.accumulatorOutput) return true;
  const int32_t bits = lookupBits(op);
  const bool conv = op.kind == OperationKind::Conv;
  const bool elementwise = op.kind == OperationKind::Elementwise;
  const bool resize = op.kind == OperationKind::Resize;
  const bool pool = op.kind == OperationKind::Pool;
  const bool reduceSum = pool && op.pool == PoolMode::ReduceSum;
  if (bits >= 32) {
    if (elementwise) return true;
    const bool reduces = reduceSum || (pool && isReduceExtremum(op.pool));
    switch (target.macs) {
      case 128:
      case 256:
        return microblock.c == 8 ? reduces || resize : resize;
      case 512:
        return reduces || resize;
      default:
        return microblock.c == 16 && (reduces || resize);
    }
  }
  const bool depthwiseLike = op.kind == OperationKind::Depthwise || pool;
  switch (target.macs) {
    case 128:
    case 256: {
      const bool deep = microblock.c == 16;
      if (elementwise || resize) return true;
      if (bits == 8) return deep ? depthwiseLike && !reduceSum : conv || reduceSum;
      if (!deep) return true;
      const bool oneByOne = op.kernel.height == 1 && op.kernel.width == 1 &&
                            (!op.weights || op.weights->traversal == Traversal::DepthFirst);
      return conv && oneByOne;
    }
    case 512:
      return true;
    default:
      return microblock.c == 16 || conv || elementwise;
  }
}

BlockShape preferredMicroblock(const Target& target, const KernelOperation& op) {
  BlockShape best = microblocks(target).front();
  int64_t least = -1;
  for (const BlockShape& ub : microblocks(target)) {
    if (!microblockAllowed(target, op, ub)) continue;
    const int64_t padded =
        roundUp(op.ofm.height, ub.h) * roundUp(op.ofm.width, ub.w) * roundUp(op.ofm.depth, ub.c);
    if (least < 0 || padded < least) {
      least = padded;
      best = ub;
    }
  }
  return best;
}

U85Buffers u85Buffers(const Target& target) {
  const auto& [input, accumulator, output, chaining] = macArrayOf(target).bufferBytes;
  return {input, accumulator, output, chaining};
}

bool usesTableMemory(const Target& target, const Activation& activation) {
  switch (activation.table) {
    case Table::None:
      return false;
    case Table::Tanh:
    case Table::Sigmoid:
      return target.isU85();
    default:
      return true;
  }
}

BlockRules::BlockRules(const Target& target, const KernelOperation& op) : target_(target), kind_(op.kind) {
  elementwise_ = op.kind == OperationKind::Elementwise;
  const bool resize = op.kind == OperationKind::Resize;
  const bool reduceSum = op.kind == OperationKind::Pool && op.pool == PoolMode::ReduceSum;
  equalDepth_ = elementwise_ || resize || op.kind == OperationKind::Depthwise ||
                (op.kind == OperationKind::Pool && !reduceSum);
  ifmBits_ = lookupBits(op);
  ifmHeight_ = op.ifm.height;
  ifmWidth_ = op.ifm.width;
  ifmDepth_ = op.ifm.depth;
  usesLut_ = usesTableMemory(target, op.activation);
  hasIfm2_ = elementwise_ && op.ifm2.has_value() && !op.elementwise.ifm2Broadcast.scalar;
  if (!elementwise_ && !resize) {
    kernelH_ = std::min(op.kernel.dilatedHeight(), op.kernel.subKernel);
    kernelW_ = std::min(op.kernel.dilatedWidth(), op.kernel.subKernel);
    strideY_ = op.kernel.strideY;
    strideX_ = op.kernel.strideX;
    upscale_ = op.upscale == Upscale::None ? 1 : 2;
    nearest_ = op.upscale == Upscale::Nearest ? 1 : 0;
  }
  const bool partKernel = op.kind == OperationKind::Conv && op.weights.has_value() &&
                          op.weights->traversal == Traversal::PartKernelFirst;
  const bool sparse = op.weights.has_value() && op.weights->sparse;
  const BlockShape maximum = target.architecture().maxBlock;
  if (!target.isU85()) {
    microblock_ = microblocks(target).front();
    granule_ = microblock_;
    limit_ = maximum;
    accumulatorBits_ = op.accumulator == AccumulatorFormat::Int40 ? 40 : 32;
    flatRow_ =
        op.kind == OperationKind::Conv && op.ofm.height == 1 && op.kernel.height == 1 && microblock_.h == 2;
    if (!equalDepth_) {
      reductionDepth_ =
          static_cast<int32_t>(ifmBits_ == 16 ? roundUp(std::min(ifmDepth_, 16), 4)
                                              : roundUp(std::min(ifmDepth_, partKernel ? 16 : 32), 8));
    }
    return;
  }
  microblock_ = op.microblock;
  accumulatorBits_ = op.accumulator == AccumulatorFormat::Int48 ? 64 : 32;
  granule_ = {microblock_.h, microblock_.w, 16};
  if (op.ofm.layout == Layout::NHCWB16) {
    // A transpose that moves the width (height) to the channel axis writes whole bricks.
    const auto wide = [](int32_t g) { return static_cast<int32_t>(roundUp(g, 16)); };
    if (op.transpose == Transpose::HCW || op.transpose == Transpose::CHW) granule_.w = wide(granule_.w);
    if (op.transpose == Transpose::WCH || op.transpose == Transpose::CWH) granule_.h = wide(granule_.h);
  }
  // The maximum block applies to memory axes; map it back to operation axes.
  limit_ = maximum;
  switch (op.transpose) {
    case Transpose::HWC:
      break;
    case Transpose::WHC:
      limit_ = {maximum.w, maximum.h, maximum.c};
      break;
    case Transpose::HCW:
      limit_ = {maximum.h, maximum.c, maximum.w};
      break;
    case Transpose::WCH:
      limit_ = {maximum.c, maximum.h, maximum.w};
      break;
    case Transpose::CHW:
      limit_ = {maximum.w, maximum.c, maximum.h};
      break;
    case Transpose::CWH:
      limit_ = {maximum.c, maximum.w, maximum.h};
      break;
  }
  limit_ = {std::min(limit_.h, maximum.h), std::min(limit_.w, maximum.w), std::min(limit_.c, maximum.c)};
  if (op.reverse == Reverse::C) limit_.c = 16;
  if (resize) {
    limit_.h = 1;
    granule_.h = 1;
    limit_.c = 16;
  }
  if (!equalDepth_) {
    if (partKernel) {
      reductionDepth_ = 16;
    } else if (ifmBits_ == 32 || (target.macs <= 256 && microblock_.c == 16 && !sparse)) {
      reductionDepth_ = 32;
    } else {
      reductionDepth_ = sparse && ifmBits_ == 8 ? 128 : 64;
    }
  }
}

BlockShape BlockRules::ifmBlock(BlockShape ofmBlock) const {
  return target_.isU85() ? ifmBlockU85(ofmBlock) : ifmBlockU55(ofmBlock);
}

BlockShape BlockRules::ifmBlockU55(BlockShape block) const {
  const auto required = [this](int32_t v, int32_t stride, int32_t border) {
    return ceilDiv((int64_t{v} - 1) * stride + border + nearest_, upscale_);
  };
  return {static_cast<int32_t>(roundUp(required(block.h, strideY_, kernelH_), microblock_.h)),
          static_cast<int32_t>(roundUp(required(block.w, strideX_, kernelW_), microblock_.w)),
          equalDepth_ ? block.c : reductionDepth_};
}

BlockShape BlockRules::ifmBlockU85(BlockShape block) const {
  if (elementwise_) return block;
  const auto required = [this](int32_t v, int32_t stride, int32_t border) {
    return ceilDiv((int64_t{v} - 1) * stride + border + nearest_, upscale_);
  };
  const int32_t depth = reductionDepth_ != 0 ? std::min(reductionDepth_, ifmDepth_) : block.c;
  const BlockShape unit = allocationUnit(
      target_, microblock_, int64_t{reductionDepth_ != 0 ? reductionDepth_ : block.c} * ifmBits_);
  const int32_t unitDepth = unit.c * 128 / ifmBits_;
  return {static_cast<int32_t>(roundUp(required(block.h, strideY_, kernelH_), unit.h)),
          static_cast<int32_t>(roundUp(required(block.w, strideX_, kernelW_), unit.w)),
          static_cast<int32_t>(roundUp(depth, std::max(unitDepth, 1)))};
}

std::optional<ShramLayout> BlockRules::shram(BlockShape block) const {
  if (target_.isU85()) return std::nullopt;
  constexpr int32_t kOutputBanks = 2;
  const Granules granules = macArrayOf(target_).granules;
  const int32_t lutBanks = std::max(usesLut_ ? 2 : 0, target_.lutReservedBanks);
  const int32_t lutStart = target_.shramKiB - lutBanks;
  const BlockShape ifm = ifmBlockU55(block);
  const int64_t ifmBytes = int64_t{ifm.h} * ifm.w * roundUp(int64_t{ifm.c} * ifmBits_ / 8, 8);
  const int64_t ifmBanks =
      roundUp(2 * ceilDiv(ifmBytes, 1024), ifmBits_ == 32 ? granules.ifm32 : granules.ifm);
  ShramLayout layout;
  if (elementwise_) {
    // IB_END applies to both inputs, which share all banks up to the table.
    const int64_t second = kOutputBanks + ifmBanks;
    if (second + (hasIfm2_ ? ifmBanks : 0) > lutStart) return std::nullopt;
    layout.ifm2Start = hasIfm2_ ? static_cast<int32_t>(second) : 0;
    layout.ifmEnd = layout.accumulatorStart = lutStart;
    return layout;
  }
  const int64_t height = flatRow_ ? std::min(block.h, 1) : block.h;
  const int64_t accBytes = height * block.w * roundUp(block.c, 8) * accumulatorBits_ / 8;
  const int64_t accBanks =
      roundUp(2 * ceilDiv(accBytes, 1024), accumulatorBits_ == 40 ? granules.acc40 : granules.acc32);
  if (kOutputBanks + ifmBanks > lutStart - accBanks) return std::nullopt;
  layout.ifmEnd = static_cast<int32_t>(kOutputBanks + ifmBanks);
  layout.accumulatorStart = static_cast<int32_t>(lutStart - accBanks);
  return layout;
}

bool BlockRules::fitsU85(BlockShape block, int32_t buffers) const {
  const U85Buffers ram = u85Buffers(target_);
  // Elementwise and resize pass through the output buffer row by row: no block is too large for them.
  if (elementwise_ || kind_ == OperationKind::Resize) return true;
  const BlockShape ifm = ifmBlockU85(block);
  // Padding is not stored: a block never takes more space than the whole feature map.
  const int64_t blockElements = int64_t{ifm.h} * ifm.w * ifm.c;
  const int64_t mapElements = int64_t{ifmHeight_} * ifmWidth_ * roundUp(ifmDepth_, 16);
  const int64_t ifmBytes =
      (buffers == 1 ? std::min(blockElements, mapElements) : blockElements) * ifmBits_ / 8;
  const int64_t accBytes = int64_t{block.h} * block.w * roundUp(block.c, 16) * accumulatorBits_ / 8;
  return buffers * ifmBytes <= ram.input && buffers * accBytes <= ram.accumulator;
}

bool BlockRules::fits(BlockShape block, int32_t buffers) const {
  if (block.h < 1 || block.w < 1 || block.c < 1) return false;
  if (block.h % granule_.h != 0 || block.w % granule_.w != 0 || block.c % granule_.c != 0) return false;
  if (block.h > roundUp(limit_.h, granule_.h) || block.w > roundUp(limit_.w, granule_.w) ||
      block.c > limit_.c) {
    return false;
  }
  return target_.isU85() ? fitsU85(block, buffers) : shram(block).has_value();
}

Status BlockRules::check(BlockShape block) const {
  // Compilers use the larger granule(); the hardware accepts any multiple of the microblock.
  BlockShape unit = target_.isU85() ? microblock_ : granule_;
  if (kind_ == OperationKind::Resize) unit.h = granule_.h;  // blocks of RESIZE are one row high
  if (block.h < 1 || block.w < 1 || block.c < 1 || block.h % unit.h != 0 || block.w % unit.w != 0 ||
      block.c % unit.c != 0) {
    return fail(Code::HardwareLimit,
                "OFM block {}x{}x{} (height, width, depth) is not a multiple of {}x{}x{}", block.h, block.w,
                block.c, unit.h, unit.w, unit.c);
  }
  const BlockShape maximum = target_.architecture().maxBlock;
  if (block.h > maximum.h || block.w > maximum.w || block.c > maximum.c) {
    return fail(Code::HardwareLimit, "OFM block {}x{}x{} is larger than {}x{}x{}", block.h, block.w, block.c,
                maximum.h, maximum.w, maximum.c);
  }
  if (target_.isU85() ? !fitsU85(block, 1) : !shram(block).has_value()) {
    const BlockShape ifm = ifmBlock(block);
    return fail(Code::HardwareLimit,
                "OFM block {}x{}x{} with IFM block {}x{}x{} does not fit the on-chip buffers of {}", block.h,
                block.w, block.c, ifm.h, ifm.w, ifm.c, target_.name);
  }
  return {};
}

}  // namespace carina::npu
