// SPDX-License-Identifier: Apache-2.0
// 32-bit data processing: shifted registers, immediates, shifts, extensions, bit fields, conditional selects
// and the long shifts of Armv8.1-M.
#include <limits>

#include "cpu_m/alu.hpp"

namespace carina::cpu_m {
namespace {

__extension__ using Wide = __int128;
__extension__ using UWide = unsigned __int128;

/// ADD, SUB and MOV allow the stack pointer as destination, and ADD and SUB as first operand.
template <Alu Operation>
constexpr bool kTakesSp = Operation == Alu::Add || Operation == Alu::Sub || Operation == Alu::Mov ||
                          Operation == Alu::Cmp || Operation == Alu::Cmn;

template <Alu Operation, bool SetFlags>
Decoded prepareShiftedRegister(Op& op, DecodeContext&) {
  constexpr Run kPlain = alu<Operation, Second::Register, SetFlags>;
  constexpr Run kShiftedRun = alu<Operation, Second::Shifted, SetFlags>;
  const bool plain = decodeShift(op);
  op.run = plain ? kPlain : kShiftedRun;
  const bool firstSp = op.n == kSp && !kTakesSp<Operation>;
  if (op.m == kPc || op.n == kPc || firstSp || (op.m == kSp && Operation != Alu::Mov))
    return Decoded::Unpredictable;
  if (isComparison(Operation) || !isBad(op.d)) return Decoded::Ok;
  if (op.d == kPc || !kTakesSp<Operation>) return Decoded::Unpredictable;
  if (op.n != kSp && Operation != Alu::Mov) return Decoded::Unpredictable;
  op.run = plain ? intoSp<kPlain> : intoSp<kShiftedRun>;
  return Decoded::Ok;
}

/// Modified immediates of T32: a byte, a repeated byte, or a rotated byte.
Decoded expandImmediate(Op& op) {
  const uint32_t byte = op.imm & 0xff, how = op.imm >> 8 & 15;
  op.x = kCarryUnchanged;
  switch (op.imm >> 8) {
    case 0:
      op.imm = byte;
      return Decoded::Ok;
    case 1:
      op.imm = byte << 16 | byte;
      break;
    case 2:
      op.imm = byte << 24 | byte << 8;
      break;
    case 3:
      op.imm = byte * 0x01010101u;
      break;
    default:
      op.imm = std::rotr(0x80u | byte, static_cast<int>(how << 1 | byte >> 7));
      op.x = static_cast<uint8_t>(op.imm >> 31);
      return Decoded::Ok;
  }
  return byte == 0 ? Decoded::Unpredictable : Decoded::Ok;
}

template <Alu Operation, bool SetFlags>
Decoded prepareImmediate(Op& op, DecodeContext&) {
  constexpr Run kRun = alu<Operation, Second::Immediate, SetFlags>;
  if (expandImmediate(op) != Decoded::Ok) return Decoded::Unpredictable;
  if (op.n == kPc || (op.n == kSp && !kTakesSp<Operation>)) return Decoded::Unpredictable;
  if (isComparison(Operation) || !isBad(op.d)) return Decoded::Ok;
  if (op.d == kPc || !kTakesSp<Operation> || op.n != kSp) return Decoded::Unpredictable;
  op.run = intoSp<kRun>;
  return Decoded::Ok;
}

template <Alu Operation>
Decoded prepareWide(Op& op, DecodeContext&) {
  if (op.d == kPc || (op.d == kSp && op.n != kSp)) return Decoded::Unpredictable;
  if (op.d == kSp) op.run = intoSp<alu<Operation, Second::Immediate, false>>;
  return Decoded::Ok;
}
/// ADR: a constant.
template <bool Down>
Decoded prepareAdr(Op& op, DecodeContext&) {
  const uint32_t base = (op.address + 4) & ~3u;
  op.imm = Down ? base - op.imm : base + op.imm;
  return isBad(op.d) ? Decoded::Unpredictable : Decoded::Ok;
}

Decoded prepareMovw(Op& op, DecodeContext&) {
  op.imm =
      bits(op.code, 16, 4) << 12 | bits(op.code, 26, 1) << 11 | bits(op.code, 12, 3) << 8 | (op.code & 0xff);
  return isBad(op.d) ? Decoded::Unpredictable : Decoded::Ok;
}
const Op* movt(Core& core, const Op* op) {
  uint32_t& d = core.state.r[op->d];
  d = (d & 0xffff) | op->imm << 16;
  return op + 1;
}

const Op* pkh(Core& core, const Op* op) {
  State& s = core.state;
  const uint32_t second = shiftByConstant(s.r[op->m], op->y, op->x, 0).value;
  const bool top = (op->code & 1u << 5) != 0;
  s.r[op->d] =
      top ? (s.r[op->n] & 0xffff0000) | (second & 0xffff) : (second & 0xffff0000) | (s.r[op->n] & 0xffff);
  return op + 1;
}
Decoded preparePkh(Op& op, DecodeContext&) {
  op.y = op.y != 0 ? kAsr : kLsl;
  decodeShift(op);
  return isBad(op.d) || isBad(op.n) || isBad(op.m) ? Decoded::Unpredictable : Decoded::Ok;
}

Decoded threeRegisters(Op& op, DecodeContext&) {
  return isBad(op.d) || isBad(op.n) || isBad(op.m) ? Decoded::Unpredictable : Decoded::Ok;
}

// --- saturation, bit fields

uint32_t saturateSigned(State& s, int32_t value, uint32_t width) {
  const auto high = static_cast<int32_t>((1u << (width - 1)) - 1), low = -high - 1;
  if (value > high || value < low) {
    s.q = 1;
    return static_cast<uint32_t>(value > high ? high : low);
  }
  return static_cast<uint32_t>(value);
}
uint32_t saturateUnsigned(State& s, int32_t value, uint32_t width) {
  const auto high = static_cast<int32_t>((width == 0 ? 1u : 1u << width) - 1);
  if (value > high || value < 0) {
    s.q = 1;
    return value < 0 ? 0 : static_cast<uint32_t>(high);
  }
  return static_cast<uint32_t>(value);
}
const Op* ssat(Core& core, const Op* op) {
  State& s = core.state;
  const uint32_t value = shiftByConstant(s.r[op->n], op->y, op->x, 0).value;
  s.r[op->d] = saturateSigned(s, static_cast<int32_t>(value), op->w + 1u);
  return op + 1;
}
const Op* usat(Core& core, const Op* op) {
  State& s = core.state;
  const uint32_t value = shiftByConstant(s.r[op->n], op->y, op->x, 0).value;
  s.r[op->d] = saturateUnsigned(s, static_cast<int32_t>(value), op->w);
  return op + 1;
}
const Op* ssat16(Core& core, const Op* op) {
  State& s = core.state;
  const uint32_t n = s.r[op->n];
  const uint32_t low = saturateSigned(s, static_cast<int16_t>(n), op->w + 1u);
  const uint32_t high = saturateSigned(s, static_cast<int32_t>(n) >> 16, op->w + 1u);
  s.r[op->d] = (low & 0xffff) | high << 16;
  return op + 1;
}
const Op* usat16(Core& core, const Op* op) {
  State& s = core.state;
  const uint32_t n = s.r[op->n];
  const uint32_t low = saturateUnsigned(s, static_cast<int16_t>(n), op->w);
  const uint32_t high = saturateUnsigned(s, static_cast<int32_t>(n) >> 16, op->w);
  s.r[op->d] = (low & 0xffff) | high << 16;
  return op + 1;
}
Decoded prepareSaturate(Op& op, DecodeContext&) {
  if (op.y != 0 && op.x == 0) return Decoded::Undefined;  // encodes SSAT16 and USAT16
  op.y = op.y != 0 ? kAsr : kLsl;
  decodeShift(op);
  return isBad(op.d) || isBad(op.n) ? Decoded::Unpredictable : Decoded::Ok;
}
Decoded twoRegistersN(Op& op, DecodeContext&) {
  return isBad(op.d) || isBad(op.n) ? Decoded::Unpredictable : Decoded::Ok;
}

const Op* sbfx(Core& core, const Op* op) {
  core.state.r[op->d] = static_cast<uint32_t>(static_cast<int32_t>(core.state.r[op->n] << op->y) >> op->w);
  return op + 1;
}
const Op* ubfx(Core& core, const Op* op) {
  core.state.r[op->d] = core.state.r[op->n] << op->y >> op->w;
  return op + 1;
}
/// Shift left by y, then right by w.
Decoded prepareExtract(Op& op, DecodeContext&) {
  if (op.x + op.w > 31 || isBad(op.d) || isBad(op.n)) return Decoded::Unpredictable;
  op.y = static_cast<uint8_t>(31 - op.w - op.x);
  op.w = static_cast<uint8_t>(31 - op.w);
  return Decoded::Ok;
}
/// BFI and BFC: Op::imm is the mask of the bits to replace.
const Op* bfi(Core& core, const Op* op) {
  uint32_t& d = core.state.r[op->d];
  d = (d & ~op->imm) | (core.state.r[op->n] << op->x & op->imm);
  return op + 1;
}
const Op* bfc(Core& core, const Op* op) {
  core.state.r[op->d] &= ~op->imm;
  return op + 1;
}
Decoded prepareInsert(Op& op, DecodeContext&) {
  if (op.w < op.x || isBad(op.d) || op.n == kSp) return Decoded::Unpredictable;
  op.imm = (0xffffffffu >> (31 - op.w + op.x)) << op.x;
  return Decoded::Ok;
}

// --- conditional selects

template <uint32_t How>
const Op* conditionalSelect(Core& core, const Op* op) {
  State& s = core.state;
  const uint32_t n = op->n == kPc ? 0 : s.r[op->n], m = op->m == kPc ? 0 : s.r[op->m];
  const uint32_t otherwise = How == 0 ? m : How == 1 ? m + 1 : How == 2 ? ~m : 0 - m;
  s.r[op->d] = conditionHolds(s, op->x) ? n : otherwise;
  return op + 1;
}
Decoded prepareSelect(Op& op, DecodeContext& context) {
  const bool unpredictable = isBad(op.d) || op.n == kSp || op.m == kSp || op.x >= 14 || context.inIt;
  return unpredictable ? Decoded::Unpredictable : Decoded::Ok;
}

// --- long shifts: RdaLo is Op::d (even), RdaHi Op::a (odd)

uint64_t longValue(const State& s, const Op* op) {
  return s.pair(op->d, op->a);
}
void setLongValue(State& s, const Op* op, uint64_t value) {
  s.setPair(op->d, op->a, value);
}

uint64_t shiftLeftLong(uint64_t value, uint32_t amount) {
  return amount > 63 ? 0 : value << amount;
}
uint64_t shiftRightLong(uint64_t value, uint32_t amount) {
  return amount > 63 ? 0 : value >> amount;
}
uint64_t shiftRightSigned(uint64_t value, uint32_t amount) {
  return static_cast<uint64_t>(static_cast<int64_t>(value) >> (amount > 63 ? 63 : amount));
}

/// Saturating shift left of a signed number of `width` bits; 48-bit results are sign-extended.
uint64_t saturateLeftSigned(State& s, uint64_t value, uint32_t amount, uint32_t width) {
  const auto number = static_cast<int64_t>(value);
  const int64_t high = width == 64 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << (width - 1)) - 1;
  const Wide exact = amount > 64 ? (number == 0 ? 0 : static_cast<Wide>(number < 0 ? -1 : 1) << 100)
                                 : static_cast<Wide>(number) * (static_cast<Wide>(1) << amount);
  if (exact > high || exact < -static_cast<Wide>(high) - 1) {
    s.q = 1;
    return static_cast<uint64_t>(exact > 0 ? high : -high - 1);
  }
  return static_cast<uint64_t>(exact);
}
uint64_t saturateLeftUnsigned(State& s, uint64_t value, uint32_t amount, uint32_t width) {
  const uint64_t high = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
  const bool fits =
      value == 0 || (amount < 64 && value << amount >> amount == value && value << amount <= high);
  if (!fits) {
    s.q = 1;
    return high;
  }
  return amount > 63 ? 0 : value << amount;
}
uint64_t roundRightSigned(uint64_t value, uint32_t amount) {
  if (amount > 64) return 0;
  return static_cast<uint64_t>(
      (static_cast<Wide>(static_cast<int64_t>(value)) + (static_cast<Wide>(1) << (amount - 1))) >> amount);
}
uint64_t roundRightUnsigned(uint64_t value, uint32_t amount) {
  if (amount > 64) return 0;
  return static_cast<uint64_t>((static_cast<UWide>(value) + (static_cast<UWide>(1) << (amount - 1))) >>
                               amount);
}

enum class LongShift : uint8_t { Lsll, Lsrl, Asrl, Uqshll, Urshrl, Srshrl, Sqshll };
template <LongShift How>
const Op* longShiftImmediate(Core& core, const Op* op) {
  State& s = core.state;
  const uint64_t value = longValue(s, op);
  const uint32_t amount = op->imm;
  uint64_t result = 0;
  if constexpr (How == LongShift::Lsll) result = shiftLeftLong(value, amount);
  if constexpr (How == LongShift::Lsrl) result = shiftRightLong(value, amount);
  if constexpr (How == LongShift::Asrl) result = shiftRightSigned(value, amount);
  if constexpr (How == LongShift::Uqshll) result = saturateLeftUnsigned(s, value, amount, 64);
  if constexpr (How == LongShift::Urshrl) result = roundRightUnsigned(value, amount);
  if constexpr (How == LongShift::Srshrl) result = roundRightSigned(value, amount);
  if constexpr (How == LongShift::Sqshll) result = saturateLeftSigned(s, value, amount, 64);
  setLongValue(s, op, result);
  return op + 1;
}

int32_t signedCount(const State& s, const Op* op) {
  return static_cast<int8_t>(s.r[op->m]);
}
const Op* lsllRegister(Core& core, const Op* op) {
  State& s = core.state;
  const int32_t count = signedCount(s, op);
  const auto amount = static_cast<uint32_t>(count < 0 ? -count : count);
  setLongValue(
      s, op, count < 0 ? shiftRightLong(longValue(s, op), amount) : shiftLeftLong(longValue(s, op), amount));
  return op + 1;
}
/// A positive count shifts right.
const Op* asrlRegister(Core& core, const Op* op) {
  State& s = core.state;
  const int32_t count = signedCount(s, op);
  const auto amount = static_cast<uint32_t>(count < 0 ? -count : count);
  setLongValue(
      s, op,
      count < 0 ? shiftLeftLong(longValue(s, op), amount) : shiftRightSigned(longValue(s, op), amount));
  return op + 1;
}
/// A negative count shifts right and rounds. Op::x: saturates to 48 bits.
const Op* uqrshll(Core& core, const Op* op) {
  State& s = core.state;
  const int32_t count = signedCount(s, op);
  const auto amount = static_cast<uint32_t>(count < 0 ? -count : count);
  const uint32_t width = op->x != 0 ? 48 : 64;
  uint64_t result = 0;
  if (count < 0) {
    result = saturateLeftUnsigned(s, roundRightUnsigned(longValue(s, op), amount), 0, width);
  } else {
    result = saturateLeftUnsigned(s, longValue(s, op), amount, width);
  }
  setLongValue(s, op, result);
  return op + 1;
}
/// A positive count shifts right and rounds.
const Op* sqrshrl(Core& core, const Op* op) {
  State& s = core.state;
  const int32_t count = signedCount(s, op);
  const auto amount = static_cast<uint32_t>(count < 0 ? -count : count);
  const uint32_t width = op->x != 0 ? 48 : 64;
  uint64_t result = 0;
  if (count > 0) {
    result = saturateLeftSigned(s, roundRightSigned(longValue(s, op), amount), 0, width);
  } else {
    result = saturateLeftSigned(s, longValue(s, op), amount, width);
  }
  setLongValue(s, op, result);
  return op + 1;
}

enum class ShortShift : uint8_t { Uqshl, Urshr, Srshr, Sqshl };
template <ShortShift How>
const Op* shortShift(Core& core, const Op* op) {
  State& s = core.state;
  const uint32_t value = s.r[op->d], amount = op->imm;
  const auto number = static_cast<int32_t>(value);
  if constexpr (How == ShortShift::Uqshl)
    s.r[op->d] = static_cast<uint32_t>(saturateLeftUnsigned(s, value, amount, 32));
  if constexpr (How == ShortShift::Urshr)
    s.r[op->d] = static_cast<uint32_t>(roundRightUnsigned(value, amount));
  const auto wide = static_cast<uint64_t>(int64_t{number});
  if constexpr (How == ShortShift::Srshr) s.r[op->d] = static_cast<uint32_t>(roundRightSigned(wide, amount));
  if constexpr (How == ShortShift::Sqshl)
    s.r[op->d] = static_cast<uint32_t>(saturateLeftSigned(s, wide, amount, 32));
  return op + 1;
}
const Op* uqrshl(Core& core, const Op* op) {
  State& s = core.state;
  const int32_t count = signedCount(s, op);
  const uint64_t value = s.r[op->d];
  s.r[op->d] =
      static_cast<uint32_t>(count < 0 ? roundRightUnsigned(value, static_cast<uint32_t>(-count))
                                      : saturateLeftUnsigned(s, value, static_cast<uint32_t>(count), 32));
  return op + 1;
}
const Op* sqrshr(Core& core, const Op* op) {
  State& s = core.state;
  const int32_t count = signedCount(s, op);
  const auto value = static_cast<uint64_t>(int64_t{static_cast<int32_t>(s.r[op->d])});
  s.r[op->d] =
      static_cast<uint32_t>(count > 0 ? roundRightSigned(value, static_cast<uint32_t>(count))
                                      : saturateLeftSigned(s, value, static_cast<uint32_t>(-count), 32));
  return op + 1;
}

// Unlike other MVE instructions, shifts of one or two core registers can be conditional: compilers put them
// into IT blocks.
Decoded prepareLong(Op& op, DecodeContext& /*context*/) {
  op.d = static_cast<uint8_t>(op.d << 1);
  op.a = static_cast<uint8_t>(op.a << 1 | 1);
  if (op.imm == 0) op.imm = 32;
  return op.a == kPc || op.a == kSp ? Decoded::Unpredictable : Decoded::Ok;
}
Decoded prepareLongRegister(Op& op, DecodeContext& context) {
  if (prepareLong(op, context) != Decoded::Ok || isBad(op.m) || op.m == op.a || op.m == op.d)
    return Decoded::Unpredictable;
  return Decoded::Ok;
}
Decoded prepareShort(Op& op, DecodeContext& /*context*/) {
  if (op.imm == 0) op.imm = 32;
  return isBad(op.d) ? Decoded::Unpredictable : Decoded::Ok;
}
Decoded prepareShortRegister(Op& op, DecodeContext& /*context*/) {
  return isBad(op.d) || isBad(op.m) || op.m == op.d ? Decoded::Unpredictable : Decoded::Ok;
}

// --- extensions

template <uint32_t Kind>
const Op* extend(Core& core, const Op* op) {
  State& s = core.state;
  const uint32_t value = std::rotr(s.r[op->m], 8 * op->x);
  const uint32_t base = op->n == kPc ? 0 : s.r[op->n];
  uint32_t result = 0;
  if constexpr (Kind == 0) result = base + static_cast<uint32_t>(static_cast<int16_t>(value));
  if constexpr (Kind == 1) result = base + (value & 0xffff);
  if constexpr (Kind == 2 || Kind == 3) {
    const uint32_t low = Kind == 2 ? static_cast<uint32_t>(static_cast<int8_t>(value)) : value & 0xff;
    const uint32_t high =
        Kind == 2 ? static_cast<uint32_t>(static_cast<int8_t>(value >> 16)) : value >> 16 & 0xff;
    result = ((base + low) & 0xffff) | ((base >> 16) + high) << 16;
  }
  if constexpr (Kind == 4) result = base + static_cast<uint32_t>(static_cast<int8_t>(value));
  if constexpr (Kind == 5) result = base + (value & 0xff);
  s.r[op->d] = result;
  return op + 1;
}
Decoded prepareExtend(Op& op, DecodeContext& context) {
  // Plain SXTH, UXTH, SXTB and UXTB are in every core; the accumulating forms and SXTB16, UXTB16 require the
  // DSP extension.
  const bool plain = op.n == kPc, bytesOfHalves = (op.code >> 21 & 3) == 1;
  if ((!plain || bytesOfHalves) && (context.features & kDsp) == 0) return Decoded::Undefined;
  return isBad(op.d) || isBad(op.m) || op.n == kSp ? Decoded::Unpredictable : Decoded::Ok;
}

// --- reversals, counts

const Op* rbit(Core& core, const Op* op) {
  uint32_t value = __builtin_bswap32(core.state.r[op->m]);
  value = (value >> 4 & 0x0f0f0f0f) | (value & 0x0f0f0f0f) << 4;
  value = (value >> 2 & 0x33333333) | (value & 0x33333333) << 2;
  core.state.r[op->d] = (value >> 1 & 0x55555555) | (value & 0x55555555) << 1;
  return op + 1;
}
const Op* clz(Core& core, const Op* op) {
  core.state.r[op->d] = static_cast<uint32_t>(std::countl_zero(core.state.r[op->m]));
  return op + 1;
}
/// The second operand is encoded twice.
Decoded prepareReverse(Op& op, DecodeContext&) {
  return isBad(op.d) || isBad(op.m) || op.n != op.m ? Decoded::Unpredictable : Decoded::Ok;
}

using enum Alu;

// One operation, with and without the flags. The opcode is bits 24:21.
#define SHIFTED(opcode, name, operation)                                                                \
  {"1110 101" opcode "0 nnnn 0xxx dddd xxyy mmmm", name ".w {Rd}, {Rn}, {Rm}, shift {y} #{x}", kBase,   \
   nullptr, prepareShiftedRegister<operation, false>},                                                  \
  {                                                                                                     \
    "1110 101" opcode "1 nnnn 0xxx dddd xxyy mmmm", name "s.w {Rd}, {Rn}, {Rm}, shift {y} #{x}", kBase, \
        nullptr, prepareShiftedRegister<operation, true>                                                \
  }
#define IMMEDIATE(opcode, name, operation)                                              \
  {"1111 0i0" opcode "0 nnnn 0iii dddd iiii iiii", name ".w {Rd}, {Rn}, {#i}", kBase,   \
   alu<operation, Second::Immediate, false>, prepareImmediate<operation, false>},       \
  {                                                                                     \
    "1111 0i0" opcode "1 nnnn 0iii dddd iiii iiii", name "s.w {Rd}, {Rn}, {#i}", kBase, \
        alu<operation, Second::Immediate, true>, prepareImmediate<operation, true>      \
  }
// MOV and MVN: no first operand.
#define SHIFTED_MOVE(opcode, name, operation)                                                              \
  {"1110 101" opcode "0 1111 0xxx dddd xxyy mmmm", name ".w {Rd}, {Rm}, shift {y} #{x}", kBase, nullptr,   \
   prepareShiftedRegister<operation, false>},                                                              \
  {                                                                                                        \
    "1110 101" opcode "1 1111 0xxx dddd xxyy mmmm", name "s.w {Rd}, {Rm}, shift {y} #{x}", kBase, nullptr, \
        prepareShiftedRegister<operation, true>                                                            \
  }
#define IMMEDIATE_MOVE(opcode, name, operation)                                    \
  {"1111 0i0" opcode "0 1111 0iii dddd iiii iiii", name ".w {Rd}, {#i}", kBase,    \
   alu<operation, Second::Immediate, false>, prepareImmediate<operation, false>},  \
  {                                                                                \
    "1111 0i0" opcode "1 1111 0iii dddd iiii iiii", name "s.w {Rd}, {#i}", kBase,  \
        alu<operation, Second::Immediate, true>, prepareImmediate<operation, true> \
  }
#define SHIFTED_COMPARE(opcode, name, operation)                                                          \
  {                                                                                                       \
    "1110 101" opcode "1 nnnn 0xxx 1111 xxyy mmmm", name ".w {Rn}, {Rm}, shift {y} #{x}", kBase, nullptr, \
        prepareShiftedRegister<operation, true>                                                           \
  }
#define IMMEDIATE_COMPARE(opcode, name, operation)                                 \
  {                                                                                \
    "1111 0i0" opcode "1 nnnn 0iii 1111 iiii iiii", name ".w {Rn}, {#i}", kBase,   \
        alu<operation, Second::Immediate, true>, prepareImmediate<operation, true> \
  }
#define SHIFT_REGISTER(opcode, name, type)                                                 \
  {"1111 1010 0" opcode "0 nnnn 1111 dddd 0000 mmmm", name ".w {Rd}, {Rn}, {Rm}", kBase,   \
   shiftRegister<type, false>, threeRegisters},                                            \
  {                                                                                        \
    "1111 1010 0" opcode "1 nnnn 1111 dddd 0000 mmmm", name "s.w {Rd}, {Rn}, {Rm}", kBase, \
        shiftRegister<type, true>, threeRegisters                                          \
  }
#define EXTEND(kind, bits, name)                                                                       \
  {"1111 1010 0" bits " 1111 1111 dddd 10xx mmmm", name ".w {Rd}, {Rm}, ror {x}", kBase, extend<kind>, \
   [](Op& op, DecodeContext& context) {                                                                \
     op.n = kPc;                                                                                       \
     return prepareExtend(op, context);                                                                \
   }},                                                                                                 \
  {                                                                                                    \
    "1111 1010 0" bits " nnnn 1111 dddd 10xx mmmm", name " (adds) {Rd}, {Rn}, {Rm}, ror {x}", kBase,   \
        extend<kind>, prepareExtend                                                                    \
  }

const Encoding kDataProcessingRows[] = {
    // clang-format off
    // Long shifts, in the encoding space of ORRS (shifted register). Shifts of one register have 111 for the
    // high one.
    {"1110 1010 0101 dddd 0iii 1111 ii00 1111", "uqshl {Rd}, {#i}", kV81, shortShift<ShortShift::Uqshl>, prepareShort},
    {"1110 1010 0101 dddd 0iii 1111 ii01 1111", "urshr {Rd}, {#i}", kV81, shortShift<ShortShift::Urshr>, prepareShort},
    {"1110 1010 0101 dddd 0iii 1111 ii10 1111", "srshr {Rd}, {#i}", kV81, shortShift<ShortShift::Srshr>, prepareShort},
    {"1110 1010 0101 dddd 0iii 1111 ii11 1111", "sqshl {Rd}, {#i}", kV81, shortShift<ShortShift::Sqshl>, prepareShort},
    {"1110 1010 0101 dddd mmmm 1111 0000 1101", "uqrshl {Rd}, {Rm}", kV81, uqrshl, prepareShortRegister},
    {"1110 1010 0101 dddd mmmm 1111 0010 1101", "sqrshr {Rd}, {Rm}", kV81, sqrshr, prepareShortRegister},
    {"1110 1010 0101 ddd0 0iii aaa1 ii00 1111", "lsll {Rd}, {Ra}, {#i}", kV81, longShiftImmediate<LongShift::Lsll>, prepareLong},
    {"1110 1010 0101 ddd0 0iii aaa1 ii01 1111", "lsrl {Rd}, {Ra}, {#i}", kV81, longShiftImmediate<LongShift::Lsrl>, prepareLong},
    {"1110 1010 0101 ddd0 0iii aaa1 ii10 1111", "asrl {Rd}, {Ra}, {#i}", kV81, longShiftImmediate<LongShift::Asrl>, prepareLong},
    {"1110 1010 0101 ddd1 0iii aaa1 ii00 1111", "uqshll {Rd}, {Ra}, {#i}", kV81, longShiftImmediate<LongShift::Uqshll>, prepareLong},
    {"1110 1010 0101 ddd1 0iii aaa1 ii01 1111", "urshrl {Rd}, {Ra}, {#i}", kV81, longShiftImmediate<LongShift::Urshrl>, prepareLong},
    {"1110 1010 0101 ddd1 0iii aaa1 ii10 1111", "srshrl {Rd}, {Ra}, {#i}", kV81, longShiftImmediate<LongShift::Srshrl>, prepareLong},
    {"1110 1010 0101 ddd1 0iii aaa1 ii11 1111", "sqshll {Rd}, {Ra}, {#i}", kV81, longShiftImmediate<LongShift::Sqshll>, prepareLong},
    {"1110 1010 0101 ddd0 mmmm aaa1 0000 1101", "lsll {Rd}, {Ra}, {Rm}", kV81, lsllRegister, prepareLongRegister},
    {"1110 1010 0101 ddd0 mmmm aaa1 0010 1101", "asrl {Rd}, {Ra}, {Rm}", kV81, asrlRegister, prepareLongRegister},
    {"1110 1010 0101 ddd1 mmmm aaa1 x000 1101", "uqrshll {Rd}, {Ra}, sat {x}, {Rm}", kV81, uqrshll, prepareLongRegister},
    {"1110 1010 0101 ddd1 mmmm aaa1 x010 1101", "sqrshrl {Rd}, {Ra}, sat {x}, {Rm}", kV81, sqrshrl, prepareLongRegister},
    {"1110 1010 0101 nnnn 1000 dddd xxxx mmmm", "csel {Rd}, {Rn}, {Rm}, {c}", kV81, conditionalSelect<0>, prepareSelect},
    {"1110 1010 0101 nnnn 1001 dddd xxxx mmmm", "csinc {Rd}, {Rn}, {Rm}, {c}", kV81, conditionalSelect<1>, prepareSelect},
    {"1110 1010 0101 nnnn 1010 dddd xxxx mmmm", "csinv {Rd}, {Rn}, {Rm}, {c}", kV81, conditionalSelect<2>, prepareSelect},
    {"1110 1010 0101 nnnn 1011 dddd xxxx mmmm", "csneg {Rd}, {Rn}, {Rm}, {c}", kV81, conditionalSelect<3>, prepareSelect},


    SHIFTED_COMPARE("0 000", "tst", Tst), SHIFTED_COMPARE("0 100", "teq", Teq),
    SHIFTED_COMPARE("1 000", "cmn", Cmn), SHIFTED_COMPARE("1 101", "cmp", Cmp),
    SHIFTED_MOVE("0 010", "mov", Mov), SHIFTED_MOVE("0 011", "mvn", Mvn),
    SHIFTED("0 000", "and", And), SHIFTED("0 001", "bic", Bic), SHIFTED("0 010", "orr", Orr),
    SHIFTED("0 011", "orn", Orn), SHIFTED("0 100", "eor", Eor), SHIFTED("1 000", "add", Add),
    SHIFTED("1 010", "adc", Adc), SHIFTED("1 011", "sbc", Sbc), SHIFTED("1 101", "sub", Sub),
    SHIFTED("1 110", "rsb", Rsb),
    {"1110 1010 1100 nnnn 0xxx dddd xxy0 mmmm", "pkh {Rd}, {Rn}, {Rm}, shift {y} #{x}", kDsp, pkh, preparePkh},

    IMMEDIATE_COMPARE("0 000", "tst", Tst), IMMEDIATE_COMPARE("0 100", "teq", Teq),
    IMMEDIATE_COMPARE("1 000", "cmn", Cmn), IMMEDIATE_COMPARE("1 101", "cmp", Cmp),
    IMMEDIATE_MOVE("0 010", "mov", Mov), IMMEDIATE_MOVE("0 011", "mvn", Mvn),
    IMMEDIATE("0 000", "and", And), IMMEDIATE("0 001", "bic", Bic), IMMEDIATE("0 010", "orr", Orr),
    IMMEDIATE("0 011", "orn", Orn), IMMEDIATE("0 100", "eor", Eor), IMMEDIATE("1 000", "add", Add),
    IMMEDIATE("1 010", "adc", Adc), IMMEDIATE("1 011", "sbc", Sbc), IMMEDIATE("1 101", "sub", Sub),
    IMMEDIATE("1 110", "rsb", Rsb),

    {"1111 0i10 0000 1111 0iii dddd iiii iiii", "adr.w {Rd}, {label}", kBase, alu<Mov, Second::Immediate, false>, prepareAdr<false>},
    {"1111 0i10 1010 1111 0iii dddd iiii iiii", "adr.w {Rd}, {label}", kBase, alu<Mov, Second::Immediate, false>, prepareAdr<true>},
    {"1111 0i10 0000 nnnn 0iii dddd iiii iiii", "addw {Rd}, {Rn}, {#i}", kBase, alu<Add, Second::Immediate, false>, prepareWide<Add>},
    {"1111 0i10 1010 nnnn 0iii dddd iiii iiii", "subw {Rd}, {Rn}, {#i}", kBase, alu<Sub, Second::Immediate, false>, prepareWide<Sub>},
    {"1111 0-10 0100 ---- 0--- dddd ---- ----", "movw {Rd}, {#i}", kBase, alu<Mov, Second::Immediate, false>, prepareMovw},
    {"1111 0-10 1100 ---- 0--- dddd ---- ----", "movt {Rd}, {#i}", kBase, movt, prepareMovw},
    {"1111 0011 0010 nnnn 0000 dddd 0000 wwww", "ssat16 {Rd}, {w} + 1, {Rn}", kDsp, ssat16, twoRegistersN},
    {"1111 0011 1010 nnnn 0000 dddd 0000 wwww", "usat16 {Rd}, {w}, {Rn}", kDsp, usat16, twoRegistersN},
    {"1111 0011 00y0 nnnn 0xxx dddd xx0w wwww", "ssat {Rd}, {w} + 1, {Rn}, shift {y} #{x}", kBase, ssat, prepareSaturate},
    {"1111 0011 10y0 nnnn 0xxx dddd xx0w wwww", "usat {Rd}, {w}, {Rn}, shift {y} #{x}", kBase, usat, prepareSaturate},
    {"1111 0011 0100 nnnn 0xxx dddd xx0w wwww", "sbfx {Rd}, {Rn}, left {y}, right {w}", kBase, sbfx, prepareExtract},
    {"1111 0011 1100 nnnn 0xxx dddd xx0w wwww", "ubfx {Rd}, {Rn}, left {y}, right {w}", kBase, ubfx, prepareExtract},
    {"1111 0011 0110 1111 0xxx dddd xx0w wwww", "bfc {Rd}, #{x}, last {w}", kBase, bfc, prepareInsert},
    {"1111 0011 0110 nnnn 0xxx dddd xx0w wwww", "bfi {Rd}, {Rn}, #{x}, last {w}", kBase, bfi, prepareInsert},

    SHIFT_REGISTER("00", "lsl", kLsl), SHIFT_REGISTER("01", "lsr", kLsr),
    SHIFT_REGISTER("10", "asr", kAsr), SHIFT_REGISTER("11", "ror", kRor),
    EXTEND(0, "000", "sxth"), EXTEND(1, "001", "uxth"), EXTEND(2, "010", "sxtb16"),
    EXTEND(3, "011", "uxtb16"), EXTEND(4, "100", "sxtb"), EXTEND(5, "101", "uxtb"),
    {"1111 1010 1001 nnnn 1111 dddd 1000 mmmm", "rev.w {Rd}, {Rm}", kBase, rev, prepareReverse},
    {"1111 1010 1001 nnnn 1111 dddd 1001 mmmm", "rev16.w {Rd}, {Rm}", kBase, rev16, prepareReverse},
    {"1111 1010 1001 nnnn 1111 dddd 1010 mmmm", "rbit {Rd}, {Rm}", kBase, rbit, prepareReverse},
    {"1111 1010 1001 nnnn 1111 dddd 1011 mmmm", "revsh.w {Rd}, {Rm}", kBase, revsh, prepareReverse},
    {"1111 1010 1011 nnnn 1111 dddd 1000 mmmm", "clz {Rd}, {Rm}", kBase, clz, prepareReverse},
    // clang-format on
};

}  // namespace

std::span<const Encoding> dataProcessingEncodings() {
  return kDataProcessingRows;
}

}  // namespace carina::cpu_m
