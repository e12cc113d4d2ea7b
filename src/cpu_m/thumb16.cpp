// SPDX-License-Identifier: Apache-2.0
// The 16-bit encodings, except branches and system instructions.
#include "cpu_m/alu.hpp"
#include "cpu_m/load_store.hpp"

namespace carina::cpu_m {
namespace {

// --- data processing

Decoded immediateCarry(Op& op, DecodeContext&) {
  op.x = kCarryUnchanged;
  return Decoded::Ok;
}
/// Rdn: the first operand is also the destination.
Decoded sameOperand(Op& op, DecodeContext&) {
  op.n = op.d;
  op.x = kCarryUnchanged;
  return Decoded::Ok;
}
Decoded shiftImmediate(Op& op, DecodeContext&) {
  op.y = static_cast<uint8_t>(bits(op.code, 11, 2));
  if (decodeShift(op))
    op.run = op.run == alu<Alu::Mov, Second::Shifted, true> ? alu<Alu::Mov, Second::Register, true>
                                                            : alu<Alu::Mov, Second::Register, false>;
  return Decoded::Ok;
}
Decoded negate(Op& op, DecodeContext&) {
  op.imm = 0;
  op.x = kCarryUnchanged;
  return Decoded::Ok;
}

const Op* branchToResult(Core& core, const Op* op) {
  return core.branchTo(core.state.r[op->m] & ~1u);
}
const Op* addToPc(Core& core, const Op* op) {
  return core.branchTo((core.state.r[15] + core.state.r[op->m]) & ~1u);
}
/// ADD, CMP and MOV with high registers: bit 7 is the top of Rdn.
Decoded highRegisters(Op& op, DecodeContext& context) {
  op.n = op.d;
  context.readsPc = op.n == kPc || op.m == kPc;
  return Decoded::Ok;
}
Decoded addHigh(Op& op, DecodeContext& context) {
  highRegisters(op, context);
  if (op.d == kPc) {
    context.branches = true;
    op.run = addToPc;
    return op.m == kPc ? Decoded::Unpredictable : Decoded::Ok;
  }
  if (op.d == kSp) op.run = intoSp<alu<Alu::Add, Second::Register, false>>;
  return Decoded::Ok;
}
Decoded moveHigh(Op& op, DecodeContext& context) {
  highRegisters(op, context);
  context.readsPc = op.m == kPc;
  if (op.d == kPc) {
    context.branches = true;
    op.run = branchToResult;
  }
  if (op.d == kSp) op.run = intoSp<alu<Alu::Mov, Second::Register, false>>;
  return Decoded::Ok;
}
Decoded compareHigh(Op& op, DecodeContext& context) {
  highRegisters(op, context);
  return op.n == kPc || op.m == kPc ? Decoded::Unpredictable : Decoded::Ok;
}

/// ADR: a constant.
Decoded addressOfLabel(Op& op, DecodeContext&) {
  op.imm = ((op.address + 4) & ~3u) + 4 * op.imm;
  return Decoded::Ok;
}
Decoded addToSp(Op& op, DecodeContext&) {
  op.n = kSp;
  op.imm *= 4;
  return Decoded::Ok;
}
Decoded adjustSp(Op& op, DecodeContext&) {
  op.d = op.n = kSp;
  op.imm *= 4;
  return Decoded::Ok;
}

// --- loads and stores

template <uint32_t Scale>
Decoded scaled(Op& op, DecodeContext&) {
  op.imm *= Scale;
  return Decoded::Ok;
}
Decoded spRelative(Op& op, DecodeContext&) {
  op.n = kSp;
  op.imm *= 4;
  return Decoded::Ok;
}
Decoded literal(Op& op, DecodeContext&) {
  op.imm = ((op.address + 4) & ~3u) + 4 * op.imm;
  return Decoded::Ok;
}
Decoded registerOffset(Op& op, DecodeContext&) {
  op.x = 0;
  return Decoded::Ok;
}
Decoded push(Op& op, DecodeContext&) {
  op.imm |= uint32_t{op.x} << kLr;
  op.n = kSp;
  return op.imm == 0 ? Decoded::Unpredictable : Decoded::Ok;
}
Decoded pop(Op& op, DecodeContext& context) {
  op.imm |= uint32_t{op.x} << kPc;
  op.n = kSp;
  if (op.x != 0) {
    context.branches = true;
    op.run = loadMultiple<true, true>;
  }
  return op.imm == 0 ? Decoded::Unpredictable : Decoded::Ok;
}
Decoded storeList(Op& op, DecodeContext&) {
  // A base in the list that is not first would be stored as UNKNOWN.
  const uint32_t below = (1u << op.n) - 1;
  const bool odd = (op.imm >> op.n & 1) != 0 && (op.imm & below) != 0;
  return op.imm == 0 || odd ? Decoded::Unpredictable : Decoded::Ok;
}
Decoded loadList(Op& op, DecodeContext&) {
  if ((op.imm >> op.n & 1) != 0) op.run = loadMultiple<false, false>;
  return op.imm == 0 ? Decoded::Unpredictable : Decoded::Ok;
}

// --- miscellaneous

const Op* sxth(Core& core, const Op* op) {
  core.state.r[op->d] = static_cast<uint32_t>(static_cast<int16_t>(core.state.r[op->m]));
  return op + 1;
}
const Op* sxtb(Core& core, const Op* op) {
  core.state.r[op->d] = static_cast<uint32_t>(static_cast<int8_t>(core.state.r[op->m]));
  return op + 1;
}
const Op* uxth(Core& core, const Op* op) {
  core.state.r[op->d] = core.state.r[op->m] & 0xffff;
  return op + 1;
}
const Op* uxtb(Core& core, const Op* op) {
  core.state.r[op->d] = core.state.r[op->m] & 0xff;
  return op + 1;
}
const Op* mul(Core& core, const Op* op) {
  State& s = core.state;
  s.r[op->d] = s.r[op->n] * s.r[op->d];
  return op + 1;
}
const Op* muls(Core& core, const Op* op) {
  mul(core, op);
  core.state.setNZ(core.state.r[op->d]);
  return op + 1;
}

using enum Alu;
constexpr Second kImmediate = Second::Immediate, kRegister = Second::Register, kShifted = Second::Shifted;

const Encoding kThumb16Rows[] = {
    // clang-format off
    {"0000 0iii iimm mddd", "lsls {Rd}, {Rm}, {#i}", kBase, alu<Mov, kShifted, true>, [](Op& op, DecodeContext& c) {
       op.x = static_cast<uint8_t>(op.imm);
       return shiftImmediate(op, c); }, alu<Mov, kShifted, false>},
    {"0000 1iii iimm mddd", "lsrs {Rd}, {Rm}, #{x}", kBase, alu<Mov, kShifted, true>, [](Op& op, DecodeContext& c) {
       op.x = static_cast<uint8_t>(op.imm);
       return shiftImmediate(op, c); }, alu<Mov, kShifted, false>},
    {"0001 0iii iimm mddd", "asrs {Rd}, {Rm}, #{x}", kBase, alu<Mov, kShifted, true>, [](Op& op, DecodeContext& c) {
       op.x = static_cast<uint8_t>(op.imm);
       return shiftImmediate(op, c); }, alu<Mov, kShifted, false>},
    {"0001 100m mmnn nddd", "adds {Rd}, {Rn}, {Rm}", kBase, alu<Add, kRegister, true>, nullptr, alu<Add, kRegister, false>},
    {"0001 101m mmnn nddd", "subs {Rd}, {Rn}, {Rm}", kBase, alu<Sub, kRegister, true>, nullptr, alu<Sub, kRegister, false>},
    {"0001 110i iinn nddd", "adds {Rd}, {Rn}, {#i}", kBase, alu<Add, kImmediate, true>, nullptr, alu<Add, kImmediate, false>},
    {"0001 111i iinn nddd", "subs {Rd}, {Rn}, {#i}", kBase, alu<Sub, kImmediate, true>, nullptr, alu<Sub, kImmediate, false>},
    {"0010 0ddd iiii iiii", "movs {Rd}, {#i}", kBase, alu<Mov, kImmediate, true>, immediateCarry, alu<Mov, kImmediate, false>},
    {"0010 1nnn iiii iiii", "cmp {Rn}, {#i}", kBase, alu<Cmp, kImmediate, true>},
    {"0011 0ddd iiii iiii", "adds {Rd}, {#i}", kBase, alu<Add, kImmediate, true>, sameOperand, alu<Add, kImmediate, false>},
    {"0011 1ddd iiii iiii", "subs {Rd}, {#i}", kBase, alu<Sub, kImmediate, true>, sameOperand, alu<Sub, kImmediate, false>},

    {"0100 0000 00mm mddd", "ands {Rd}, {Rm}", kBase, alu<And, kRegister, true>, sameOperand, alu<And, kRegister, false>},
    {"0100 0000 01mm mddd", "eors {Rd}, {Rm}", kBase, alu<Eor, kRegister, true>, sameOperand, alu<Eor, kRegister, false>},
    {"0100 0000 10mm mddd", "lsls {Rd}, {Rm}", kBase, shiftRegister<kLsl, true>, sameOperand, shiftRegister<kLsl, false>},
    {"0100 0000 11mm mddd", "lsrs {Rd}, {Rm}", kBase, shiftRegister<kLsr, true>, sameOperand, shiftRegister<kLsr, false>},
    {"0100 0001 00mm mddd", "asrs {Rd}, {Rm}", kBase, shiftRegister<kAsr, true>, sameOperand, shiftRegister<kAsr, false>},
    {"0100 0001 01mm mddd", "adcs {Rd}, {Rm}", kBase, alu<Adc, kRegister, true>, sameOperand, alu<Adc, kRegister, false>},
    {"0100 0001 10mm mddd", "sbcs {Rd}, {Rm}", kBase, alu<Sbc, kRegister, true>, sameOperand, alu<Sbc, kRegister, false>},
    {"0100 0001 11mm mddd", "rors {Rd}, {Rm}", kBase, shiftRegister<kRor, true>, sameOperand, shiftRegister<kRor, false>},
    {"0100 0010 00mm mnnn", "tst {Rn}, {Rm}", kBase, alu<Tst, kRegister, true>},
    {"0100 0010 01nn nddd", "rsbs {Rd}, {Rn}, #0", kBase, alu<Rsb, kImmediate, true>, negate, alu<Rsb, kImmediate, false>},
    {"0100 0010 10mm mnnn", "cmp {Rn}, {Rm}", kBase, alu<Cmp, kRegister, true>},
    {"0100 0010 11mm mnnn", "cmn {Rn}, {Rm}", kBase, alu<Cmn, kRegister, true>},
    {"0100 0011 00mm mddd", "orrs {Rd}, {Rm}", kBase, alu<Orr, kRegister, true>, sameOperand, alu<Orr, kRegister, false>},
    {"0100 0011 01nn nddd", "muls {Rd}, {Rn}", kBase, muls, nullptr, mul},
    {"0100 0011 10mm mddd", "bics {Rd}, {Rm}", kBase, alu<Bic, kRegister, true>, sameOperand, alu<Bic, kRegister, false>},
    {"0100 0011 11mm mddd", "mvns {Rd}, {Rm}", kBase, alu<Mvn, kRegister, true>, nullptr, alu<Mvn, kRegister, false>},
    {"0100 0100 dmmm mddd", "add {Rd}, {Rm}", kBase, alu<Add, kRegister, false>, addHigh},
    {"0100 0101 dmmm mddd", "cmp {Rd}, {Rm}", kBase, alu<Cmp, kRegister, true>, compareHigh},
    {"0100 0110 dmmm mddd", "mov {Rd}, {Rm}", kBase, alu<Mov, kRegister, false>, moveHigh},

    {"0100 1ddd iiii iiii", "ldr {Rd}, {label}", kBase, loadLiteral<uint32_t>, literal},
    {"0101 000m mmnn nddd", "str {Rd}, [{Rn}, {Rm}]", kBase, storeRegister<uint32_t>, registerOffset},
    {"0101 001m mmnn nddd", "strh {Rd}, [{Rn}, {Rm}]", kBase, storeRegister<uint16_t>, registerOffset},
    {"0101 010m mmnn nddd", "strb {Rd}, [{Rn}, {Rm}]", kBase, storeRegister<uint8_t>, registerOffset},
    {"0101 011m mmnn nddd", "ldrsb {Rd}, [{Rn}, {Rm}]", kBase, loadRegister<int8_t>, registerOffset},
    {"0101 100m mmnn nddd", "ldr {Rd}, [{Rn}, {Rm}]", kBase, loadRegister<uint32_t>, registerOffset},
    {"0101 101m mmnn nddd", "ldrh {Rd}, [{Rn}, {Rm}]", kBase, loadRegister<uint16_t>, registerOffset},
    {"0101 110m mmnn nddd", "ldrb {Rd}, [{Rn}, {Rm}]", kBase, loadRegister<uint8_t>, registerOffset},
    {"0101 111m mmnn nddd", "ldrsh {Rd}, [{Rn}, {Rm}]", kBase, loadRegister<int16_t>, registerOffset},
    {"0110 0iii iinn nddd", "str {Rd}, [{Rn}, {#i}]", kBase, storeOffset<uint32_t>, scaled<4>},
    {"0110 1iii iinn nddd", "ldr {Rd}, [{Rn}, {#i}]", kBase, loadOffset<uint32_t>, scaled<4>},
    {"0111 0iii iinn nddd", "strb {Rd}, [{Rn}, {#i}]", kBase, storeOffset<uint8_t>},
    {"0111 1iii iinn nddd", "ldrb {Rd}, [{Rn}, {#i}]", kBase, loadOffset<uint8_t>},
    {"1000 0iii iinn nddd", "strh {Rd}, [{Rn}, {#i}]", kBase, storeOffset<uint16_t>, scaled<2>},
    {"1000 1iii iinn nddd", "ldrh {Rd}, [{Rn}, {#i}]", kBase, loadOffset<uint16_t>, scaled<2>},
    {"1001 0ddd iiii iiii", "str {Rd}, [sp, {#i}]", kBase, storeOffset<uint32_t>, spRelative},
    {"1001 1ddd iiii iiii", "ldr {Rd}, [sp, {#i}]", kBase, loadOffset<uint32_t>, spRelative},
    {"1010 0ddd iiii iiii", "adr {Rd}, {label}", kBase, alu<Mov, kImmediate, false>, addressOfLabel},
    {"1010 1ddd iiii iiii", "add {Rd}, sp, {#i}", kBase, alu<Add, kImmediate, false>, addToSp},

    {"1011 0000 0iii iiii", "add sp, {#i}", kBase, intoSp<alu<Add, kImmediate, false>>, adjustSp},
    {"1011 0000 1iii iiii", "sub sp, {#i}", kBase, intoSp<alu<Sub, kImmediate, false>>, adjustSp},
    {"1011 0010 00mm mddd", "sxth {Rd}, {Rm}", kBase, sxth},
    {"1011 0010 01mm mddd", "sxtb {Rd}, {Rm}", kBase, sxtb},
    {"1011 0010 10mm mddd", "uxth {Rd}, {Rm}", kBase, uxth},
    {"1011 0010 11mm mddd", "uxtb {Rd}, {Rm}", kBase, uxtb},
    {"1011 010x iiii iiii", "push {list}", kBase, storeMultiple<true>, push},
    {"1011 1010 00mm mddd", "rev {Rd}, {Rm}", kBase, rev},
    {"1011 1010 01mm mddd", "rev16 {Rd}, {Rm}", kBase, rev16},
    {"1011 1010 11mm mddd", "revsh {Rd}, {Rm}", kBase, revsh},
    {"1011 110x iiii iiii", "pop {list}", kBase, loadMultiple<true, false>, pop},
    {"1100 0nnn iiii iiii", "stmia {Rn}!, {list}", kBase, storeMultipleUp<true>, storeList},
    {"1100 1nnn iiii iiii", "ldmia {Rn}, {list}", kBase, loadMultiple<true, false>, loadList},
    // clang-format on
};

}  // namespace

std::span<const Encoding> thumb16Encodings() {
  return kThumb16Rows;
}

}  // namespace carina::cpu_m
