// SPDX-License-Identifier: Apache-2.0
// Where probes of the NPU model put a program on the bus, and how they read elements of its maps.
#pragma once

#include <cstddef>
#include <cstdint>

#include "npu/isa/operation.hpp"

namespace carina::pipeline {

/// Bus addresses of command stream and regions: far apart, so that an overrun hits nothing.
inline constexpr uint64_t kStreamAddress = 0x01000000;
inline constexpr uint64_t kRegionAddress[3] = {0x10000000, 0x40000000, 0x80000000};

/// The element that begins at `at`, of at most eight bytes there.
int64_t elementAt(const std::byte* at, npu::ElementType type);

}  // namespace carina::pipeline
