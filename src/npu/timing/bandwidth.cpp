// SPDX-License-Identifier: Apache-2.0
// Memory bandwidth (bandwidth.hpp).
#include "npu/timing/bandwidth.hpp"

#include <algorithm>

#include "npu/targets/mac_array.hpp"

namespace carina::npu::timing {
namespace {

constexpr int64_t kBufferEntryBytes = 16;

}  // namespace

double portBandwidth(const Target& target, const MemoryTiming& memory) {
  return std::max(target.architecture().axiBytes * memory.ports * memory.clockScale, 1e-4);
}

double readBufferBytes(const Target& target, Channel channel) {
  if (!target.architecture().channelBuffers) return 0;
  return static_cast<double>(macArrayOf(target).readBuffers[static_cast<size_t>(channel)] *
                             kBufferEntryBytes);
}

double channelBandwidth(const Target& target, const MemoryTiming& memory, Channel channel, int64_t run) {
  const double port = portBandwidth(target, memory);
  if (!target.architecture().channelBuffers) return port;
  const bool write = channel == Channel::Write;
  const double outstanding = (write ? memory.maxWrites : memory.maxReads) * memory.ports * 0.8;
  const int64_t length = std::clamp<int64_t>(run, 1, memory.burst);
  double utilised = outstanding;
  if (!write) {
    const int64_t entries = std::max<int64_t>((length + kBufferEntryBytes - 1) / kBufferEntryBytes, 1);
    const int64_t limit = macArrayOf(target).readBuffers[static_cast<size_t>(channel)] / entries;
    utilised = std::min(static_cast<double>(limit), outstanding);
  }
  const double latency = std::max(write ? memory.writeLatency : memory.readLatency, 1);
  return std::max(std::min(port, static_cast<double>(length) * utilised / latency * 0.8), 1e-4);
}

Transfer mapTransfer(const Target& target, const Rules& rules, const FeatureMap& map, int64_t width,
                     int64_t depth, int64_t elements, BlockShape block, int32_t burst, bool write) {
  const int64_t bits = elementBytes(map.type) * 8;
  const int64_t cores = target.cores;
  int64_t runBits;
  if (map.layout == Layout::NHCWB16) {
    const int64_t brickRow = width * bits * 16 / 8;
    runBits = brickRow == block.c ? bits * block.w * block.c : 16 * bits * block.w * (write ? cores : 1);
  } else {
    const int64_t pixel = depth * bits / 8;
    if (!write) {
      runBits = pixel == block.c ? bits * block.w * block.c : bits * block.c;
    } else if (block.c <= 16 && pixel == block.c) {
      runBits = bits * block.w * block.c;
    } else {
      runBits = std::min({int64_t{512}, 16 * bits * cores, block.c * bits});
    }
  }
  const int64_t run = std::clamp<int64_t>(runBits / 8, 1, burst);
  const int64_t bytes = elements * bits / 8;
  const bool exact = rules.exactBytes && target.architecture().exactPortBytes;
  return {exact ? bytes : bytes * burst / run, run};
}

}  // namespace carina::npu::timing
