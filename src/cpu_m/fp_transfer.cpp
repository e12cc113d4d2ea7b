// SPDX-License-Identifier: Apache-2.0
// Loads, stores and moves of floating-point registers, and of FPSCR, VPR and P0.
#include "cpu_m/fp_registers.hpp"
#include "cpu_m/mve.hpp"

namespace carina::cpu_m {
namespace fp {
namespace {

// --- one register

template <class T>
void loadRegister(Core& core, const Op& op) {
  core.useFloatingPoint();
  State& s = core.state;
  const uint32_t base = op.n == kPc ? s.r[kPc] & ~3u : s.r[op.n];
  const uint32_t address = base + op.imm;
  if constexpr (sizeof(T) == 8) {
    const uint64_t low = core.memory.loadAligned<uint32_t>(address);
    write<T>(s, op.d, uint64_t{core.memory.loadAligned<uint32_t>(address + 4)} << 32 | low);
  } else {
    write<T>(s, op.d, core.memory.loadAligned<T>(address));
  }
}
template <class T>
void storeRegister(Core& core, const Op& op) {
  core.useFloatingPoint();
  State& s = core.state;
  const uint32_t address = s.r[op.n] + op.imm;
  const T value = read<T>(s, op.d);
  if constexpr (sizeof(T) == 8) {
    core.memory.storeAligned<uint32_t>(address, static_cast<uint32_t>(value));
    core.memory.storeAligned<uint32_t>(address + 4, static_cast<uint32_t>(value >> 32));
  } else {
    core.memory.storeAligned<T>(address, value);
  }
}

/// Op::imm in units of Scale bytes; field y: 1 adds it, 0 subtracts it.
template <uint32_t Scale, bool Single, bool Load>
Decoded offset(Op& op, DecodeContext& context) {
  op.imm *= Scale;
  if (op.y == 0) op.imm = 0u - op.imm;
  context.readsPc = op.n == kPc;
  if (!Load && op.n == kPc) return Decoded::Unpredictable;
  return Single ? singles(op, context) : Decoded::Ok;
}

// --- several registers

/// Op::a words from single register Op::d on, at r[n] or below it (Op::x); Op::w writes back.
template <bool Load>
void multiple(Core& core, const Op& op) {
  core.useFloatingPoint();
  State& s = core.state;
  const uint32_t base = s.r[op.n], below = base - op.imm;
  const uint32_t moved = op.x != 0 ? below : base + op.imm;
  if (op.w != 0 && op.n == kSp) core.checkStack(moved);
  uint32_t address = op.x != 0 ? below : base;
  if constexpr (Load) {
    uint32_t words[32];
    for (uint32_t i = 0; i < op.a; ++i, address += 4) words[i] = core.memory.loadAligned<uint32_t>(address);
    for (uint32_t i = 0; i < op.a; ++i) s.setElement<uint32_t>(op.d + i, words[i]);
  } else {
    for (uint32_t i = 0; i < op.a; ++i, address += 4) {
      core.memory.storeAligned<uint32_t>(address, s.element<uint32_t>(op.d + i));
    }
  }
  if (op.w != 0) s.r[op.n] = moved;
}

/// Op::imm words (odd for doubles: FSTMX and FLDMX, which skip a word).
template <bool Double>
Decoded registerList(Op& op, DecodeContext&) {
  op.d = Double ? static_cast<uint8_t>(2 * op.d) : single(op.d);
  const uint32_t words = Double ? op.imm & ~1u : op.imm;
  if (words == 0 || op.d + words > 32 || op.n == kPc) return Decoded::Unpredictable;
  op.a = static_cast<uint8_t>(words);
  op.imm *= 4;
  return Decoded::Ok;
}
template <bool Double>
Decoded descending(Op& op, DecodeContext& context) {
  op.x = 1;
  op.w = 1;
  return registerList<Double>(op, context);
}

/// VSCCLRM: clears Op::a words from Op::d on, and VPR, unless there is no Secure context.
void clearRegisters(Core& core, const Op& op) {
  const bool active = (core.state.control[kSecure] & kControlSecureFpActive) != 0;
  if (core.has(kSecurity) && core.fp.has(fpccr::kAutomatic) && !active) return;
  core.useFloatingPoint();
  std::memset(core.state.vector + 4 * op.d, 0, 4u * op.a);
  core.state.vpr = 0;
}
template <bool Double>
Decoded cleared(Op& op, DecodeContext&) {
  op.d = Double ? static_cast<uint8_t>(2 * op.d) : single(op.d);
  if (Double) op.imm *= 2;
  if (op.imm == 0 || op.d + op.imm > 32) return Decoded::Unpredictable;
  op.a = static_cast<uint8_t>(op.imm);
  return Decoded::Ok;
}

// --- core registers

template <class T>
void toCore(Core& core, const Op& op) {
  core.useFloatingPoint();
  core.state.r[op.d] = read<T>(core.state, op.n);
}
template <class T>
void fromCore(Core& core, const Op& op) {
  core.useFloatingPoint();
  write<T>(core.state, op.n, static_cast<T>(core.state.r[op.d]));
}
Decoded coreRegister(Op& op, DecodeContext&) {
  return op.d == kSp || op.d == kPc ? Decoded::Unpredictable : Decoded::Ok;
}

/// Moves two words between the single registers from Op::m on and r[d], r[a].
void pairToCore(Core& core, const Op& op) {
  core.useFloatingPoint();
  State& s = core.state;
  s.r[op.d] = s.element<uint32_t>(op.m);
  s.r[op.a] = s.element<uint32_t>(op.m + 1u);
}
void pairFromCore(Core& core, const Op& op) {
  core.useFloatingPoint();
  State& s = core.state;
  s.setElement<uint32_t>(op.m, s.r[op.d]);
  s.setElement<uint32_t>(op.m + 1u, s.r[op.a]);
}
template <bool Double, bool ToCore>
Decoded corePair(Op& op, DecodeContext&) {
  const auto bad = [](uint8_t r) { return r == kSp || r == kPc; };
  op.x = Double ? op.m : static_cast<uint8_t>(single(op.m) + 1);  // for the disassembly
  op.m = Double ? static_cast<uint8_t>(2 * op.m) : single(op.m);
  if (bad(op.d) || bad(op.a) || op.m == 31 || (ToCore && op.d == op.a)) return Decoded::Unpredictable;
  return Decoded::Ok;
}

/// Whether a resumed instruction has already processed this lane.
template <class T>
bool laneIsDone(const State& s, const Op& op) {
  const uint32_t byte = 8 * (op.n & 1u) + op.x * static_cast<uint32_t>(sizeof(T));
  return mve::isResumed(s) && (mve::executed(s).bytes >> byte & 1) == 0;
}

/// One element of double register Op::n; Op::x is its index in elements of T.
template <class T>
void laneToCore(Core& core, const Op& op) {
  core.useFloatingPoint();
  if (laneIsDone<T>(core.state, op)) return;
  core.state.r[op.d] =
      static_cast<uint32_t>(core.state.element<T>(static_cast<uint32_t>(8 / sizeof(T)) * op.n + op.x));
}
template <class T>
void laneFromCore(Core& core, const Op& op) {
  core.useFloatingPoint();
  if (laneIsDone<T>(core.state, op)) return;
  core.state.setElement<T>(static_cast<uint32_t>(8 / sizeof(T)) * op.n + op.x,
                           static_cast<T>(core.state.r[op.d]));
}

// --- system registers

enum SystemRegister : uint8_t { kFpscr = 1, kNzcvqc = 2, kVpr = 12, kP0 = 13, kFpcxtNs = 14, kFpcxtS = 15 };

constexpr uint32_t kQc = 1u << 27;

uint32_t readFpscr(const Core& core) {
  return core.state.fpscrWord() & (core.fpscrBits() | (core.has(kV81) ? kFpscrLtpsize : 0));
}

uint32_t readSystem(Core& core, uint8_t number) {
  State& s = core.state;
  switch (number) {
    case kFpscr:
      return readFpscr(core);
    case kNzcvqc:
      return s.fpscr & core.fpscrBits() & (kFpscrNzcv | kQc);
    case kVpr:
      return s.privileged() ? s.vpr : 0;
    default:
      return s.vpr & 0xffff;
  }
}
void writeSystem(Core& core, uint8_t number, uint32_t value) {
  State& s = core.state;
  switch (number) {
    case kFpscr:
      core.setFpscr(value);
      break;
    case kNzcvqc: {
      const uint32_t mask = core.fpscrBits() & (kFpscrNzcv | kQc);
      s.fpscr = (s.fpscr & ~mask) | (value & mask);
      break;
    }
    case kVpr:
      if (s.privileged()) s.vpr = value & 0x00ffffff;
      break;
    default:
      s.vpr = (s.vpr & ~0xffffu) | (value & 0xffff);
      break;
  }
}

void moveFromSystem(Core& core, const Op& op) {
  core.useFloatingPoint();
  core.state.r[op.d] = readSystem(core, op.z);
}
void moveFlags(Core& core, const Op&) {
  core.useFloatingPoint();
  core.state.setNzcv(core.state.fpscr & kFpscrNzcv);
}
void moveToSystem(Core& core, const Op& op) {
  core.useFloatingPoint();
  writeSystem(core, op.z, core.state.r[op.d]);
}

/// Register Op::z; Op::x indexes before the access, Op::w writes back.
void loadSystem(Core& core, const Op& op) {
  core.useFloatingPoint();
  State& s = core.state;
  const uint32_t base = s.r[op.n], moved = base + op.imm;
  if (op.w != 0 && op.n == kSp) core.checkStack(moved);
  const uint32_t value = core.memory.loadAligned<uint32_t>(op.x != 0 ? moved : base);
  if (op.w != 0) s.r[op.n] = moved;
  writeSystem(core, op.z, value);
}
void storeSystem(Core& core, const Op& op) {
  core.useFloatingPoint();
  State& s = core.state;
  const uint32_t base = s.r[op.n], moved = base + op.imm;
  if (op.w != 0 && op.n == kSp) core.checkStack(moved);
  core.memory.storeAligned<uint32_t>(op.x != 0 ? moved : base, readSystem(core, op.z));
  if (op.w != 0) s.r[op.n] = moved;
}

template <uint8_t Number>
Decoded systemMove(Op& op, DecodeContext& context) {
  op.z = Number;
  return coreRegister(op, context);
}
template <uint8_t Number>
Decoded systemOffset(Op& op, DecodeContext&) {
  op.z = Number;
  op.imm *= 4;
  if (op.y == 0) op.imm = 0u - op.imm;
  op.x = static_cast<uint8_t>(bits(op.code, 24, 1));
  op.w = static_cast<uint8_t>(bits(op.code, 21, 1));
  return op.n == kPc ? Decoded::Unpredictable : Decoded::Ok;
}

// --- Security state transitions

void requireSecure(const Core& core, const Op& op) {
  if (core.state.world != kSecure) throw Trap{StopReason::Undefined, op.address, op.code};
}
bool secureContext(const State& s) {
  return (s.control[kSecure] & kControlSecureFpActive) != 0;
}

/// VLSTM, before a call of Non-secure code: reserves space for the Secure context, which is stored by the
/// first floating-point instruction of the other world, or immediately if FPCCR.LSPEN is 0.
void storeContext(Core& core, const Op& op) {
  requireSecure(core, op);
  State& s = core.state;
  if (!secureContext(s)) return;
  core.requireFloatingPoint();
  if (core.fp.pending(kSecure)) throw Trap{StopReason::LazyState, op.address};
  const uint32_t base = s.r[op.n];
  if ((base & 7) != 0) throw Trap{StopReason::Unaligned, base};
  if (core.fp.has(fpccr::kLazy)) {
    core.deferContext(base, false);
  } else {
    core.storeContextAt(base, kSecure);
    core.hideContext(kSecure);
  }
  for (uint32_t& control : s.control) control &= ~kControlFpActive;
  core.floatingPointChanged();
}

/// VLLDM, after the call: a context that was not stored is still in the registers.
void loadContext(Core& core, const Op& op) {
  requireSecure(core, op);
  State& s = core.state;
  if (!secureContext(s)) return;
  core.requireFloatingPoint();
  if (core.fp.pending(kSecure)) {
    core.fp.settle(kSecure);
  } else {
    const uint32_t base = s.r[op.n];
    if ((base & 7) != 0) throw Trap{StopReason::Unaligned, base};
    core.loadContextAt(base, kSecure);
  }
  for (uint32_t& control : s.control) control |= kControlFpActive;
  core.floatingPointChanged();
}
Decoded baseRegister(Op& op, DecodeContext&) {
  return op.n == kPc ? Decoded::Unpredictable : Decoded::Ok;
}

constexpr uint32_t kPayload = 0x0fffffff;  // FPSCR's bits in FPCXT; bit 31 is SFPA

/// Whether there is a context that a Non-secure caller may have left.
bool activeForOther(const Core& core) {
  return !core.fp.has(fpccr::kAutomatic, kNonSecure) || (core.state.control[kSecure] & kControlFpActive) != 0;
}

/// Stores FPCXT_NS or FPCXT_S as one word, then resets FPSCR, except if FPCXT_NS is stored with an active
/// Secure context. FPCXT_NS without an active context is FPDSCR_NS, and does not need the unit: entry
/// functions save it whether floating point is used or not.
void storeContextWord(Core& core, const Op& op) {
  requireSecure(core, op);
  State& s = core.state;
  const bool passesBy = op.z == kFpcxtNs && !activeForOther(core);
  if (!passesBy) core.requireFloatingPoint();
  const uint32_t base = s.r[op.n], moved = base + op.imm;
  if (op.w != 0 && op.n == kSp) core.checkStack(moved);
  const uint32_t address = op.x != 0 ? moved : base;
  if (passesBy) {
    core.memory.storeAligned<uint32_t>(address, core.fp.defaultFpscr(kNonSecure) & kPayload);
  } else {
    op.z == kFpcxtS ? core.useFloatingPoint() : core.storePendingContext();
    core.memory.storeAligned<uint32_t>(address,
                                       (readFpscr(core) & kPayload) | (secureContext(s) ? 1u << 31 : 0));
    if (op.z == kFpcxtS || !secureContext(s)) s.setFpscrWord(core.fp.defaultFpscr(kNonSecure));
    if (op.z == kFpcxtS) s.control[kSecure] &= ~kControlSecureFpActive;
    core.floatingPointChanged();
  }
  if (op.w != 0) s.r[op.n] = moved;
}
void loadContextWord(Core& core, const Op& op) {
  requireSecure(core, op);
  State& s = core.state;
  const bool passesBy = op.z == kFpcxtNs && !activeForOther(core);
  if (!passesBy) core.requireFloatingPoint();
  const uint32_t base = s.r[op.n], moved = base + op.imm;
  if (op.w != 0 && op.n == kSp) core.checkStack(moved);
  const uint32_t value = core.memory.loadAligned<uint32_t>(op.x != 0 ? moved : base);
  if (op.w != 0) s.r[op.n] = moved;
  if (passesBy) return;
  op.z == kFpcxtS ? core.useFloatingPoint() : core.storePendingContext();
  core.setFpscr(value & kPayload);
  s.control[kSecure] =
      (s.control[kSecure] & ~kControlSecureFpActive) | ((value >> 31) != 0 ? kControlSecureFpActive : 0);
  core.floatingPointChanged();
}

#define VLDR(size, fields, name, features, T, Scale, Single)                                          \
  {"1110 1101 y" fields "1 nnnn dddd " size " iiii iiii", "vldr" name "{d}, [{Rn}, {#i}]", features,  \
   straight<loadRegister<T>>, offset<Scale, Single, true>},                                           \
  {                                                                                                   \
    "1110 1101 y" fields "0 nnnn dddd " size " iiii iiii", "vstr" name "{d}, [{Rn}, {#i}]", features, \
        straight<storeRegister<T>>, offset<Scale, Single, false>                                      \
  }
#define MULTIPLE(l, name, Load)                                                           \
  {"1110 1100 1dw" l " nnnn dddd 1010 iiii iiii", name "ia {Rn}{!}, {slist}", kFloat,     \
   straight<multiple<Load>>, registerList<false>},                                        \
      {"1110 1100 10w" l " nnnn dddd 1011 iiii iiii", name "ia {Rn}{!}, {dlist}", kFloat, \
       straight<multiple<Load>>, registerList<true>},                                     \
      {"1110 1101 0d1" l " nnnn dddd 1010 iiii iiii", name "db {Rn}!, {slist}", kFloat,   \
       straight<multiple<Load>>, descending<false>},                                      \
  {                                                                                       \
    "1110 1101 001" l " nnnn dddd 1011 iiii iiii", name "db {Rn}!, {dlist}", kFloat,      \
        straight<multiple<Load>>, descending<true>                                        \
  }
// Offset or post-indexed; encodings with neither are scatters of doublewords. r3 is bit 22, r210 bits 15:13.
#define SYSTEM_MEMORY(load, r3, r210, value, does, name, features, run)                                   \
  {"1110 1101 y" r3 "-" load " nnnn " r210 "0 1111 1iii iiii", does " " name ", {mem}", features | kV81,  \
   run, systemOffset<value>},                                                                             \
  {                                                                                                       \
    "1110 1100 y" r3 "1" load " nnnn " r210 "0 1111 1iii iiii", does " " name ", {mem}", features | kV81, \
        run, systemOffset<value>                                                                          \
  }
#define SYSTEM(number, r3, r210, value, name, features)                                                     \
  {"1110 1110 1111 " number " dddd 1010 0001 0000", "vmrs {Rd}, " name, features, straight<moveFromSystem>, \
   systemMove<value>},                                                                                      \
      {"1110 1110 1110 " number " dddd 1010 0001 0000", "vmsr " name ", {Rd}", features,                    \
       straight<moveToSystem>, systemMove<value>},                                                          \
      SYSTEM_MEMORY("1", r3, r210, value, "vldr", name, features, straight<loadSystem>),                    \
      SYSTEM_MEMORY("0", r3, r210, value, "vstr", name, features, straight<storeSystem>)

#define CONTEXT_WORD(r210, value, name)                                                     \
  SYSTEM_MEMORY("1", "1", r210, value, "vldr", name, kSecurity, straight<loadContextWord>), \
      SYSTEM_MEMORY("0", "1", r210, value, "vstr", name, kSecurity, straight<storeContextWord>)

const Encoding kTransferRows[] = {
    {"1110 1100 0010 nnnn 0000 1010 -000 0000", "vlstm {Rn}", kSecurity, straight<storeContext>,
     baseRegister},
    {"1110 1100 0011 nnnn 0000 1010 -000 0000", "vlldm {Rn}", kSecurity, straight<loadContext>, baseRegister},
    CONTEXT_WORD("110", kFpcxtNs, "fpcxtns"),
    CONTEXT_WORD("111", kFpcxtS, "fpcxts"),
    // Before VLDM, whose base is never the program counter.
    {"1110 1100 1d01 1111 dddd 1010 iiii iiii", "vscclrm {slist}, vpr", kV81, straight<clearRegisters>,
     cleared<false>},
    {"1110 1100 1001 1111 dddd 1011 iiii iii0", "vscclrm {dlist}, vpr", kV81, straight<clearRegisters>,
     cleared<true>},
    MULTIPLE("1", "vldm", true),
    MULTIPLE("0", "vstm", false),
    VLDR("1010", "d0", " s", kFloat, uint32_t, 4, true),
    VLDR("1011", "00", " d", kFloat, uint64_t, 4, false),
    VLDR("1001", "d0", ".16 s", kHalf, uint16_t, 2, true),

    {"1110 1110 0001 nnnn dddd 1010 n001 0000", "vmov {Rd}, s{n}", kFloat, straight<toCore<uint32_t>>,
     coreRegister},
    {"1110 1110 0000 nnnn dddd 1010 n001 0000", "vmov s{n}, {Rd}", kFloat, straight<fromCore<uint32_t>>,
     coreRegister},
    {"1110 1110 0001 nnnn dddd 1001 n001 0000", "vmov.f16 {Rd}, s{n}", kHalf, straight<toCore<uint16_t>>,
     coreRegister},
    {"1110 1110 0000 nnnn dddd 1001 n001 0000", "vmov.f16 s{n}, {Rd}", kHalf, straight<fromCore<uint16_t>>,
     coreRegister},
    {"1110 1100 0101 aaaa dddd 1010 00m1 mmmm", "vmov {Rd}, {Ra}, s{m}, s{x}", kFloat, straight<pairToCore>,
     corePair<false, true>},
    {"1110 1100 0100 aaaa dddd 1010 00m1 mmmm", "vmov s{m}, s{x}, {Rd}, {Ra}", kFloat, straight<pairFromCore>,
     corePair<false, false>},
    {"1110 1100 0101 aaaa dddd 1011 0001 mmmm", "vmov {Rd}, {Ra}, d{x}", kFloat, straight<pairToCore>,
     corePair<true, true>},
    {"1110 1100 0100 aaaa dddd 1011 0001 mmmm", "vmov d{x}, {Rd}, {Ra}", kFloat, straight<pairFromCore>,
     corePair<true, false>},
    {"1110 1110 00x1 nnnn dddd 1011 0001 0000", "vmov.32 {Rd}, d{n}[{x}]", kFloat,
     straight<laneToCore<uint32_t>>, coreRegister},
    {"1110 1110 00x0 nnnn dddd 1011 0001 0000", "vmov.32 d{n}[{x}], {Rd}", kFloat,
     straight<laneFromCore<uint32_t>>, coreRegister},
    {"1110 1110 01x1 nnnn dddd 1011 0xx1 0000", "vmov.s8 {Rd}, d{n}[{x}]", kMve, straight<laneToCore<int8_t>>,
     coreRegister},
    {"1110 1110 11x1 nnnn dddd 1011 0xx1 0000", "vmov.u8 {Rd}, d{n}[{x}]", kMve,
     straight<laneToCore<uint8_t>>, coreRegister},
    {"1110 1110 01x0 nnnn dddd 1011 0xx1 0000", "vmov.8 d{n}[{x}], {Rd}", kMve,
     straight<laneFromCore<uint8_t>>, coreRegister},
    {"1110 1110 00x1 nnnn dddd 1011 0x11 0000", "vmov.s16 {Rd}, d{n}[{x}]", kMve,
     straight<laneToCore<int16_t>>, coreRegister},
    {"1110 1110 10x1 nnnn dddd 1011 0x11 0000", "vmov.u16 {Rd}, d{n}[{x}]", kMve,
     straight<laneToCore<uint16_t>>, coreRegister},
    {"1110 1110 00x0 nnnn dddd 1011 0x11 0000", "vmov.16 d{n}[{x}], {Rd}", kMve,
     straight<laneFromCore<uint16_t>>, coreRegister},

    {"1110 1110 1111 0001 1111 1010 0001 0000", "vmrs apsr_nzcv, fpscr", kFloat, straight<moveFlags>},
    SYSTEM("0001", "0", "001", kFpscr, "fpscr", kFloat),
    SYSTEM("0010", "0", "010", kNzcvqc, "fpscr_nzcvqc", kFloat | kV81),
    SYSTEM("1100", "1", "100", kVpr, "vpr", kMve),
    SYSTEM("1101", "1", "101", kP0, "p0", kMve),
};

}  // namespace
}  // namespace fp

std::span<const Encoding> floatingPointTransferEncodings() {
  return fp::kTransferRows;
}

}  // namespace carina::cpu_m
