// SPDX-License-Identifier: Apache-2.0
// The registers that describe a feature map, as the encoder writes and the decoder reads them.
#pragma once

#include <array>

#include "npu/isa/stream.hpp"

namespace carina::npu {

/// Registers of one feature map.
struct FeatureMapRegisters {
  isa::Cmd0 precision, zeroPoint, width0, height0, height1, region;
  std::array<isa::Cmd1, 4> base;
  isa::Cmd1 strideX, strideY, strideC;
};
inline constexpr FeatureMapRegisters kIfm = {
    isa::Cmd0::SetIfmPrecision,
    isa::Cmd0::SetIfmZeroPoint,
    isa::Cmd0::SetIfmWidth0M1,
    isa::Cmd0::SetIfmHeight0M1,
    isa::Cmd0::SetIfmHeight1M1,
    isa::Cmd0::SetIfmRegion,
    {isa::Cmd1::SetIfmBase0, isa::Cmd1::SetIfmBase1, isa::Cmd1::SetIfmBase2, isa::Cmd1::SetIfmBase3},
    isa::Cmd1::SetIfmStrideX,
    isa::Cmd1::SetIfmStrideY,
    isa::Cmd1::SetIfmStrideC};
inline constexpr FeatureMapRegisters kIfm2 = {
    isa::Cmd0::SetIfm2Precision,
    isa::Cmd0::SetIfm2ZeroPoint,
    isa::Cmd0::SetIfm2Width0M1,
    isa::Cmd0::SetIfm2Height0M1,
    isa::Cmd0::SetIfm2Height1M1,
    isa::Cmd0::SetIfm2Region,
    {isa::Cmd1::SetIfm2Base0, isa::Cmd1::SetIfm2Base1, isa::Cmd1::SetIfm2Base2, isa::Cmd1::SetIfm2Base3},
    isa::Cmd1::SetIfm2StrideX,
    isa::Cmd1::SetIfm2StrideY,
    isa::Cmd1::SetIfm2StrideC};
inline constexpr FeatureMapRegisters kOfm = {
    isa::Cmd0::SetOfmPrecision,
    isa::Cmd0::SetOfmZeroPoint,
    isa::Cmd0::SetOfmWidth0M1,
    isa::Cmd0::SetOfmHeight0M1,
    isa::Cmd0::SetOfmHeight1M1,
    isa::Cmd0::SetOfmRegion,
    {isa::Cmd1::SetOfmBase0, isa::Cmd1::SetOfmBase1, isa::Cmd1::SetOfmBase2, isa::Cmd1::SetOfmBase3},
    isa::Cmd1::SetOfmStrideX,
    isa::Cmd1::SetOfmStrideY,
    isa::Cmd1::SetOfmStrideC};

}  // namespace carina::npu
