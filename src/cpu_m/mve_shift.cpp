// SPDX-License-Identifier: Apache-2.0
// Vector shifts: by vectors, core registers and immediates, widening, narrowing, inserting, and through a
// whole vector.
#include "cpu_m/mve.hpp"

namespace carina::cpu_m {
namespace mve {
namespace {

// --- one element by a signed amount

/// value * 2^amount; negative amounts shift right. `Rounds`: right shifts round to nearest, ties up. Amounts
/// beyond the width shift everything out. T may be signed or unsigned.
template <bool Rounds, class T>
T shiftElement(T value, int amount) {
  constexpr int kBits = kWidth<T>;
  if (amount >= kBits) return 0;
  if (amount >= 0) return static_cast<T>(static_cast<u64>(value) << amount);
  const int right = -amount;
  if (Rounds) {
    if (right > kBits) return 0;  // always below one half
    return static_cast<T>((s64{value} + (s64{1} << (right - 1))) >> right);
  }
  return static_cast<T>(s64{value} >> (right > kBits ? kBits : right));
}

/// The same with saturation of left shifts.
template <bool Rounds, class T>
T saturatingShiftElement(T value, int amount, bool* saturated) {
  if (amount <= 0) return shiftElement<Rounds>(value, amount);
  const s64 wide = amount >= kWidth<T> ? (value == 0  ? 0
                                          : value < 0 ? INT64_MIN
                                                      : INT64_MAX)
                                       : s64{value} * (s64{1} << amount);
  const T result = saturate<T>(wide);
  *saturated = result != wide;
  return result;
}

template <bool Rounds, class T>
struct Shift {
  static T run(T value, int amount, bool*) { return shiftElement<Rounds>(value, amount); }
};
template <bool Rounds, class T>
struct SaturatingShift {
  static T run(T value, int amount, bool* saturated) {
    return saturatingShiftElement<Rounds>(value, amount, saturated);
  }
};

/// Qd = Qm shifted by Qn, the lowest byte of each element.
template <template <bool, class> class OP, bool Rounds, class T>
void shiftByVector(Core& core, const Op& op) {
  const Predicate where = begin(core);
  const Vector<T> m = readQ<T>(core.state, op.m), n = readQ<T>(core.state, op.n);
  Vector<T> r, saturations;
  for (u32 i = 0; i < kLanes<T>; ++i) {
    bool saturated = false;
    r[i] = OP<Rounds, T>::run(m[i], static_cast<s8>(n[i]), &saturated);
    saturations[i] = saturated;
  }
  noteSaturation(core.state, saturations, where);
  writeQ(core.state, op.d, r, where);
  advance(core.state);
}

/// All elements by one amount, as shiftElement does.
template <bool Rounds, class T>
Vector<T> shiftAll(const Vector<T>& m, int amount) {
  using Wide = std::conditional_t<sizeof(T) == 4, s64, s32>;
  Vector<T> r{};
  if (amount >= kWidth<T> || (Rounds && -amount > kWidth<T>)) return r;
  if (amount >= 0) {
    for (u32 i = 0; i < kLanes<T>; ++i) r[i] = static_cast<T>(static_cast<u32>(m[i]) << amount);
    return r;
  }
  const int right = -amount > kWidth<T> ? kWidth<T> : -amount;
  const Wide half = Rounds ? Wide{1} << (right - 1) : 0;
  for (u32 i = 0; i < kLanes<T>; ++i) r[i] = static_cast<T>((Wide{m[i]} + half) >> right);
  return r;
}

/// Qda shifted by the lowest byte of Rm, or by an immediate in Op::x.
template <template <bool, class> class OP, bool Rounds, bool Immediate, class T>
void shiftByScalar(Core& core, const Op& op) {
  const Predicate where = begin(core);
  const int amount = Immediate ? static_cast<s8>(op.x) : static_cast<s8>(core.state.r[op.m]);
  const Vector<T> m = readQ<T>(core.state, Immediate ? op.m : op.d);
  if constexpr (std::is_same_v<OP<Rounds, T>, Shift<Rounds, T>>) {
    writeQ(core.state, op.d, shiftAll<Rounds>(m, amount), where);
  } else {
    Vector<T> r, saturations;
    for (u32 i = 0; i < kLanes<T>; ++i) {
      bool saturated = false;
      r[i] = OP<Rounds, T>::run(m[i], amount, &saturated);
      saturations[i] = saturated;
    }
    noteSaturation(core.state, saturations, where);
    writeQ(core.state, op.d, r, where);
  }
  advance(core.state);
}

/// Signed elements, unsigned result.
template <class T>
void saturatingShiftUnsigned(Core& core, const Op& op) {
  using U = std::make_unsigned_t<T>;
  const Predicate where = begin(core);
  const Vector<T> m = readQ<T>(core.state, op.m);
  Vector<U> r, saturations;
  for (u32 i = 0; i < kLanes<T>; ++i) {
    const s64 exact = s64{m[i]} * (s64{1} << op.x);
    r[i] = saturate<U>(exact);
    saturations[i] = r[i] != exact;
  }
  noteSaturation(core.state, saturations, where);
  writeQ(core.state, op.d, r, where);
  advance(core.state);
}

/// Shifts left (right) by Op::x; bits that the shifted value does not reach are kept from Qd.
template <bool Right, class T>
void shiftAndInsert(Core& core, const Op& op) {
  const Predicate where = begin(core);
  const Vector<T> m = readQ<T>(core.state, op.m), d = readQ<T>(core.state, op.d);
  const u64 all = std::numeric_limits<T>::max();
  const T mask = static_cast<T>(Right ? all >> op.x : all << op.x);
  Vector<T> r;
  for (u32 i = 0; i < kLanes<T>; ++i) {
    const auto shifted = static_cast<T>(Right ? u64{m[i]} >> op.x : u64{m[i]} << op.x);
    r[i] = static_cast<T>((d[i] & ~mask) | (shifted & mask));
  }
  writeQ(core.state, op.d, r, where);
  advance(core.state);
}

// --- widening and narrowing

/// The even or odd elements, twice as wide, shifted left by Op::x.
template <bool Top, class T>
void shiftLong(Core& core, const Op& op) {
  using R = Twice<T>;
  const Predicate where = begin(core);
  const Vector<T> m = readQ<T>(core.state, op.m);
  Vector<R> r;
  for (u32 i = 0; i < kLanes<R>; ++i) r[i] = static_cast<R>(static_cast<u32>(m[2 * i + Top]) << op.x);
  writeQ(core.state, op.d, r, where);
  advance(core.state);
}

/// Elements of From shifted right by Op::x (0: a move), saturated or truncated to To, written to the even or
/// odd elements of Qd.
template <bool Top, bool Rounds, bool Saturates, class From, class To>
void shiftNarrow(Core& core, const Op& op) {
  using Lane = std::make_unsigned_t<From>;
  using Wide = std::conditional_t<sizeof(From) == 4, s64, s32>;
  const Predicate where = begin(core).onlyAlternate<To>(Top);
  const Vector<From> m = readQ<From>(core.state, op.m);
  // A narrow element is the lower or upper half of its source lane.
  constexpr int kPlace = Top ? kWidth<To> : 0;
  Vector<Lane> r, saturations{};
  const Wide half = Rounds && op.x != 0 ? Wide{1} << (op.x - 1) : 0;
  for (u32 i = 0; i < kLanes<From>; ++i) {
    const Wide value = (Wide{m[i]} + half) >> op.x;
    const To narrow = Saturates ? saturate<To>(value) : static_cast<To>(value);
    r[i] = static_cast<Lane>(u32{static_cast<std::make_unsigned_t<To>>(narrow)} << kPlace);
    if (Saturates) saturations[i] = static_cast<Lane>(u32{narrow != value} << kPlace);
  }
  if (Saturates) noteSaturation(core.state, std::bit_cast<Vector<To>>(saturations), where);
  writeQ(core.state, op.d, r, where);
  advance(core.state);
}

/// Shifts the whole vector left by Op::x bits; Rdm supplies the bits shifted in and receives those shifted
/// out.
void shiftThroughCarry(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  Vector<u32> d = readQ<u32>(s, op.d);
  u32& carry = s.r[op.m];
  for (u32 i = 0; i < 4; ++i) {
    const u64 both = u64{d[i]} << op.x | (carry & ((u64{1} << op.x) - 1));
    d[i] = static_cast<u32>(both);
    if (where.lane<u32>(i)) carry = static_cast<u32>(both >> 32);
  }
  writeQ(s, op.d, d, where);
  advance(s);
}

// --- rows

/// Field x: the bits of the amount below the leading one. Right by Width - x (Op::a), as a negative left
/// shift.
template <int Width>
Decoded rightAsNegative(Op& op, DecodeContext&) {
  op.a = static_cast<u8>(Width - op.x);
  op.x = static_cast<u8>(-op.a);
  return Decoded::Ok;
}
/// The same, positive.
template <int Width>
Decoded right(Op& op, DecodeContext&) {
  op.x = static_cast<u8>(Width - op.x);
  return Decoded::Ok;
}
template <int Amount>
Decoded fixedAmount(Op& op, DecodeContext&) {
  op.x = Amount;
  return Decoded::Ok;
}
Decoded upTo32(Op& op, DecodeContext&) {
  if (op.x == 0) op.x = 32;
  return op.m == 13 || op.m == 15 ? Decoded::Unpredictable : Decoded::Ok;
}

#define QMN "q{d}, q{m}, q{n}"
#define QR "q{d}, {Rm}"

#define BY_VECTOR(top, tail, name, t, OP, Rounds, P)                         \
  {top " 1111 0000 nnn0 ddd0 " tail " mmm0", name "." t "8 " QMN, kMve,      \
   straight<shiftByVector<OP, Rounds, P##8>>},                               \
      {top " 1111 0001 nnn0 ddd0 " tail " mmm0", name "." t "16 " QMN, kMve, \
       straight<shiftByVector<OP, Rounds, P##16>>},                          \
  {                                                                          \
    top " 1111 0010 nnn0 ddd0 " tail " mmm0", name "." t "32 " QMN, kMve,    \
        straight<shiftByVector<OP, Rounds, P##32>>                           \
  }
#define BY_VECTOR_SU(tail, name, OP, Rounds) \
  BY_VECTOR("1110", tail, name, "s", OP, Rounds, s), BY_VECTOR("1111", tail, name, "u", OP, Rounds, u)

#define BY_SCALAR(top, low, tail, name, t, OP, Rounds, P)                             \
  {top " 1110 0011 00" low " ddd1 1110 " tail " mmmm", name "." t "8 " QR, kMve,      \
   straight<shiftByScalar<OP, Rounds, false, P##8>>, scalarOperand},                  \
      {top " 1110 0011 01" low " ddd1 1110 " tail " mmmm", name "." t "16 " QR, kMve, \
       straight<shiftByScalar<OP, Rounds, false, P##16>>, scalarOperand},             \
  {                                                                                   \
    top " 1110 0011 10" low " ddd1 1110 " tail " mmmm", name "." t "32 " QR, kMve,    \
        straight<shiftByScalar<OP, Rounds, false, P##32>>, scalarOperand              \
  }
#define BY_SCALAR_SU(low, tail, name, OP, Rounds)         \
  BY_SCALAR("1110", low, tail, name, "s", OP, Rounds, s), \
      BY_SCALAR("1111", low, tail, name, "u", OP, Rounds, u)

// `amount` is how the amount is printed; HANDLER8 to PREPARE32 are the functions for each lane width.
#define SHIFT_IMMEDIATE(top, tail, name, t, amount, HANDLER8, HANDLER16, HANDLER32, PREPARE8, PREPARE16,    \
                        PREPARE32)                                                                          \
  {top " 1111 1000 1xxx ddd0 " tail " mmm0", name "." t "8 " MVE_QQ ", #" amount, kMve, straight<HANDLER8>, \
   PREPARE8},                                                                                               \
      {top " 1111 1001 xxxx ddd0 " tail " mmm0", name "." t "16 " MVE_QQ ", #" amount, kMve,                \
       straight<HANDLER16>, PREPARE16},                                                                     \
  {                                                                                                         \
    top " 1111 101x xxxx ddd0 " tail " mmm0", name "." t "32 " MVE_QQ ", #" amount, kMve,                   \
        straight<HANDLER32>, PREPARE32                                                                      \
  }
#define LEFT(top, tail, name, t, OP, P)                                                                      \
  SHIFT_IMMEDIATE(top, tail, name, t, "{x}", (shiftByScalar<OP, false, true, P##8>),                         \
                  (shiftByScalar<OP, false, true, P##16>), (shiftByScalar<OP, false, true, P##32>), nullptr, \
                  nullptr, nullptr)
#define RIGHT(top, tail, name, t, Rounds, P)                                                                \
  SHIFT_IMMEDIATE(top, tail, name, t, "{a}", (shiftByScalar<Shift, Rounds, true, P##8>),                    \
                  (shiftByScalar<Shift, Rounds, true, P##16>), (shiftByScalar<Shift, Rounds, true, P##32>), \
                  rightAsNegative<8>, rightAsNegative<16>, rightAsNegative<32>)

#define WIDEN(top, t, P)                                                                   \
  {top " 1110 1010 1000 ddd0 1111 0100 mmm0", "vmovlb." t "8 " MVE_QQ, kMve,               \
   straight<shiftLong<false, P##8>>, fixedAmount<0>},                                      \
      {top " 1110 1010 1000 ddd1 1111 0100 mmm0", "vmovlt." t "8 " MVE_QQ, kMve,           \
       straight<shiftLong<true, P##8>>, fixedAmount<0>},                                   \
      {top " 1110 1011 0000 ddd0 1111 0100 mmm0", "vmovlb." t "16 " MVE_QQ, kMve,          \
       straight<shiftLong<false, P##16>>, fixedAmount<0>},                                 \
      {top " 1110 1011 0000 ddd1 1111 0100 mmm0", "vmovlt." t "16 " MVE_QQ, kMve,          \
       straight<shiftLong<true, P##16>>, fixedAmount<0>},                                  \
      {top " 1110 1010 1xxx ddd0 1111 0100 mmm0", "vshllb." t "8 " MVE_QQ ", #{x}", kMve,  \
       straight<shiftLong<false, P##8>>},                                                  \
      {top " 1110 1010 1xxx ddd1 1111 0100 mmm0", "vshllt." t "8 " MVE_QQ ", #{x}", kMve,  \
       straight<shiftLong<true, P##8>>},                                                   \
      {top " 1110 1011 xxxx ddd0 1111 0100 mmm0", "vshllb." t "16 " MVE_QQ ", #{x}", kMve, \
       straight<shiftLong<false, P##16>>},                                                 \
      {top " 1110 1011 xxxx ddd1 1111 0100 mmm0", "vshllt." t "16 " MVE_QQ ", #{x}", kMve, \
       straight<shiftLong<true, P##16>>},                                                  \
      {top " 1110 0011 0001 ddd0 1110 0000 mmm1", "vshllb." t "8 " MVE_QQ ", #8", kMve,    \
       straight<shiftLong<false, P##8>>, fixedAmount<8>},                                  \
      {top " 1110 0011 0001 ddd1 1110 0000 mmm1", "vshllt." t "8 " MVE_QQ ", #8", kMve,    \
       straight<shiftLong<true, P##8>>, fixedAmount<8>},                                   \
      {top " 1110 0011 0101 ddd0 1110 0000 mmm1", "vshllb." t "16 " MVE_QQ ", #16", kMve,  \
       straight<shiftLong<false, P##16>>, fixedAmount<16>},                                \
  {                                                                                        \
    top " 1110 0011 0101 ddd1 1110 0000 mmm1", "vshllt." t "16 " MVE_QQ ", #16", kMve,     \
        straight<shiftLong<true, P##16>>, fixedAmount<16>                                  \
  }

#define NARROW(top, b7, low, name, t, Rounds, Saturates, F, T)                                     \
  {top " 1110 1000 1xxx ddd0 1111 " b7 "100 mmm" low, name "b." t "16 " MVE_QQ ", #{x}", kMve,     \
   straight<shiftNarrow<false, Rounds, Saturates, F##16, T##8>>, right<8>},                        \
      {top " 1110 1000 1xxx ddd1 1111 " b7 "100 mmm" low, name "t." t "16 " MVE_QQ ", #{x}", kMve, \
       straight<shiftNarrow<true, Rounds, Saturates, F##16, T##8>>, right<8>},                     \
      {top " 1110 1001 xxxx ddd0 1111 " b7 "100 mmm" low, name "b." t "32 " MVE_QQ ", #{x}", kMve, \
       straight<shiftNarrow<false, Rounds, Saturates, F##32, T##16>>, right<16>},                  \
  {                                                                                                \
    top " 1110 1001 xxxx ddd1 1111 " b7 "100 mmm" low, name "t." t "32 " MVE_QQ ", #{x}", kMve,    \
        straight<shiftNarrow<true, Rounds, Saturates, F##32, T##16>>, right<16>                    \
  }
#define NARROW_MOVE(top, x, b7, name, t, Saturates, F, T)                                  \
  {top " 1110 0011 00" x "1 ddd0 1110 " b7 "000 mmm1", name "b." t "16 " MVE_QQ, kMve,     \
   straight<shiftNarrow<false, false, Saturates, F##16, T##8>>, fixedAmount<0>},           \
      {top " 1110 0011 00" x "1 ddd1 1110 " b7 "000 mmm1", name "t." t "16 " MVE_QQ, kMve, \
       straight<shiftNarrow<true, false, Saturates, F##16, T##8>>, fixedAmount<0>},        \
      {top " 1110 0011 01" x "1 ddd0 1110 " b7 "000 mmm1", name "b." t "32 " MVE_QQ, kMve, \
       straight<shiftNarrow<false, false, Saturates, F##32, T##16>>, fixedAmount<0>},      \
  {                                                                                        \
    top " 1110 0011 01" x "1 ddd1 1110 " b7 "000 mmm1", name "t." t "32 " MVE_QQ, kMve,    \
        straight<shiftNarrow<true, false, Saturates, F##32, T##16>>, fixedAmount<0>        \
  }

const Encoding kShiftRows[] = {
    BY_VECTOR_SU("0100 0100", "vshl", Shift, false),
    BY_VECTOR_SU("0101 0100", "vrshl", Shift, true),
    BY_VECTOR_SU("0100 0101", "vqshl", SaturatingShift, false),
    BY_VECTOR_SU("0101 0101", "vqrshl", SaturatingShift, true),
    BY_SCALAR_SU("01", "0110", "vshl", Shift, false),
    BY_SCALAR_SU("11", "0110", "vrshl", Shift, true),
    BY_SCALAR_SU("01", "1110", "vqshl", SaturatingShift, false),
    BY_SCALAR_SU("11", "1110", "vqrshl", SaturatingShift, true),

    RIGHT("1110", "0000 0101", "vshr", "s", false, s),
    RIGHT("1111", "0000 0101", "vshr", "u", false, u),
    RIGHT("1110", "0010 0101", "vrshr", "s", true, s),
    RIGHT("1111", "0010 0101", "vrshr", "u", true, u),
    LEFT("1110", "0101 0101", "vshl", "i", Shift, u),
    LEFT("1110", "0111 0101", "vqshl", "s", SaturatingShift, s),
    LEFT("1111", "0111 0101", "vqshl", "u", SaturatingShift, u),
    SHIFT_IMMEDIATE("1111", "0110 0101", "vqshlu", "s", "{x}", saturatingShiftUnsigned<s8>,
                    saturatingShiftUnsigned<s16>, saturatingShiftUnsigned<s32>, nullptr, nullptr, nullptr),
    SHIFT_IMMEDIATE("1111", "0101 0101", "vsli", "", "{x}", (shiftAndInsert<false, u8>),
                    (shiftAndInsert<false, u16>), (shiftAndInsert<false, u32>), nullptr, nullptr, nullptr),
    SHIFT_IMMEDIATE("1111", "0100 0101", "vsri", "", "{x}", (shiftAndInsert<true, u8>),
                    (shiftAndInsert<true, u16>), (shiftAndInsert<true, u32>), right<8>, right<16>, right<32>),

    WIDEN("1110", "s", s),
    WIDEN("1111", "u", u),
    NARROW("1110", "1", "1", "vshrn", "i", false, false, u, u),
    NARROW("1111", "1", "1", "vrshrn", "i", true, false, u, u),
    NARROW("1110", "0", "0", "vqshrn", "s", false, true, s, s),
    NARROW("1111", "0", "0", "vqshrn", "u", false, true, u, u),
    NARROW("1110", "0", "1", "vqrshrn", "s", true, true, s, s),
    NARROW("1111", "0", "1", "vqrshrn", "u", true, true, u, u),
    NARROW("1110", "1", "0", "vqshrun", "s", false, true, s, u),
    NARROW("1111", "1", "0", "vqrshrun", "s", true, true, s, u),
    NARROW_MOVE("1111", "0", "1", "vmovn", "i", false, u, u),
    NARROW_MOVE("1110", "1", "0", "vqmovn", "s", true, s, s),
    NARROW_MOVE("1111", "1", "0", "vqmovn", "u", true, u, u),
    NARROW_MOVE("1110", "0", "1", "vqmovun", "s", true, s, u),
    {"1110 1110 101x xxxx ddd0 1111 1100 mmmm", "vshlc q{d}, {Rm}, #{x}", kMve, straight<shiftThroughCarry>,
     upTo32},
};

}  // namespace
}  // namespace mve

std::span<const Encoding> mveShiftEncodings() {
  return mve::kShiftRows;
}

}  // namespace carina::cpu_m
