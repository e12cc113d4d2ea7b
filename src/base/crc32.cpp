// SPDX-License-Identifier: Apache-2.0
// CRC-32 by carry-less multiplication, if the processor supports it. The bytes are a polynomial M(x) over
// GF(2), and the checksum is its remainder modulo P. Since x^n A = (x^n mod P) A modulo P, 64 bytes can be
// folded into the next 64: their halves are multiplied by constant remainders and added. Repeated as often as
// possible, this leaves 16 bytes with the same remainder, and a tail.
#include "base/crc32.hpp"

#include <zlib.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace carina {
namespace {

uint32_t continued(uint32_t crc, ByteSpan bytes) {
  return static_cast<uint32_t>(crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

#if defined(__x86_64__)
/// x^n mod P with the highest power in the lowest of 33 bits, in the bit order of the bytes. The product of
/// two such numbers is one bit too low, which the shift compensates.
constexpr uint64_t powerOfX(int n) {
  constexpr uint32_t kPolynomial = 0xedb88320;
  uint32_t remainder = 0x80000000;  // 1
  for (int i = 0; i < n; ++i) remainder = remainder >> 1 ^ (remainder & 1 ? kPolynomial : 0);
  return uint64_t{remainder} << 1;
}

constexpr size_t kLane = 16, kLanes = 4;

/// `lane` folded forward by kDistance bits: its low half has the higher powers.
template <int kDistance>
__attribute__((target("pclmul"))) __m128i forward(__m128i lane) {
  const __m128i powers = _mm_set_epi64x(static_cast<int64_t>(powerOfX(kDistance - 32)),
                                        static_cast<int64_t>(powerOfX(kDistance + 32)));
  return _mm_xor_si128(_mm_clmulepi64_si128(lane, powers, 0x00), _mm_clmulepi64_si128(lane, powers, 0x11));
}

/// `bytes` has at least kLanes lanes.
__attribute__((target("pclmul"))) uint32_t folded(ByteSpan bytes) {
  const auto lane = [&](size_t i) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes.data() + i * kLane));
  };
  __m128i sums[kLanes] = {lane(0), lane(1), lane(2), lane(3)};
  sums[0] = _mm_xor_si128(sums[0], _mm_cvtsi32_si128(-1));  // a checksum begins with all bits set
  for (bytes = bytes.subspan(kLanes * kLane); bytes.size() >= kLanes * kLane;
       bytes = bytes.subspan(kLanes * kLane)) {
    for (size_t i = 0; i < kLanes; ++i) sums[i] = _mm_xor_si128(forward<512>(sums[i]), lane(i));
  }
  __m128i sum = sums[0];
  for (size_t i = 1; i < kLanes; ++i) sum = _mm_xor_si128(forward<128>(sum), sums[i]);
  for (; bytes.size() >= kLane; bytes = bytes.subspan(kLane)) sum = _mm_xor_si128(forward<128>(sum), lane(0));
  std::byte last[kLane];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(last), sum);
  return continued(continued(UINT32_MAX, last), bytes);  // zlib inverts: this starts with 0
}
#endif

}  // namespace

uint32_t crc32Of(ByteSpan bytes) {
#if defined(__x86_64__)
  static const bool multiplies = __builtin_cpu_supports("pclmul") != 0;
  if (multiplies && bytes.size() >= kLanes * kLane) return folded(bytes);
#endif
  return continued(0, bytes);
}

}  // namespace carina
