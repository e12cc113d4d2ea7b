// SPDX-License-Identifier: Apache-2.0
// Buffers that overlay a program input whose bytes have been read by then (scheduler.hpp).
#include <algorithm>
#include <limits>

#include "compiler/search/scheduler.hpp"

namespace carina::compiler {
namespace {

constexpr size_t kMaxCandidates = 8;  // the largest buffers that could overlay an input

}  // namespace

std::vector<Scheduler::Overlay> Scheduler::overlays() const {
  const size_t count = result_.buffers.size(), groups = result_.groups.size();
  std::vector<bool> shared(count, false);
  for (size_t b = 0; b < count; ++b) {
    if (result_.buffers[b].takesOver < 0) continue;
    shared[b] = shared[static_cast<size_t>(result_.buffers[b].takesOver)] = true;
  }
  const auto rangeOf = [this](const ir::Value* value) {
    const Access& access = result_.storage->access(value);
    int64_t low = access.offset, high = access.offset + dtypeSize(value->dtype());
    for (size_t d = 0; d < access.shape.size(); ++d) {
      const int64_t span = access.strides[d] * (access.shape[d] - 1);
      (span < 0 ? low : high) += span;
    }
    return std::pair(low, high);
  };
  const auto mayShare = [&](size_t b, BufferKind kind) {
    const Buffer& buffer = result_.storage->buffers[b];
    const bool ofKind = (buffer.kind == BufferKind::Input) == (kind == BufferKind::Input);
    return ofKind && buffer.kind != BufferKind::Constant && buffer.layout == npu::Layout::NHWC &&
           !shared[b] && result_.buffers[b].live.bytes > 0 && result_.buffers[b].heldRows == 0;
  };
  // For each buffer: the groups that write it, and up to which byte.
  struct Write {
    size_t group;
    int64_t end;
  };
  std::vector<std::vector<Write>> writes(count);
  std::vector<bool> moved(count, false);  // by transfers, which run in an order of their own
  for (const Pass& pass : result_.passes) {
    const auto b = static_cast<size_t>(pass.result.buffer);
    if (pass.isDma) {
      moved[b] = true;
      for (const PassValue& input : memoryInputs(result_, pass))
        moved[static_cast<size_t>(input.buffer)] = true;
    } else if (!result_.chained.contains(pass.result.value)) {
      writes[b].push_back({static_cast<size_t>(pass.group), rangeOf(pass.result.value).second});
    }
  }
  std::vector<Overlay> found;
  for (size_t a = 0; a < count; ++a) {
    if (!mayShare(a, BufferKind::Input) || moved[a]) continue;
    // The lowest byte that is yet to be read when a group runs.
    std::vector<int64_t> unread(groups + 1, std::numeric_limits<int64_t>::max());
    for (const Pass& pass : result_.passes) {
      for (const PassValue& input : memoryInputs(result_, pass)) {
        if (static_cast<size_t>(input.buffer) != a) continue;
        int64_t& lowest = unread[static_cast<size_t>(pass.group)];
        lowest = std::min(lowest, rangeOf(input.value).first);
      }
    }
    for (size_t g = groups; g-- > 0;) unread[g] = std::min(unread[g], unread[g + 1]);
    const LiveRange& input = result_.buffers[a].live;
    if (input.last >= static_cast<int32_t>(groups)) continue;  // also an output of the program
    std::vector<size_t> candidates;
    for (size_t b = 0; b < count; ++b) {
      if (!mayShare(b, BufferKind::FeatureMap) || moved[b] || writes[b].empty()) continue;
      const LiveRange& live = result_.buffers[b].live;
      if (live.bytes > input.bytes || live.first > input.last) continue;
      const bool behind = std::all_of(writes[b].begin(), writes[b].end(),
                                      [&](const Write& write) { return write.end <= unread[write.group]; });
      if (behind) candidates.push_back(b);
    }
    std::stable_sort(candidates.begin(), candidates.end(), [this](size_t x, size_t y) {
      return result_.buffers[x].live.bytes > result_.buffers[y].live.bytes;
    });
    if (candidates.size() > kMaxCandidates) candidates.resize(kMaxCandidates);
    size_t best = count;
    int64_t least = mapBytes();
    for (const size_t b : candidates) {
      // The rest of the input stays alive as long as the buffer, which may cost more than it saves.
      std::vector<LiveRange> ranges;
      for (size_t other = 0; other < count; ++other) {
        const Placement& placement = result_.buffers[other];
        if (placement.area != fastArea() || placement.live.bytes == 0 || other == b) continue;
        ranges.push_back(placement.live);
        if (other == a) ranges.back().last = std::max(input.last, result_.buffers[b].live.last);
      }
      if (const int64_t bytes = packingLowerBound(ranges); bytes < least) {
        least = bytes;
        best = b;
      }
    }
    if (best == count) continue;
    shared[best] = true;
    found.push_back({a, best});
  }
  return found;
}

std::vector<LiveRange> Scheduler::rangesWithOverlays() const {
  std::vector<LiveRange> ranges = passRanges();
  for (const Overlay& overlay : wholeOverlays_) {
    ranges[overlay.input].last = std::max(ranges[overlay.input].last, ranges[overlay.buffer].last);
    ranges[overlay.buffer].bytes = 0;
  }
  return ranges;
}

}  // namespace carina::compiler
