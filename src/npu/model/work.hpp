// SPDX-License-Identifier: Apache-2.0
// The work that an operation causes in the model: known in advance, so that what would take too long is not
// started.
#pragma once

#include <cstdint>

#include "npu/isa/operation.hpp"

namespace carina::npu::model {

/// Work of a command itself: reading, decoding and recording it.
constexpr int64_t kCommandWork = 60;
/// In steps of about a nanosecond of one core; excessive values are limited to 2^62. An 8-bit
/// multiply-accumulate counts 1/64, with output channels in whole vectors of 16; an element counts what its
/// operation costs per element.
int64_t workOf(const KernelOperation& op);
int64_t workOf(const DmaOperation& op);

}  // namespace carina::npu::model
