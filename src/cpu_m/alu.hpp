// SPDX-License-Identifier: Apache-2.0
// Handlers of data-processing instructions, shared by the 16-bit and the 32-bit encodings.
#pragma once

#include "cpu_m/core.hpp"

namespace carina::cpu_m {

enum class Alu : uint8_t { And, Bic, Orr, Orn, Eor, Add, Adc, Sbc, Sub, Rsb, Mov, Mvn, Tst, Teq, Cmn, Cmp };
/// The second operand: Op::imm (carry-out in Op::x: 0, 1, or 2 = unchanged), register m, or register m
/// shifted (type Op::y, amount Op::x, as decoded by decodeShift).
enum class Second : uint8_t { Immediate, Register, Shifted };
enum Shift : uint8_t { kLsl, kLsr, kAsr, kRor, kRrx };
constexpr uint8_t kCarryUnchanged = 2;

struct Shifted {
  uint32_t value, carry;
};

/// Shift by a constant amount: LSR and ASR by 1..32, LSL and ROR by 0..31.
inline Shifted shiftByConstant(uint32_t value, uint8_t type, uint32_t amount, uint32_t carry) {
  switch (type) {
    case kLsl:
      return amount == 0 ? Shifted{value, carry} : Shifted{value << amount, value >> (32 - amount) & 1};
    case kLsr:
      return amount == 32 ? Shifted{0, value >> 31} : Shifted{value >> amount, value >> (amount - 1) & 1};
    case kAsr: {
      const auto number = static_cast<int32_t>(value);
      return amount == 32 ? Shifted{static_cast<uint32_t>(number >> 31), value >> 31}
                          : Shifted{static_cast<uint32_t>(number >> amount), value >> (amount - 1) & 1};
    }
    case kRor:
      return {std::rotr(value, static_cast<int>(amount)), value >> (amount - 1) & 1};
    default:
      return {value >> 1 | carry << 31, value & 1};
  }
}

/// Shift by the low byte of a register.
inline Shifted shiftByRegister(uint32_t value, uint8_t type, uint32_t amount, uint32_t carry) {
  if (amount == 0) return {value, carry};
  switch (type) {
    case kLsl:
      if (amount > 32) return {0, 0};
      return amount == 32 ? Shifted{0, value & 1} : shiftByConstant(value, kLsl, amount, carry);
    case kLsr:
      return amount > 32 ? Shifted{0, 0} : shiftByConstant(value, kLsr, amount, carry);
    case kAsr:
      return shiftByConstant(value, kAsr, amount > 32 ? 32 : amount, carry);
    default: {
      const uint32_t rotated = std::rotr(value, static_cast<int>(amount & 31));
      return {rotated, rotated >> 31};
    }
  }
}

inline uint32_t addWithCarry(State& s, uint32_t a, uint32_t b, uint32_t carry, bool setFlags) {
  const uint64_t wide = uint64_t{a} + b + carry;
  const auto result = static_cast<uint32_t>(wide);
  if (setFlags) {
    s.n = s.z = result;
    s.c = static_cast<uint32_t>(wide >> 32);
    s.v = (a ^ result) & (b ^ result);
  }
  return result;
}

/// Computes the result and, if `SetFlags`, the flags. Comparisons produce only flags.
template <Alu Operation, bool SetFlags>
inline uint32_t computeAlu(State& s, uint32_t a, uint32_t b, uint32_t shiftCarry) {
  const auto logic = [&](uint32_t result) {
    if constexpr (SetFlags) {
      s.n = s.z = result;
      s.c = shiftCarry;
    }
    return result;
  };
  switch (Operation) {
    case Alu::And:
    case Alu::Tst:
      return logic(a & b);
    case Alu::Bic:
      return logic(a & ~b);
    case Alu::Orr:
      return logic(a | b);
    case Alu::Orn:
      return logic(a | ~b);
    case Alu::Eor:
    case Alu::Teq:
      return logic(a ^ b);
    case Alu::Mov:
      return logic(b);
    case Alu::Mvn:
      return logic(~b);
    case Alu::Add:
    case Alu::Cmn:
      return addWithCarry(s, a, b, 0, SetFlags);
    case Alu::Adc:
      return addWithCarry(s, a, b, s.c, SetFlags);
    case Alu::Sbc:
      return addWithCarry(s, a, ~b, s.c, SetFlags);
    case Alu::Sub:
    case Alu::Cmp:
      return addWithCarry(s, a, ~b, 1, SetFlags);
    case Alu::Rsb:
      return addWithCarry(s, ~a, b, 1, SetFlags);
  }
  return 0;
}

constexpr bool isComparison(Alu operation) {
  return operation >= Alu::Tst;
}

template <Alu Operation, Second Operand, bool SetFlags>
const Op* alu(Core& core, const Op* op) {
  State& s = core.state;
  uint32_t b = 0, carry = 0;
  if constexpr (Operand == Second::Immediate) {
    b = op->imm;
    if constexpr (SetFlags) carry = op->x == kCarryUnchanged ? s.c : op->x;
  } else if constexpr (Operand == Second::Register) {
    b = s.r[op->m];
    if constexpr (SetFlags) carry = s.c;
  } else {
    const Shifted shifted = shiftByConstant(s.r[op->m], op->y, op->x, s.c);
    b = shifted.value;
    carry = shifted.carry;
  }
  const uint32_t result = computeAlu<Operation, SetFlags>(s, s.r[op->n], b, carry);
  if constexpr (!isComparison(Operation)) s.r[op->d] = result;
  return op + 1;
}

template <uint8_t Type, bool SetFlags>
const Op* shiftRegister(Core& core, const Op* op) {
  State& s = core.state;
  const Shifted shifted = shiftByRegister(s.r[op->n], Type, s.r[op->m] & 0xff, s.c);
  s.r[op->d] = shifted.value;
  if constexpr (SetFlags) {
    s.setNZ(shifted.value);
    s.c = shifted.carry;
  }
  return op + 1;
}

inline const Op* rev(Core& core, const Op* op) {
  core.state.r[op->d] = __builtin_bswap32(core.state.r[op->m]);
  return op + 1;
}
inline const Op* rev16(Core& core, const Op* op) {
  const uint32_t value = core.state.r[op->m];
  core.state.r[op->d] = (value >> 8 & 0x00ff00ff) | (value << 8 & 0xff00ff00);
  return op + 1;
}
inline const Op* revsh(Core& core, const Op* op) {
  const auto swapped = __builtin_bswap16(static_cast<uint16_t>(core.state.r[op->m]));
  core.state.r[op->d] = static_cast<uint32_t>(static_cast<int16_t>(swapped));
  return op + 1;
}

/// Converts encoded type and amount (Op::y, Op::x) to the form that shiftByConstant expects. True: no shift.
inline bool decodeShift(Op& op) {
  if (op.x == 0) {
    if (op.y == kLsl) return true;
    if (op.y == kRor) {
      op.y = kRrx;
    } else {
      op.x = 32;
    }
  }
  return false;
}

/// An instruction that writes SP: checks the new value against the stack limit and aligns it to 4.
template <Run Execute>
const Op* intoSp(Core& core, const Op* op) {
  core.at(op);
  const uint32_t before = core.state.r[kSp];
  const Op* next = Execute(core, op);
  const uint32_t after = core.state.r[kSp];
  core.state.r[kSp] = before;
  core.checkStack(after);
  core.state.r[kSp] = after & ~3u;
  return next;
}

}  // namespace carina::cpu_m
