// SPDX-License-Identifier: Apache-2.0
// Multiplication, division and the DSP extension.
#include <algorithm>
#include <limits>

#include "cpu_m/core.hpp"

namespace carina::cpu_m {
namespace {

int32_t half(uint32_t value, bool top) {
  return static_cast<int16_t>(top ? value >> 16 : value);
}
int64_t longAccumulator(const State& s, const Op& op) {
  return static_cast<int64_t>(s.pair(op.a, op.d));
}
void setLong(State& s, const Op& op, uint64_t value) {
  s.setPair(op.a, op.d, value);
}
/// The accumulator of MLA and similar instructions; those without one encode r15.
uint32_t accumulator(const State& s, const Op& op) {
  return op.a == kPc ? 0 : s.r[op.a];
}
/// Adds and sets Q on overflow.
uint32_t addQ(State& s, int64_t a, int64_t b) {
  const int64_t sum = a + b;
  if (sum != static_cast<int32_t>(sum)) s.q = 1;
  return static_cast<uint32_t>(sum);
}

// --- multiplication

void mla(Core& core, const Op& op) {
  State& s = core.state;
  s.r[op.d] = s.r[op.n] * s.r[op.m] + accumulator(s, op);
}
void mls(Core& core, const Op& op) {
  State& s = core.state;
  s.r[op.d] = s.r[op.a] - s.r[op.n] * s.r[op.m];
}
/// Op::x: selects the top halves of n (bit 1) and of m (bit 0).
void smlaxy(Core& core, const Op& op) {
  State& s = core.state;
  const int64_t product = int64_t{half(s.r[op.n], (op.x & 2) != 0)} * half(s.r[op.m], (op.x & 1) != 0);
  s.r[op.d] = addQ(s, product, static_cast<int32_t>(accumulator(s, op)));
}
void smlaw(Core& core, const Op& op) {
  State& s = core.state;
  const int64_t product = int64_t{static_cast<int32_t>(s.r[op.n])} * half(s.r[op.m], op.x != 0) >> 16;
  s.r[op.d] = addQ(s, product, static_cast<int32_t>(accumulator(s, op)));
}
template <bool Subtract>
int64_t dual(const State& s, const Op& op) {
  const uint32_t n = s.r[op.n], m = op.x != 0 ? std::rotr(s.r[op.m], 16) : s.r[op.m];
  const int64_t first = int64_t{half(n, false)} * half(m, false),
                second = int64_t{half(n, true)} * half(m, true);
  return Subtract ? first - second : first + second;
}
template <bool Subtract>
void smlad(Core& core, const Op& op) {
  State& s = core.state;
  s.r[op.d] = addQ(s, dual<Subtract>(s, op), static_cast<int32_t>(accumulator(s, op)));
}
template <bool Subtract>
void smlald(Core& core, const Op& op) {
  State& s = core.state;
  setLong(s, op,
          static_cast<uint64_t>(longAccumulator(s, op)) + static_cast<uint64_t>(dual<Subtract>(s, op)));
}
/// Op::x rounds.
template <bool Subtract>
void smmla(Core& core, const Op& op) {
  State& s = core.state;
  const auto product =
      static_cast<uint64_t>(int64_t{static_cast<int32_t>(s.r[op.n])} * static_cast<int32_t>(s.r[op.m]));
  uint64_t value = uint64_t{accumulator(s, op)} << 32;
  value = Subtract ? value - product : value + product;
  if (op.x != 0) value += 0x80000000u;
  s.r[op.d] = static_cast<uint32_t>(value >> 32);
}
void usada8(Core& core, const Op& op) {
  State& s = core.state;
  uint32_t sum = accumulator(s, op);
  for (uint32_t i = 0; i < 32; i += 8) {
    const int32_t difference =
        static_cast<int32_t>(s.r[op.n] >> i & 0xff) - static_cast<int32_t>(s.r[op.m] >> i & 0xff);
    sum += static_cast<uint32_t>(difference < 0 ? -difference : difference);
  }
  s.r[op.d] = sum;
}

void smull(Core& core, const Op& op) {
  State& s = core.state;
  setLong(s, op,
          static_cast<uint64_t>(int64_t{static_cast<int32_t>(s.r[op.n])} * static_cast<int32_t>(s.r[op.m])));
}
void umull(Core& core, const Op& op) {
  State& s = core.state;
  setLong(s, op, uint64_t{s.r[op.n]} * s.r[op.m]);
}
void smlal(Core& core, const Op& op) {
  State& s = core.state;
  const auto product =
      static_cast<uint64_t>(int64_t{static_cast<int32_t>(s.r[op.n])} * static_cast<int32_t>(s.r[op.m]));
  setLong(s, op, static_cast<uint64_t>(longAccumulator(s, op)) + product);
}
void umlal(Core& core, const Op& op) {
  State& s = core.state;
  setLong(s, op, static_cast<uint64_t>(longAccumulator(s, op)) + uint64_t{s.r[op.n]} * s.r[op.m]);
}
void umaal(Core& core, const Op& op) {
  State& s = core.state;
  setLong(s, op, uint64_t{s.r[op.n]} * s.r[op.m] + s.r[op.a] + s.r[op.d]);
}
void smlalxy(Core& core, const Op& op) {
  State& s = core.state;
  const int64_t product = int64_t{half(s.r[op.n], (op.x & 2) != 0)} * half(s.r[op.m], (op.x & 1) != 0);
  setLong(s, op, static_cast<uint64_t>(longAccumulator(s, op)) + static_cast<uint64_t>(product));
}

// --- division

void divideCheck(Core& core, const Op& op) {
  if (core.divideTraps()) throw Trap{StopReason::DivideByZero, op.address};
}
void sdiv(Core& core, const Op& op) {
  State& s = core.state;
  const auto n = static_cast<int32_t>(s.r[op.n]), m = static_cast<int32_t>(s.r[op.m]);
  if (m == 0) divideCheck(core, op);
  // The only quotient that overflows wraps.
  s.r[op.d] = m == 0 ? 0 : m == -1 ? 0u - s.r[op.n] : static_cast<uint32_t>(n / m);
}
void udiv(Core& core, const Op& op) {
  State& s = core.state;
  const uint32_t m = s.r[op.m];
  if (m == 0) divideCheck(core, op);
  s.r[op.d] = m == 0 ? 0 : s.r[op.n] / m;
}

// --- saturating arithmetic

uint32_t saturate32(State& s, int64_t value) {
  const auto fitting = static_cast<int32_t>(
      std::clamp<int64_t>(value, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
  if (fitting != value) s.q = 1;
  return static_cast<uint32_t>(fitting);
}
/// The operands are m and n, in this order.
template <bool Double, bool Subtract>
void qadd(Core& core, const Op& op) {
  State& s = core.state;
  int64_t n = static_cast<int32_t>(s.r[op.n]);
  if (Double) n = static_cast<int32_t>(saturate32(s, 2 * n));
  const int64_t m = static_cast<int32_t>(s.r[op.m]);
  s.r[op.d] = saturate32(s, Subtract ? m - n : m + n);
}

// --- parallel addition and subtraction

enum class Lanes : uint8_t { Signed, Saturating, Halving, Unsigned, UnsignedSaturating, UnsignedHalving };
enum class Pair : uint8_t { Add, AddSubtract, SubtractAdd, Subtract };

constexpr bool isUnsigned(Lanes lanes) {
  return lanes >= Lanes::Unsigned;
}

template <Lanes How, uint32_t Width>
uint32_t finishLane(int32_t value, bool subtracted, uint32_t& ge, uint32_t geBits) {
  constexpr int32_t kHigh = isUnsigned(How) ? (1 << Width) - 1 : (1 << (Width - 1)) - 1;
  constexpr int32_t kLow = isUnsigned(How) ? 0 : -(1 << (Width - 1));
  constexpr uint32_t kMask = (1u << Width) - 1;
  if constexpr (How == Lanes::Saturating || How == Lanes::UnsignedSaturating)
    value = value < kLow ? kLow : value > kHigh ? kHigh : value;
  if constexpr (How == Lanes::Halving || How == Lanes::UnsignedHalving) value >>= 1;
  // GE: not negative; for unsigned sums: carry out.
  if constexpr (How == Lanes::Signed) ge |= value >= 0 ? geBits : 0;
  if constexpr (How == Lanes::Unsigned) ge |= (subtracted ? value >= 0 : value > kHigh) ? geBits : 0;
  return static_cast<uint32_t>(value) & kMask;
}

template <Lanes How, uint32_t Width>
int32_t lane(uint32_t value, uint32_t index) {
  const uint32_t field = value >> (index * Width) & ((1u << Width) - 1);
  return isUnsigned(How) ? static_cast<int32_t>(field) : signExtend(field, Width);
}

template <Lanes How, Pair What, uint32_t Width>
void parallel(Core& core, const Op& op) {
  State& s = core.state;
  const uint32_t n = s.r[op.n], m = s.r[op.m];
  constexpr uint32_t kLanes = 32 / Width, kGePerLane = 4 / kLanes;
  constexpr bool kCrossed = What == Pair::AddSubtract || What == Pair::SubtractAdd;
  uint32_t result = 0, ge = 0;
  for (uint32_t i = 0; i < kLanes; ++i) {
    // ASX subtracts in the lower lane and adds in the upper one, SAX vice versa; both exchange the halves of
    // m.
    const bool subtract = What == Pair::Subtract || (What == Pair::AddSubtract && i == 0) ||
                          (What == Pair::SubtractAdd && i == 1);
    const int32_t a = lane<How, Width>(n, i), b = lane<How, Width>(m, kCrossed ? kLanes - 1 - i : i);
    const uint32_t geBits = ((1u << kGePerLane) - 1) << (i * kGePerLane);
    result |= finishLane<How, Width>(subtract ? a - b : a + b, subtract, ge, geBits) << (i * Width);
  }
  s.r[op.d] = result;
  if constexpr (How == Lanes::Signed || How == Lanes::Unsigned) s.ge = ge;
}

void sel(Core& core, const Op& op) {
  State& s = core.state;
  uint32_t mask = 0;
  for (uint32_t i = 0; i < 4; ++i) mask |= (s.ge >> i & 1) != 0 ? 0xffu << 8 * i : 0;
  s.r[op.d] = (s.r[op.n] & mask) | (s.r[op.m] & ~mask);
}

// --- rows

Decoded three(Op& op, DecodeContext&) {
  return isBad(op.d) || isBad(op.n) || isBad(op.m) ? Decoded::Unpredictable : Decoded::Ok;
}
/// With an accumulator, or r15 in its place.
Decoded accumulating(Op& op, DecodeContext& context) {
  return op.a == kSp ? Decoded::Unpredictable : three(op, context);
}
Decoded subtracting(Op& op, DecodeContext& context) {
  return op.a == kPc ? Decoded::Unpredictable : accumulating(op, context);
}
Decoded longResult(Op& op, DecodeContext& context) {
  return isBad(op.a) || op.a == op.d ? Decoded::Unpredictable : three(op, context);
}

#define PARALLEL(opcode, suffix, pair, width)                                                   \
  {"1111 1010 1" opcode " nnnn 1111 dddd 0000 mmmm", "s" suffix " {Rd}, {Rn}, {Rm}", kDsp,      \
   simple<parallel<Lanes::Signed, pair, width>>, three},                                        \
      {"1111 1010 1" opcode " nnnn 1111 dddd 0001 mmmm", "q" suffix " {Rd}, {Rn}, {Rm}", kDsp,  \
       simple<parallel<Lanes::Saturating, pair, width>>, three},                                \
      {"1111 1010 1" opcode " nnnn 1111 dddd 0010 mmmm", "sh" suffix " {Rd}, {Rn}, {Rm}", kDsp, \
       simple<parallel<Lanes::Halving, pair, width>>, three},                                   \
      {"1111 1010 1" opcode " nnnn 1111 dddd 0100 mmmm", "u" suffix " {Rd}, {Rn}, {Rm}", kDsp,  \
       simple<parallel<Lanes::Unsigned, pair, width>>, three},                                  \
      {"1111 1010 1" opcode " nnnn 1111 dddd 0101 mmmm", "uq" suffix " {Rd}, {Rn}, {Rm}", kDsp, \
       simple<parallel<Lanes::UnsignedSaturating, pair, width>>, three},                        \
  {                                                                                             \
    "1111 1010 1" opcode " nnnn 1111 dddd 0110 mmmm", "uh" suffix " {Rd}, {Rn}, {Rm}", kDsp,    \
        simple<parallel<Lanes::UnsignedHalving, pair, width>>, three                            \
  }

const Encoding kMultiplyAndDspRows[] = {
    // clang-format off
    PARALLEL("000", "add8", Pair::Add, 8), PARALLEL("001", "add16", Pair::Add, 16),
    PARALLEL("010", "asx", Pair::AddSubtract, 16), PARALLEL("100", "sub8", Pair::Subtract, 8),
    PARALLEL("101", "sub16", Pair::Subtract, 16), PARALLEL("110", "sax", Pair::SubtractAdd, 16),
    {"1111 1010 1000 nnnn 1111 dddd 1000 mmmm", "qadd {Rd}, {Rm}, {Rn}", kDsp, simple<qadd<false, false>>, three},
    {"1111 1010 1000 nnnn 1111 dddd 1001 mmmm", "qdadd {Rd}, {Rm}, {Rn}", kDsp, simple<qadd<true, false>>, three},
    {"1111 1010 1000 nnnn 1111 dddd 1010 mmmm", "qsub {Rd}, {Rm}, {Rn}", kDsp, simple<qadd<false, true>>, three},
    {"1111 1010 1000 nnnn 1111 dddd 1011 mmmm", "qdsub {Rd}, {Rm}, {Rn}", kDsp, simple<qadd<true, true>>, three},
    {"1111 1010 1010 nnnn 1111 dddd 1000 mmmm", "sel {Rd}, {Rn}, {Rm}", kDsp, simple<sel>, three},

    {"1111 1011 0000 nnnn aaaa dddd 0000 mmmm", "mla {Rd}, {Rn}, {Rm}, {Ra}", kBase, simple<mla>, accumulating},
    {"1111 1011 0000 nnnn aaaa dddd 0001 mmmm", "mls {Rd}, {Rn}, {Rm}, {Ra}", kBase, simple<mls>, subtracting},
    {"1111 1011 0001 nnnn aaaa dddd 00xx mmmm", "smla {Rd}, {Rn}, {Rm}, {Ra}, halves {x}", kDsp, simple<smlaxy>, accumulating},
    {"1111 1011 0010 nnnn aaaa dddd 000x mmmm", "smlad {Rd}, {Rn}, {Rm}, {Ra}, exchange {x}", kDsp, simple<smlad<false>>, accumulating},
    {"1111 1011 0011 nnnn aaaa dddd 000x mmmm", "smlaw {Rd}, {Rn}, {Rm}, {Ra}, half {x}", kDsp, simple<smlaw>, accumulating},
    {"1111 1011 0100 nnnn aaaa dddd 000x mmmm", "smlsd {Rd}, {Rn}, {Rm}, {Ra}, exchange {x}", kDsp, simple<smlad<true>>, accumulating},
    {"1111 1011 0101 nnnn aaaa dddd 000x mmmm", "smmla {Rd}, {Rn}, {Rm}, {Ra}, round {x}", kDsp, simple<smmla<false>>, accumulating},
    {"1111 1011 0110 nnnn aaaa dddd 000x mmmm", "smmls {Rd}, {Rn}, {Rm}, {Ra}, round {x}", kDsp, simple<smmla<true>>, subtracting},
    {"1111 1011 0111 nnnn aaaa dddd 0000 mmmm", "usada8 {Rd}, {Rn}, {Rm}, {Ra}", kDsp, simple<usada8>, accumulating},
    {"1111 1011 1000 nnnn aaaa dddd 0000 mmmm", "smull {Ra}, {Rd}, {Rn}, {Rm}", kBase, simple<smull>, longResult},
    {"1111 1011 1001 nnnn 1111 dddd 1111 mmmm", "sdiv {Rd}, {Rn}, {Rm}", kBase, straight<sdiv>, three},
    {"1111 1011 1010 nnnn aaaa dddd 0000 mmmm", "umull {Ra}, {Rd}, {Rn}, {Rm}", kBase, simple<umull>, longResult},
    {"1111 1011 1011 nnnn 1111 dddd 1111 mmmm", "udiv {Rd}, {Rn}, {Rm}", kBase, straight<udiv>, three},
    {"1111 1011 1100 nnnn aaaa dddd 0000 mmmm", "smlal {Ra}, {Rd}, {Rn}, {Rm}", kBase, simple<smlal>, longResult},
    {"1111 1011 1100 nnnn aaaa dddd 10xx mmmm", "smlal {Ra}, {Rd}, {Rn}, {Rm}, halves {x}", kDsp, simple<smlalxy>, longResult},
    {"1111 1011 1100 nnnn aaaa dddd 110x mmmm", "smlald {Ra}, {Rd}, {Rn}, {Rm}, exchange {x}", kDsp, simple<smlald<false>>, longResult},
    {"1111 1011 1101 nnnn aaaa dddd 110x mmmm", "smlsld {Ra}, {Rd}, {Rn}, {Rm}, exchange {x}", kDsp, simple<smlald<true>>, longResult},
    {"1111 1011 1110 nnnn aaaa dddd 0000 mmmm", "umlal {Ra}, {Rd}, {Rn}, {Rm}", kBase, simple<umlal>, longResult},
    {"1111 1011 1110 nnnn aaaa dddd 0110 mmmm", "umaal {Ra}, {Rd}, {Rn}, {Rm}", kDsp, simple<umaal>, longResult},
    // clang-format on
};

}  // namespace

std::span<const Encoding> multiplyDspEncodings() {
  return kMultiplyAndDspRows;
}

}  // namespace carina::cpu_m
