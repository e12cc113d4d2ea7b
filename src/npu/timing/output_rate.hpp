// SPDX-License-Identifier: Apache-2.0
// Rates of the individual units, without the effects of blocks and memories (ethosu-architecture 4.1, 4.2).
#pragma once

#include "npu/isa/operation.hpp"
#include "npu/targets/target.hpp"
#include "npu/timing/calibration.hpp"

namespace carina::npu::timing {

/// Of the output (AO) unit.
double outputCyclesPerElement(const Target& target, const KernelOperation& op);

/// Of the MAC unit in a pool, per tap of the window and microblock of the output. A window costs at least
/// four taps.
double poolCyclesPerTap(const Target& target, ElementType input, const Rules& rules = kCalibrated);

}  // namespace carina::npu::timing
