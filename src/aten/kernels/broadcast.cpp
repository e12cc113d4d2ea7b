// SPDX-License-Identifier: Apache-2.0
#include "aten/kernels/broadcast.hpp"

namespace carina::aten {

MergedDimensions::MergedDimensions(const Shape& shape, std::span<const Shape> strides)
    : strides_(strides.size()) {
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    bool mergeable = !sizes_.empty();
    for (size_t k = 0; k < strides.size() && mergeable; ++k)
      mergeable = strides_[k].back() == strides[k][d] * shape[d];
    if (mergeable) {
      sizes_.back() *= shape[d];
      for (size_t k = 0; k < strides.size(); ++k) strides_[k].back() = strides[k][d];
    } else {
      sizes_.push_back(shape[d]);
      for (size_t k = 0; k < strides.size(); ++k) strides_[k].push_back(strides[k][d]);
    }
  }
  if (sizes_.empty()) {
    sizes_.push_back(1);
    for (Shape& own : strides_) own.push_back(0);
  }
  for (size_t d = 0; d + 1 < sizes_.size(); ++d) runs_ *= sizes_[d];
}

void MergedDimensions::advance(Shape& index, std::span<int64_t> at) const {
  for (size_t d = sizes_.size() - 1; d-- > 0;) {
    for (size_t k = 0; k < at.size(); ++k) at[k] += strides_[k][d];
    if (++index[d] < sizes_[d]) break;
    for (size_t k = 0; k < at.size(); ++k) at[k] -= strides_[k][d] * sizes_[d];
    index[d] = 0;
  }
}

std::vector<int64_t> broadcastOffsets(const Shape& own, const Shape& joint) {
  std::vector<int64_t> offsets;
  const BroadcastLoop<1> loop(joint, {broadcastStrides(own, joint)});
  loop.run([&](int64_t, int64_t n, const std::array<int64_t, 1>& at, const std::array<int64_t, 1>& step) {
    for (int64_t i = 0; i < n; ++i) offsets.push_back(at[0] + i * step[0]);
  });
  return offsets;
}

}  // namespace carina::aten
