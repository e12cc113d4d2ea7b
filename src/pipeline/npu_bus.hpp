// SPDX-License-Identifier: Apache-2.0
// Where probes of the NPU model place a program on the bus, and how they read elements of feature maps.
#pragma once

#include <cstddef>
#include <cstdint>

#include "npu/isa/operation.hpp"

namespace carina::pipeline {

/// Bus addresses of command stream and regions: far apart, so that overruns hit nothing.
inline constexpr uint64_t kStreamAddress = 0x01000000;
inline constexpr uint64_t kRegionAddress[3] = {0x10000000, 0x40000000, 0x80000000};

/// The element at `at`, of the given type (at most eight bytes).
int64_t elementAt(const std::byte* at, npu::ElementType type);

}  // namespace carina::pipeline
