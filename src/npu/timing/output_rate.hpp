// SPDX-License-Identifier: Apache-2.0
// Rates of the units by themselves: what an operation takes of them before blocks and memories count
// (ethosu-architecture 4.1, 4.2).
#pragma once

#include "npu/isa/operation.hpp"
#include "npu/targets/target.hpp"
#include "npu/timing/calibration.hpp"

namespace carina::npu::timing {

/// Of the output (AO) unit.
double outputCyclesPerElement(const Target& target, const KernelOperation& op);

/// Of the MAC unit in a pool: per tap of the window and microblock of the output. Windows take four taps at
/// least.
double poolCyclesPerTap(const Target& target, ElementType input, const Rules& rules = kCalibrated);

}  // namespace carina::npu::timing
