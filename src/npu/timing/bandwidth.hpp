// SPDX-License-Identifier: Apache-2.0
// Bandwidth of memories and read channels, and the number of bytes that a transfer actually moves
// (ethosu-architecture 2.1, 4.1, 4.4).
#pragma once

#include <cstdint>

#include "npu/isa/operation.hpp"
#include "npu/targets/target.hpp"
#include "npu/timing/calibration.hpp"

namespace carina::npu::timing {

/// Purpose of a transfer: U85 read channels have buffers of different sizes.
enum class Channel : uint8_t { Mem2Mem, IfmStream, Weights, FastWeights, Ifm, Scales, Write };

/// Bytes per NPU cycle of all ports of a memory.
double portBandwidth(const Target& target, const MemoryTiming& memory);
/// Bytes per NPU cycle that one channel can transfer in accesses of `run` bytes (at most a burst): limited by
/// its read buffers and the outstanding transactions (U85); the port bandwidth on U55/U65.
double channelBandwidth(const Target& target, const MemoryTiming& memory, Channel channel, int64_t run);

/// Capacity of a channel's read buffers (U85; 0 on U55/U65, whose buffers are not documented).
double readBufferBytes(const Target& target, Channel channel);

/// A transfer through a port: bytes moved, in accesses of `run` bytes each.
struct Transfer {
  int64_t bytes = 0;
  int64_t run = 1;
};

/// The transfer of `elements` of a feature map that is accessed block by block. On U55 short runs cost whole
/// bursts; on U65 and U85 only their bytes.
Transfer mapTransfer(const Target& target, const Rules& rules, const FeatureMap& map, int64_t width,
                     int64_t depth, int64_t elements, BlockShape block, int32_t burst, bool write);

}  // namespace carina::npu::timing
