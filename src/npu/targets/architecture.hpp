// SPDX-License-Identifier: Apache-2.0
// The capabilities in which the NPU generations differ, one row each. Code queries a capability by name, not
// the family, so that the capabilities of a generation are defined in one place (ethosu-architecture 1;
// ethosu-command-stream 3, 5, 6).
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
      operandScales;  // every operation has a scale for both operands; else only 8- and 16-bit ADD and SUB do
  bool broadcastsBothOperands;  // else only the second one, and scalars must be the second operand
  int32_t scalarBytes;          // widest element that a scalar operand may have
  bool wideElements;            // 64-bit elements
  bool reversesOperands;        // a binary operation may swap its operands
  bool slowProducts;            // MUL takes longer per element than a convolution with one tap

  // The output stage
  bool wideScaling;        // 32-bit results are multiplied; else only shifted
  bool scalesExtrema;      // MAX and MIN have an output scale
  bool truncatingScales;   // rounding towards minus infinity
  bool wideTables;         // tables from 16-bit indices to 32-bit results
  bool clampHasType;       // the clamp's element type is a field; else it is the OFM's
  bool transposingWriter;  // the OFM may be written with its axes permuted
  bool chains;             // elementwise operations read the blocks of the preceding operation

  // Convolutions and pools
  bool averagesDivide;          // AVERAGE always divides by the window's elements; else only if requested
  int32_t averageBits;          // of the reciprocals used for the division
  int32_t poolElementBytes;     // widest element that can be pooled, except by REDUCE_SUM
  bool extendedPools;           // MIN, SUM and ARGMAX in addition to MAX, AVERAGE and REDUCE_SUM
  bool resize;                  // the RESIZE operation
  bool computedWeights;         // weights may be a feature map
  bool sparseWeights;           // streams with 2:4 sparsity
  bool shortWideScales;         // convolutions of 16-bit feature maps use 15-bit multipliers
  int32_t wideAccumulatorBits;  // of convolutions of 16-bit maps
  int64_t wideSumLimit;         // limit on the sum of |weight| x |input| of a 16-bit convolution
  bool wideResults;             // 48-bit sums may be written as 64-bit elements
  bool choosesMicroblocks;      // each operation chooses its microblock; else it is fixed by the variant
  BlockShape maxBlock;
  int32_t blockBuffers;  // OFM blocks that the accumulators hold at once, except in elementwise operations

  // Memory
  int32_t addressBits;
  int32_t axiBytes;       // data bus width per port
  bool bothPortsWrite;    // the arena and the cache may be behind either port; else only behind AXI0
  bool exactPortBytes;    // only the bytes used are moved; else whole bricks and bursts
  bool channelBuffers;    // each kind of access has its own buffers and hence its own bandwidth
  int32_t dmaDimensions;  // of a DMA without indices
  bool dmaGapStrides;     // DMA strides are gaps after runs; else distances between run starts
  bool
      dmaAlignsMemory;  // DMA addresses outside internal memory are multiples of 16; lengths round up to them
  bool dmaAlignsInternal;  // those in internal memory, and lengths written there, are
  bool indexedDma;         // gather and scatter
  bool storageField;       // FeatureMap::storage is programmed; else maps are always 2x2 tiles

  // Commands and counters
  bool branches;  // the command BRANCH
  int32_t maxBlockDependency;
  int32_t outstandingDmas;
  uint32_t pmuCounters;
  uint32_t pmuEventMask;  // implemented bits of PMEVTYPER
  bool pmuElementSizes;   // MAC activity is also counted by element size
};

/// The row of a family.
const Architecture& architectureOf(Family family);

}  // namespace carina::npu
