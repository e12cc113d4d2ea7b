// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a weight stream of either format, and as weights, which must round-trip through their
// encoding.
#include <algorithm>
#include <vector>

#include "npu/weights/fwd.hpp"
#include "npu/weights/swd.hpp"
#include "target.hpp"

namespace carina::npu_weights_fuzz {

CARINA_FUZZ_TARGET(npu_weights) {
  constexpr size_t kMost = 1 << 16;
  const ByteSpan bytes(reinterpret_cast<const std::byte*>(data), size);
  if (const auto decoded = npu::decodeSwd(bytes, kMost); decoded.ok() && decoded->size() > kMost)
    __builtin_trap();
  (void)npu::swdSlices(bytes);
  (void)npu::decodeFwd(bytes, size);
  std::vector<int16_t> weights(size);
  for (size_t n = 0; n < size; ++n) {
    const int magnitude = data[n] < 64 ? 0 : data[n];
    weights[n] = static_cast<int16_t>(n % 2 == 0 ? magnitude : -magnitude);
  }
  const std::vector<uint8_t> encoded = npu::encodeSwd(weights);
  const auto again =
      npu::decodeSwd({reinterpret_cast<const std::byte*>(encoded.data()), encoded.size()}, size);
  if (!again.ok() || *again != weights) __builtin_trap();
  return 0;
}

}  // namespace carina::npu_weights_fuzz
