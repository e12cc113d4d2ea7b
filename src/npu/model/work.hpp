// SPDX-License-Identifier: Apache-2.0
// How much the model has to do for an operation: known before it begins, so that what would take too long is
// not begun.
#pragma once

#include <cstdint>

#include "npu/isa/operation.hpp"

namespace carina::npu::model {

/// Of a command by itself: read, decoded and remembered.
constexpr int64_t kCommandWork = 60;
/// In steps of about a nanosecond of one core; far too large values are cut to 2^62. Multiply-accumulates of
/// 8 bits count a 64th, output channels in whole vectors of 16; elements count what their operation costs
/// each.
int64_t workOf(const KernelOperation& op);
int64_t workOf(const DmaOperation& op);

}  // namespace carina::npu::model
