// SPDX-License-Identifier: Apache-2.0
#include "aten/kernels/broadcast.hpp"

namespace carina::aten {

std::vector<int64_t> broadcastOffsets(const Shape& own, const Shape& joint) {
  std::vector<int64_t> offsets;
  const BroadcastLoop<1> loop(joint, {broadcastStrides(own, joint)});
  loop.run([&](int64_t, int64_t n, const std::array<int64_t, 1>& at, const std::array<int64_t, 1>& step) {
    for (int64_t i = 0; i < n; ++i) offsets.push_back(at[0] + i * step[0]);
  });
  return offsets;
}

}  // namespace carina::aten
