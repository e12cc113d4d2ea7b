// SPDX-License-Identifier: Apache-2.0
// What the generations of the NPU differ in, a row each. Code asks for a capability by name, not for a
// family, so that what a generation can do is said in one place (ethosu-architecture 1; ethosu-command-stream
// 3, 5, 6).
#pragma once

#include <cstdint>

namespace carina::npu {

enum class Family : uint8_t { U55, U65, U85 };

/// Height, width, depth: of blocks and microblocks.
struct BlockShape {
  int32_t h = 1, w = 1, c = 1;
  int64_t elements() const { return int64_t{h} * w * c; }
  friend bool operator==(const BlockShape&, const BlockShape&) = default;
};

struct Architecture {
  // The elementwise unit
  bool bitwise;  // AND, OR, XOR, NOT, comparisons and logical shifts
  bool
      operandScales;  // both operands of every operation have a scale; else those of 8 and 16-bit ADD and SUB
  bool broadcastsBothOperands;  // else the second one only, and scalars are the second operand
  int32_t scalarBytes;          // widest element that a scalar operand may have
  bool wideElements;            // 64-bit elements
  bool reversesOperands;        // a binary operation may swap its operands
  bool slowProducts;            // MUL takes longer per element than a convolution with one tap

  // The output stage
  bool wideScaling;        // results of 32 bits are multiplied; else shifted only
  bool scalesExtrema;      // MAX and MIN have an output scale
  bool truncatingScales;   // rounding towards minus infinity
  bool wideTables;         // tables from 16-bit indices to 32-bit results
  bool clampHasType;       // the clamp's element type is a field; else it is the OFM's
  bool transposingWriter;  // the OFM may be written with its axes permuted
  bool chains;             // elementwise operations take the blocks of the one in front

  // Convolutions and pools
  bool averagesDivide;          // AVERAGE always divides by the elements in the window; else where asked for
  int32_t averageBits;          // of the reciprocals that it divides by
  int32_t poolElementBytes;     // widest element that is pooled, but for REDUCE_SUM
  bool extendedPools;           // MIN, SUM and ARGMAX besides MAX, AVERAGE and REDUCE_SUM
  bool resize;                  // the RESIZE operation
  bool computedWeights;         // weights may be a feature map
  bool sparseWeights;           // streams with 2:4 sparsity
  bool shortWideScales;         // convolutions of 16-bit maps take 15-bit multipliers
  int32_t wideAccumulatorBits;  // of convolutions of 16-bit maps
  int64_t wideSumLimit;         // what the sum of |weight| x |input| of a 16-bit convolution may reach
  bool wideResults;             // 48-bit sums may be written as 64-bit elements
  bool choosesMicroblocks;      // each operation has a microblock of its own; else the variant has one
  BlockShape maxBlock;
  int32_t blockBuffers;  // OFM blocks that the accumulators hold at a time outside of elementwise operations

  // Memory
  int32_t addressBits;
  int32_t axiBytes;       // data bus width per port
  bool bothPortsWrite;    // the arena and the cache may lie behind either port; else behind AXI0
  bool exactPortBytes;    // half-used bricks are not moved in whole
  bool channelBuffers;    // each kind of access has buffers, and so a bandwidth, of its own
  int32_t dmaDimensions;  // of a DMA without indices
  bool dmaGapStrides;     // DMA strides are gaps behind runs; else distances between them
  bool
      dmaAlignsMemory;  // DMA addresses outside of internal memory are multiples of 16, lengths count as such
  bool dmaAlignsInternal;  // those in internal memory are
  bool indexedDma;         // gather and scatter
  bool storageField;       // FeatureMap::storage is programmed; else maps always are 2x2 tiles

  // Commands and counters
  bool branches;  // the command BRANCH
  int32_t maxBlockDependency;
  int32_t outstandingDmas;
  uint32_t pmuCounters;
  uint32_t pmuEventMask;  // bits of PMEVTYPER that exist
  bool pmuElementSizes;   // MAC activity is counted by element size, too
};

/// The row of a family.
const Architecture& architectureOf(Family family);

}  // namespace carina::npu
