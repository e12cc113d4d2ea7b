// SPDX-License-Identifier: Apache-2.0
// Cycles per element of the output (AO) unit (ethosu-architecture 4.2).
#pragma once

#include "npu/operation.hpp"
#include "npu/target.hpp"

namespace carina::npu::timing {

double outputCyclesPerElement(const Target& target, const KernelOperation& op);

}  // namespace carina::npu::timing
