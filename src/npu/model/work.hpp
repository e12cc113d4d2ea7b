// SPDX-License-Identifier: Apache-2.0
// How much the model has to do for an operation: known before it begins, so that what would take too long is
// not begun.
#pragma once

#include <cstdint>

#include "npu/isa/operation.hpp"

namespace carina::npu::model {

/// Of a command by itself: read, decoded and remembered.
constexpr int64_t kCommandWork = 60;
/// In steps of about a nanosecond of one core; far too large values are cut to 2^62. Multiply-accumulates
/// count a sixteenth where the vector kernels take them, elements as what their operation costs each.
int64_t workOf(const KernelOperation& op);
int64_t workOf(const DmaOperation& op);

}  // namespace carina::npu::model
