// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a .npy array; arrays that can be read round-trip through writing.
#include "base/file.hpp"
#include "base/npy.hpp"
#include "target.hpp"

namespace carina::npy_fuzz {

CARINA_FUZZ_TARGET(npy) {
  const auto tensor = parseNpy(ByteSpan(reinterpret_cast<const std::byte*>(data), size));
  if (!tensor.ok()) return 0;
  const std::string text = formatNpy(*tensor);
  const auto again = parseNpy(asBytes(text));
  if (!again.ok() || !(*again == *tensor)) __builtin_trap();
  return 0;
}

}  // namespace carina::npy_fuzz
