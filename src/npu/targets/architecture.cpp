// SPDX-License-Identifier: Apache-2.0
// The rows (architecture.hpp).
#include "npu/targets/architecture.hpp"

#include "base/check.hpp"

namespace carina::npu {
namespace {

constexpr Architecture kU55{
    .bitwise = false,
    .operandScales = false,
    .broadcastsBothOperands = false,
    .scalarBytes = 2,
    .wideElements = false,
    .reversesOperands = true,
    .slowProducts = true,
    .wideScaling = false,
    .scalesExtrema = false,
    .truncatingScales = false,
    .wideTables = false,
    .clampHasType = true,
    .transposingWriter = false,
    .chains = false,
    .averagesDivide = false,
    .averageBits = 31,
    .poolElementBytes = 2,
    .extendedPools = false,
    .resize = false,
    .computedWeights = false,
    .sparseWeights = false,
    .shortWideScales = false,
    .wideAccumulatorBits = 40,
    .wideSumLimit = int64_t{127} << 16,
    .wideResults = false,
    .choosesMicroblocks = false,
    .maxBlock = {32, 64, 128},
    .blockBuffers = 1,
    .addressBits = 32,
    .axiBytes = 8,
    .bothPortsWrite = false,
    .exactPortBytes = false,
    .channelBuffers = false,
    .dmaDimensions = 1,
    .dmaGapStrides = false,
    .dmaAlignsMemory = true,
    .dmaAlignsInternal = true,
    .indexedDma = false,
    .storageField = false,
    .branches = false,
    .maxBlockDependency = 3,
    .outstandingDmas = 1,
    .pmuCounters = 4,
    .pmuEventMask = 0x3ff,
    .pmuElementSizes = true,
};

// Differs from U55 in memory and in the number of cores, not in what its operations can do.
constexpr Architecture kU65 = [] {
  Architecture row = kU55;
  row.addressBits = 40;
  row.axiBytes = 16;
  row.bothPortsWrite = true;
  row.exactPortBytes = true;
  row.dmaDimensions = 3;
  row.dmaGapStrides = true;
  row.dmaAlignsMemory = false;
  row.outstandingDmas = 2;
  return row;
}();

constexpr Architecture kU85{
    .bitwise = true,
    .operandScales = true,
    .broadcastsBothOperands = true,
    .scalarBytes = 4,
    .wideElements = true,
    .reversesOperands = false,
    .slowProducts = false,
    .wideScaling = true,
    .scalesExtrema = true,
    .truncatingScales = true,
    .wideTables = true,
    .clampHasType = false,
    .transposingWriter = true,
    .chains = true,
    .averagesDivide = true,
    .averageBits = 30,
    .poolElementBytes = 4,
    .extendedPools = true,
    .resize = true,
    .computedWeights = true,
    .sparseWeights = true,
    .shortWideScales = true,
    .wideAccumulatorBits = 48,
    .wideSumLimit = 2130706432,
    .wideResults = true,
    .choosesMicroblocks = true,
    .maxBlock = {128, 128, 1024},
    .blockBuffers = 2,
    .addressBits = 40,
    .axiBytes = 16,
    .bothPortsWrite = true,
    .exactPortBytes = true,
    .channelBuffers = true,
    .dmaDimensions = 3,
    .dmaGapStrides = false,
    .dmaAlignsMemory = false,
    .dmaAlignsInternal = false,
    .indexedDma = true,
    .storageField = true,
    .branches = true,
    .maxBlockDependency = 7,
    .outstandingDmas = 4,
    .pmuCounters = 8,
    .pmuEventMask = 0xf3ff,
    .pmuElementSizes = false,
};

}  // namespace

const Architecture& architectureOf(Family family) {
  switch (family) {
    case Family::U55:
      return kU55;
    case Family::U65:
      return kU65;
    case Family::U85:
      return kU85;
  }
  CARINA_UNREACHABLE("not a family");
}

}  // namespace carina::npu
