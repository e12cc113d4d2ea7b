// SPDX-License-Identifier: Apache-2.0
// The rows (architecture.hpp).
#include "npu/targets/architecture.hpp"

#include "base/check.hpp"

namespace carina::npu {
namespace {

// U55 and U65 differ in memory and in the number of cores, not in what their operations can do.
constexpr Architecture kU55U65{
    .bitwise = false,
    .operandScales = false,
    .broadcastsBothOperands = false,
    .scalarBytes = 2,
    .wideScaling = false,
    .scalesExtrema = false,
    .truncatingScales = false,
    .wideTables = false,
    .clampHasType = true,
    .transposingWriter = false,
    .chains = false,
    .extendedPools = false,
    .resize = false,
    .computedWeights = false,
    .sparseWeights = false,
    .shortWideScales = false,
    .wideAccumulatorBits = 40,
    .wideSumLimit = int64_t{127} << 16,
    .wideResults = false,
    .choosesMicroblocks = false,
    .blockBuffers = 1,
    .indexedDma = false,
    .storageField = false,
};

constexpr Architecture kU85{
    .bitwise = true,
    .operandScales = true,
    .broadcastsBothOperands = true,
    .scalarBytes = 4,
    .wideScaling = true,
    .scalesExtrema = true,
    .truncatingScales = true,
    .wideTables = true,
    .clampHasType = false,
    .transposingWriter = true,
    .chains = true,
    .extendedPools = true,
    .resize = true,
    .computedWeights = true,
    .sparseWeights = true,
    .shortWideScales = true,
    .wideAccumulatorBits = 48,
    .wideSumLimit = 2130706432,
    .wideResults = true,
    .choosesMicroblocks = true,
    .blockBuffers = 2,
    .indexedDma = true,
    .storageField = true,
};

}  // namespace

const Architecture& architectureOf(Family family) {
  switch (family) {
    case Family::U55:
    case Family::U65:
      return kU55U65;
    case Family::U85:
      return kU85;
  }
  CARINA_UNREACHABLE("not a family");
}

}  // namespace carina::npu
