// SPDX-License-Identifier: Apache-2.0
// BLOCKDEP and waits (hazards.hpp).
#include "compiler/emit/hazards.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/shape.hpp"
#include "npu/isa/blockconfig.hpp"

namespace carina::compiler {
namespace {

/// Box of elements of a feature map, ends exclusive.
struct Box {
  std::array<int64_t, 3> begin{}, end{};
};

/// The last `count` jobs of an OFM in block order: depth fastest, then width, then height.
std::vector<Box> lastOutputJobs(const npu::KernelOperation& op, int32_t count) {
  const std::array<int64_t, 3> size{op.ofm.height, op.ofm.width, op.ofm.depth};
  const std::array<int64_t, 3> block{op.block.h, op.block.w, op.block.c};
  std::array<int64_t, 3> blocks{};
  for (size_t i = 0; i < 3; ++i) blocks[i] = ceilDiv(size[i], block[i]);
  const int64_t total = blocks[0] * blocks[1] * blocks[2];
  std::vector<Box> jobs;
  for (int64_t job = total - 1; job >= 0 && static_cast<int32_t>(jobs.size()) < count; --job) {
    const std::array<int64_t, 3> place{job / (blocks[2] * blocks[1]), job / blocks[2] % blocks[1],
                                       job % blocks[2]};
    Box box;
    for (size_t i = 0; i < 3; ++i) {
      box.begin[i] = place[i] * block[i];
      box.end[i] = std::min(size[i], box.begin[i] + block[i]);
    }
    jobs.push_back(box);
  }
  return jobs;  // newest first
}

/// Input elements that the first `count` jobs read, in order.
std::vector<Box> firstInputJobs(const npu::KernelOperation& op, const npu::FeatureMap& input, bool primary,
                                const npu::Target& target, int32_t count) {
  const npu::BlockRules rules(target, op);
  const std::array<int64_t, 3> size{op.ofm.height, op.ofm.width, op.ofm.depth};
  const std::array<int64_t, 3> block{op.block.h, op.block.w, op.block.c};
  const int64_t reduction = primary ? rules.reductionDepth() : 0;
  const int64_t depthSteps = reduction > 0 ? ceilDiv(input.depth, reduction) : 1;
  const int64_t upscale = op.upscale == npu::Upscale::None ? 1 : 2;
  const bool window = op.kind == npu::OperationKind::Conv || op.kind == npu::OperationKind::Depthwise ||
                      op.kind == npu::OperationKind::Pool;
  std::vector<Box> jobs;
  for (int64_t y = 0; y < size[0]; y += block[0]) {
    for (int64_t x = 0; x < size[1]; x += block[1]) {
      for (int64_t c = 0; c < size[2]; c += block[2]) {
        for (int64_t step = 0; step < depthSteps; ++step) {
          if (static_cast<int32_t>(jobs.size()) == count) return jobs;
          Box box;
          if (window && primary) {
            const auto span = [&](size_t axis, int64_t start, int64_t length, int64_t stride, int64_t kernel,
                                  int64_t pad, int64_t extent) {
              const int64_t first = start * stride - pad,
                            last = (start + length - 1) * stride + kernel - 1 - pad;
              box.begin[axis] = std::clamp<int64_t>(first >= 0 ? first / upscale : 0, 0, extent);
              box.end[axis] = std::clamp<int64_t>(last / upscale + 1, 0, extent);
            };
            span(0, y, std::min(block[0], size[0] - y), op.kernel.strideY, op.kernel.dilatedHeight(),
                 op.padding.top, input.height);
            span(1, x, std::min(block[1], size[1] - x), op.kernel.strideX, op.kernel.dilatedWidth(),
                 op.padding.left, input.width);
            box.begin[2] = reduction > 0 ? step * reduction : c;
            box.end[2] = reduction > 0 ? std::min<int64_t>(input.depth, box.begin[2] + reduction)
                                       : std::min(size[2], c + block[2]);
          } else {
            // Elementwise inputs follow the output; broadcast axes read position 0.
            const std::array<int64_t, 3> extent{input.height, input.width, input.depth};
            const std::array<int64_t, 3> at{y, x, c};
            for (size_t i = 0; i < 3; ++i) {
              box.begin[i] = extent[i] == 1 ? 0 : at[i];
              box.end[i] = extent[i] == 1 ? 1 : std::min(size[i], at[i] + block[i]);
            }
          }
          jobs.push_back(box);
        }
      }
    }
  }
  return jobs;
}

/// The row of `input` that each row of `ofm` coincides with, -1 if there is none. Nothing unless both are on
/// the same grid of rows, with the same columns and channels.
std::optional<std::vector<int32_t>> commonRows(const npu::FeatureMap& ofm, const npu::FeatureMap& input) {
  const bool alike = ofm.region == input.region && ofm.layout == input.layout && ofm.type == input.type &&
                     ofm.width == input.width && ofm.depth == input.depth && ofm.strideX == input.strideX &&
                     ofm.strideY == input.strideY &&
                     (ofm.layout == npu::Layout::NHWC || ofm.strideC == input.strideC) && ofm.strideY > 0 &&
                     !npu::rowsOverlap(ofm) && ofm.base[1] == input.base[1] && ofm.base[3] == input.base[3];
  if (!alike) return std::nullopt;
  const auto rowAt = [](const npu::FeatureMap& map, int32_t y) {
    const int64_t first = static_cast<int64_t>(map.base[y < map.height0 ? 0 : 2]);
    return first + (y < map.height0 ? y : y - map.height0) * map.strideY;
  };
  const int64_t origin = rowAt(input, 0);
  std::unordered_map<int64_t, int32_t> rows;
  for (int32_t y = 0; y < input.height; ++y) {
    if ((rowAt(input, y) - origin) % ofm.strideY != 0) return std::nullopt;
    rows[rowAt(input, y)] = y;
  }
  std::vector<int32_t> common;
  for (int32_t y = 0; y < ofm.height; ++y) {
    if ((rowAt(ofm, y) - origin) % ofm.strideY != 0) return std::nullopt;
    const auto found = rows.find(rowAt(ofm, y));
    common.push_back(found == rows.end() ? -1 : found->second);
  }
  return common;
}

/// Whether some row of a box of the OFM is in a box of the input.
bool boxesMeet(const Box& ofm, const Box& input, const std::vector<int32_t>& rows) {
  for (size_t i = 1; i < 3; ++i) {
    if (ofm.begin[i] >= input.end[i] || input.begin[i] >= ofm.end[i]) return false;
  }
  for (int64_t y = ofm.begin[0]; y < ofm.end[0]; ++y) {
    const int32_t row = rows[static_cast<size_t>(y)];
    if (row >= input.begin[0] && row < input.end[0]) return true;
  }
  return false;
}

}  // namespace

MemoryRange mapRange(const npu::FeatureMap& map, int64_t height, int64_t width, int64_t depth, bool write) {
  const int64_t e = npu::elementBytes(map.type);
  int64_t low = 0, high = 0;
  const auto reach = [&](int64_t step) { (step < 0 ? low : high) += step; };
  reach((height - 1) * map.strideY);
  if (map.layout == npu::Layout::NHWC) {
    reach((width - 1) * map.strideX);
    high += depth * e;
  } else {
    reach((ceilDiv(depth, 16) - 1) * map.strideC);
    high += width * 16 * e;
  }
  const auto base = static_cast<int64_t>(map.base[0]);
  return {map.region, static_cast<uint64_t>(base + low), static_cast<uint64_t>(base + high), write};
}

namespace {

/// Adds the ranges of a map: one, or two if a rolling buffer wraps.
void addMapRanges(std::vector<MemoryRange>& ranges, npu::FeatureMap map, int64_t height, int64_t width,
                  int64_t depth, bool write) {
  if (map.height0 >= height) {
    ranges.push_back(mapRange(map, height, width, depth, write));
    return;
  }
  ranges.push_back(mapRange(map, map.height0, width, depth, write));
  map.base[0] = map.base[2];
  ranges.push_back(mapRange(map, height - map.height0, width, depth, write));
}

/// Weight and scale streams.
std::vector<MemoryRange> weightRanges(const npu::KernelOperation& op) {
  std::vector<MemoryRange> ranges;
  if (!op.weights) return ranges;
  for (const npu::AddressRange& r : op.weights->weights) {
    if (r.length > 0) ranges.push_back({op.weights->weightRegion, r.address, r.address + r.length, false});
  }
  for (const npu::AddressRange& r : op.weights->scales) {
    if (r.length > 0) ranges.push_back({op.weights->scaleRegion, r.address, r.address + r.length, false});
  }
  return ranges;
}

}  // namespace

std::vector<MemoryRange> memoryRanges(const npu::KernelOperation& op, const npu::Target& target) {
  std::vector<MemoryRange> ranges;
  const auto input = [&](const npu::FeatureMap& map, const npu::Broadcast& broadcast) {
    if (broadcast.scalar || map.storage == npu::Storage::None || map.storage == npu::Storage::Chained) return;
    addMapRanges(ranges, map, map.height, map.width, map.depth, false);
  };
  const bool elementwise = op.kind == npu::OperationKind::Elementwise;
  input(op.ifm, elementwise ? op.elementwise.ifmBroadcast : npu::Broadcast{});
  if (op.ifm2) input(*op.ifm2, elementwise ? op.elementwise.ifm2Broadcast : npu::Broadcast{});
  if (op.ofm.storage != npu::Storage::None && op.ofm.storage != npu::Storage::Chained) {
    std::array<int64_t, 3> stored{op.ofm.height, op.ofm.width, op.ofm.depth};
    const auto [h, w, c] = stored;
    switch (op.transpose) {
      case npu::Transpose::HWC:
        break;
      case npu::Transpose::WHC:
        stored = {w, h, c};
        break;
      case npu::Transpose::HCW:
        stored = {h, c, w};
        break;
      case npu::Transpose::WCH:
        stored = {w, c, h};
        break;
      case npu::Transpose::CHW:
        stored = {c, h, w};
        break;
      case npu::Transpose::CWH:
        stored = {c, w, h};
        break;
    }
    if (op.transpose == npu::Transpose::HWC) {
      addMapRanges(ranges, op.ofm, stored[0], stored[1], stored[2], true);
    } else {
      ranges.push_back(mapRange(op.ofm, stored[0], stored[1], stored[2], true));
    }
  }
  for (const MemoryRange& range : weightRanges(op)) ranges.push_back(range);
  if (npu::usesTableMemory(target, op.activation)) {
    uint64_t bytes = 256;
    switch (op.activation.table) {
      case npu::Table::Lut8:
        bytes = 256;
        break;
      case npu::Table::Lut8To16:
        bytes = 512;
        break;
      case npu::Table::Lut8To32:
        bytes = 1024;
        break;
      default:
        bytes = 2048;
        break;
    }
    const uint64_t start = uint64_t{op.activation.slot} * 256;
    ranges.push_back({kTableMemory, start, start + bytes, false});
  } else if (target.tablesShareAccumulators()) {
    // Without reserved banks the accumulators overwrite the tables.
    ranges.push_back({kTableMemory, 0, npu::kTableMemoryBytes, true});
  }
  return ranges;
}

std::vector<MemoryRange> memoryRanges(const npu::DmaOperation& op, const npu::Target& target) {
  std::vector<MemoryRange> ranges;
  const auto side = [&](const npu::DmaEnd& end, bool write) {
    if (end.internal) {
      const uint64_t start = end.address - target.tableMemoryStart();
      ranges.push_back({kTableMemory, start, start + op.length, write});
      return;
    }
    if (end.indexed) {
      const uint64_t bytes = static_cast<uint64_t>(op.indexMax + 1) * static_cast<uint64_t>(end.stride0);
      ranges.push_back({end.region, end.address, end.address + std::max(bytes, op.length), write});
      return;
    }
    uint64_t bytes = op.length;
    if (op.dimensions > 1)
      bytes += static_cast<uint64_t>(op.size0 - 1) * static_cast<uint64_t>(std::max<int64_t>(end.stride0, 0));
    if (op.dimensions > 2)
      bytes += static_cast<uint64_t>(op.size1 - 1) * static_cast<uint64_t>(std::max<int64_t>(end.stride1, 0));
    ranges.push_back({end.region, end.address, end.address + bytes, write});
  };
  side(op.source, false);
  side(op.destination, true);
  if (op.source.indexed || op.destination.indexed) {
    const uint64_t bytes = static_cast<uint64_t>(op.size0) * static_cast<uint64_t>(std::max(op.size1, 1)) * 4;
    ranges.push_back({op.indexRegion, op.indexAddress, op.indexAddress + bytes, false});
  }
  return ranges;
}

int32_t blockDependency(const npu::KernelOperation* previous, const npu::KernelOperation& op,
                        const npu::Target& target) {
  if (!previous) return 0;
  const auto chained = [](const npu::FeatureMap& map) { return map.storage == npu::Storage::Chained; };
  if (chained(previous->ofm) || chained(op.ofm) || chained(op.ifm) || (op.ifm2 && chained(*op.ifm2)))
    return 0;
  if (op.accumulatorInput == npu::AccumulatorInput::Keep || !previous->accumulatorOutput) return 0;
  if (previous->transpose != npu::Transpose::HWC || previous->reverse != npu::Reverse::None) return 0;
  if (target.tablesShareAccumulators() &&
      npu::usesTableMemory(target, previous->activation) != npu::usesTableMemory(target, op.activation)) {
    return 0;
  }
  const int32_t most = target.architecture().maxBlockDependency;
  std::vector<MemoryRange> written;
  const npu::FeatureMap& ofm = previous->ofm;
  addMapRanges(written, ofm, ofm.height, ofm.width, ofm.depth, true);
  int32_t allowed = most;
  const auto consider = [&](const npu::FeatureMap& input, const npu::Broadcast& broadcast, bool primary) {
    if (broadcast.scalar || input.storage == npu::Storage::None) return;
    std::vector<MemoryRange> read;
    addMapRanges(read, input, input.height, input.width, input.depth, false);
    bool meet = false;
    for (const MemoryRange& a : written) {
      for (const MemoryRange& b : read) meet |= a.conflicts(b);
    }
    if (!meet) return;
    const auto rows = commonRows(ofm, input);
    if (!rows) {
      allowed = 0;
      return;
    }
    // Weights in memory are all read by the first block. The kernel of a RESIZE is its whole input.
    if ((op.weightsFromIfm2 && !primary) || op.kind == npu::OperationKind::Resize) {
      allowed = 0;
      return;
    }
    const auto old = lastOutputJobs(*previous, most);
    const auto now = firstInputJobs(op, input, primary, target, most);
    // Job i of this operation may run while `allowed` jobs before it are unfinished: i + j < allowed.
    for (size_t i = 0; i < now.size(); ++i) {
      for (size_t j = 0; j < old.size(); ++j) {
        if (boxesMeet(old[j], now[i], *rows)) allowed = std::min(allowed, static_cast<int32_t>(i + j));
      }
    }
  };
  const bool elementwise = op.kind == npu::OperationKind::Elementwise;
  consider(op.ifm, elementwise ? op.elementwise.ifmBroadcast : npu::Broadcast{}, true);
  if (op.ifm2) consider(*op.ifm2, elementwise ? op.elementwise.ifm2Broadcast : npu::Broadcast{}, false);
  // Never reach past the previous operation: earlier ones are not checked.
  const int64_t jobs = ceilDiv(previous->ofm.height, previous->block.h) *
                       ceilDiv(previous->ofm.width, previous->block.w) *
                       ceilDiv(previous->ofm.depth, previous->block.c);
  return static_cast<int32_t>(std::min<int64_t>(allowed, jobs));
}

std::optional<int32_t> WaitTracker::conflict(Queue& queue, const std::vector<MemoryRange>& ranges) {
  int32_t newer = 0;
  for (size_t i = queue.size(); i-- > 0; ++newer) {
    for (const MemoryRange& a : queue[i]) {
      for (const MemoryRange& b : ranges) {
        if (!a.conflicts(b)) continue;
        queue.erase(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        return newer;
      }
    }
  }
  return std::nullopt;
}

void WaitTracker::push(Queue& queue, std::vector<MemoryRange> ranges, size_t limit) {
  queue.push_back(std::move(ranges));
  if (queue.size() > limit) queue.pop_front();
}

std::vector<npu::Operation> WaitTracker::before(const npu::KernelOperation& op) {
  auto ranges = memoryRanges(op, target_);
  std::vector<npu::Operation> waits;
  if (auto outstanding = conflict(transfers_, ranges)) waits.emplace_back(npu::DmaWait{*outstanding});
  // BLOCKDEP only orders feature maps: weights are read as soon as the operation is issued.
  if (const auto streams = weightRanges(op); !streams.empty()) {
    if (auto outstanding = conflict(kernels_, streams)) waits.emplace_back(npu::KernelWait{*outstanding});
  }
  push(kernels_, std::move(ranges), static_cast<size_t>(target_.maxOutstandingKernels()));
  return waits;
}

std::vector<npu::Operation> WaitTracker::before(const npu::DmaOperation& op) {
  auto ranges = memoryRanges(op, target_);
  std::vector<npu::Operation> waits;
  if (auto outstanding = conflict(transfers_, ranges)) waits.emplace_back(npu::DmaWait{*outstanding});
  if (auto outstanding = conflict(kernels_, ranges)) waits.emplace_back(npu::KernelWait{*outstanding});
  push(transfers_, std::move(ranges), static_cast<size_t>(target_.architecture().outstandingDmas));
  return waits;
}

}  // namespace carina::compiler
