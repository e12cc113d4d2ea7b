// SPDX-License-Identifier: Apache-2.0
// What a node costs on the CPU.
#pragma once

#include "ir/graph.hpp"

namespace carina::cpu {

/// Estimated cycles of one execution by the portable kernels on a Cortex-M with a single-precision FPU and no
/// vector unit: 3 per multiply-accumulate, 4 to 12 per element for moves, arithmetic and conversions, 80 for
/// a transcendental function. Good for comparing operators, not for deadlines. 0 for a reshape.
int64_t estimateCycles(const ir::Node& node);

}  // namespace carina::cpu
