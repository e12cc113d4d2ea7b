// SPDX-License-Identifier: Apache-2.0
#include "base/crc32.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <vector>

namespace carina {
namespace {

TEST(Crc32, MatchesZlib) {
  EXPECT_EQ(crc32Of(std::as_bytes(std::span("123456789", 9))), 0xcbf43926u);
  std::vector<uint8_t> bytes(1000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * i * 31 + (i >> 3));
  for (size_t begin : {0, 1, 7}) {
    for (size_t size = 0; size + begin <= bytes.size(); size += size < 300 ? 1 : 97) {
      const std::span<const uint8_t> part = std::span(bytes).subspan(begin, size);
      EXPECT_EQ(crc32Of(std::as_bytes(part)), crc32_z(0, part.data(), part.size())) << begin << ' ' << size;
    }
  }
}

}  // namespace
}  // namespace carina
