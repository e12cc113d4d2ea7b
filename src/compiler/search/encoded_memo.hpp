// SPDX-License-Identifier: Apache-2.0
// Encoded weight slices of one schedule, for reuse by other completed schedules of the same network: finding
// a small arena completes twenty or more.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "compiler/schedule/weight_streams.hpp"

namespace carina::compiler {

/// Whether two operations with equal weights have equal streams: encodeSlice() uses nothing else of them.
inline bool encodesAlike(const npu::KernelOperation& a, const npu::KernelOperation& b) {
  return a.kind == b.kind && a.weights == b.weights && a.kernel == b.kernel && a.ifm.type == b.ifm.type &&
         a.accumulator == b.accumulator && a.block.c == b.block.c && a.microblock == b.microblock;
}

/// WeightContents number, first channel, number of channels.
using SliceKey = std::tuple<int32_t, int32_t, int32_t>;

/// Not thread-safe.
class EncodedMemo {
 public:
  /// Null if the slice was not encoded or was not kept.
  std::shared_ptr<const EncodedSlice> find(const SliceKey& key, const npu::KernelOperation& op) const {
    const auto slices = slices_.find(key);
    if (slices == slices_.end()) return nullptr;
    for (const auto& [operation, slice] : slices->second) {
      if (encodesAlike(operation, op)) return slice;
    }
    return nullptr;
  }

  /// Keeps a slice unless the total would exceed kMostBytes.
  void keep(const SliceKey& key, const npu::KernelOperation& op, std::shared_ptr<const EncodedSlice> slice) {
    constexpr size_t kMostBytes = size_t{64} << 20;
    if (slice->bytes.size() > kMostBytes - bytes_ || find(key, op)) return;
    bytes_ += slice->bytes.size();
    slices_[key].emplace_back(op, std::move(slice));
  }

 private:
  using Encoded = std::pair<npu::KernelOperation, std::shared_ptr<const EncodedSlice>>;
  std::map<SliceKey, std::vector<Encoded>> slices_;
  size_t bytes_ = 0;
};

}  // namespace carina::compiler
