// SPDX-License-Identifier: Apache-2.0
// Weight slices that one schedule has encoded, for the others that are completed of the same network: small
// arenas are found by completing twenty and more.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "compiler/schedule/weight_streams.hpp"

namespace carina::compiler {

/// Whether two operations with equal weights have equal streams: encodeSlice() looks at nothing else of them.
inline bool encodesAlike(const npu::KernelOperation& a, const npu::KernelOperation& b) {
  return a.kind == b.kind && a.weights == b.weights && a.kernel == b.kernel && a.ifm.type == b.ifm.type &&
         a.accumulator == b.accumulator && a.block.c == b.block.c && a.microblock == b.microblock;
}

/// Contents of weights (WeightContents), first channel, channels.
using SliceKey = std::tuple<int32_t, int32_t, int32_t>;

/// One thread at a time.
class EncodedMemo {
 public:
  /// Null where it was not encoded, or is not kept.
  std::shared_ptr<const EncodedSlice> find(const SliceKey& key, const npu::KernelOperation& op) const {
    const auto slices = slices_.find(key);
    if (slices == slices_.end()) return nullptr;
    for (const auto& [operation, slice] : slices->second) {
      if (encodesAlike(operation, op)) return slice;
    }
    return nullptr;
  }

  /// Not beyond so many bytes in all.
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
