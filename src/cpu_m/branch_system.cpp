// SPDX-License-Identifier: Apache-2.0
// Branches, low-overhead loops, IT, hints, barriers, special registers.
#include <array>
#include <utility>

#include "cpu_m/core.hpp"

namespace carina::cpu_m {
namespace {

/// The implemented bits of a priority (three, as in the CMSIS headers of these cores).
constexpr uint32_t kPriorityBits = 0xe0;

// --- branches

const Op* jump(Core& core, const Op* op) {
  return core.follow(op);
}
template <uint32_t Condition>
const Op* jumpIf(Core& core, const Op* op) {
  return conditionHolds(core.state, Condition) ? core.follow(op) : op + 1;
}
template <size_t... Conditions>
constexpr std::array<Run, sizeof...(Conditions)> jumpTable(std::index_sequence<Conditions...>) {
  return {&jumpIf<Conditions>...};
}
constexpr auto kJumpIf = jumpTable(std::make_index_sequence<14>());

const Op* call(Core& core, const Op* op) {
  core.state.r[kLr] = (op->address + 4) | 1;
  return core.follow(op);
}
const Op* jumpRegister(Core& core, const Op* op) {
  core.at(op);
  return core.interwork(op, core.state.r[op->m]);
}
const Op* callRegister(Core& core, const Op* op) {
  core.at(op);
  const uint32_t target = core.state.r[op->m];
  core.state.r[kLr] = (op->address + 2) | 1;
  return core.callTo(target);
}
template <bool IfZero>
const Op* compareJump(Core& core, const Op* op) {
  return (core.state.r[op->n] == 0) == IfZero ? core.follow(op) : op + 1;
}

Decoded branch(Op& op, DecodeContext& context, int32_t offset) {
  op.imm = op.address + 4 + static_cast<uint32_t>(offset);
  context.branches = true;
  return Decoded::Ok;
}
Decoded prepareConditional16(Op& op, DecodeContext& context) {
  if (op.x >= kJumpIf.size()) return Decoded::Undefined;
  if (context.inIt) return Decoded::Unpredictable;
  op.run = kJumpIf[op.x];
  return branch(op, context, signExtend(op.imm << 1, 9));
}
Decoded prepareBranch16(Op& op, DecodeContext& context) {
  return branch(op, context, signExtend(op.imm << 1, 12));
}
Decoded prepareCompareBranch(Op& op, DecodeContext& context) {
  if (context.inIt) return Decoded::Unpredictable;
  return branch(op, context, static_cast<int32_t>(op.imm << 1));
}
/// S:J2:J1:imm6:imm11.
Decoded prepareConditional32(Op& op, DecodeContext& context) {
  const uint32_t code = op.code;
  const uint32_t offset = bits(code, 26, 1) << 20 | bits(code, 11, 1) << 19 | bits(code, 13, 1) << 18 |
                          bits(code, 16, 6) << 12 | bits(code, 0, 11) << 1;
  if (op.x >= kJumpIf.size()) return Decoded::Undefined;
  if (context.inIt) return Decoded::Unpredictable;
  op.run = kJumpIf[op.x];
  return branch(op, context, signExtend(offset, 21));
}
/// S:I1:I2:imm10:imm11, where I = NOT(J XOR S).
Decoded prepareBranch32(Op& op, DecodeContext& context) {
  const uint32_t code = op.code, s = bits(code, 26, 1);
  const uint32_t i1 = 1 ^ bits(code, 13, 1) ^ s, i2 = 1 ^ bits(code, 11, 1) ^ s;
  const uint32_t offset = s << 24 | i1 << 23 | i2 << 22 | bits(code, 16, 10) << 12 | bits(code, 0, 11) << 1;
  return branch(op, context, signExtend(offset, 25));
}
Decoded prepareRegisterBranch(Op& op, DecodeContext& context) {
  context.branches = true;
  context.targetMustBeLandingPad = op.m != kLr || (op.code & 0x80) != 0;  // BX LR returns
  return isBad(op.m) ? Decoded::Unpredictable : Decoded::Ok;
}

// --- low-overhead loops

const Op* doLoop(Core& core, const Op* op) {
  core.state.r[kLr] = core.state.r[op->n];
  return op + 1;
}
/// Op::x is the element size: 0 bytes .. 3 doublewords.
const Op* doLoopTail(Core& core, const Op* op) {
  core.at(op);
  core.useFloatingPoint();
  core.state.r[kLr] = core.state.r[op->n];
  core.state.ltpsize = op->x;
  return op + 1;
}
const Op* whileLoop(Core& core, const Op* op) {
  const uint32_t count = core.state.r[op->n];
  if (count == 0) return core.follow(op);
  core.state.r[kLr] = count;
  return op + 1;
}
const Op* whileLoopTail(Core& core, const Op* op) {
  core.at(op);
  core.requireFloatingPoint();
  const uint32_t count = core.state.r[op->n];
  if (count == 0) return core.follow(op);  // no context is created
  core.useFloatingPoint();
  core.state.r[kLr] = count;
  core.state.ltpsize = op->x;
  return op + 1;
}
const Op* loopEnd(Core& core, const Op* op) {
  State& s = core.state;
  if (s.ltpsize != kNoTailPredication && (s.control[s.world] & kControlFpActive) != 0) [[unlikely]] {
    core.at(op);
    throw Trap{StopReason::InvalidState, op->address};
  }
  if (s.r[kLr] <= 1) return op + 1;
  --s.r[kLr];
  return core.follow(op);
}
const Op* loopEndTail(Core& core, const Op* op) {
  core.at(op);
  core.useFloatingPoint();
  State& s = core.state;
  const uint32_t elements = 16u >> s.ltpsize;
  if (s.r[kLr] <= elements) {
    s.ltpsize = kNoTailPredication;
    return op + 1;
  }
  s.r[kLr] -= elements;
  return core.follow(op);
}
const Op* clearTail(Core& core, const Op* op) {
  State& s = core.state;
  if (s.ltpsize == kNoTailPredication) return op + 1;
  core.at(op);
  core.useFloatingPoint();
  s.ltpsize = kNoTailPredication;
  return op + 1;
}

/// Offset bit 1 is bit 11, offset bits 11:2 are bits 10:1.
uint32_t loopOffset(uint32_t code) {
  return bits(code, 11, 1) << 1 | bits(code, 1, 10) << 2;
}
Decoded prepareLoopStart(Op& op, DecodeContext& context) {
  return isBad(op.n) || context.inIt ? Decoded::Unpredictable : Decoded::Ok;
}
Decoded prepareWhileLoop(Op& op, DecodeContext& context) {
  if (isBad(op.n) || context.inIt) return Decoded::Unpredictable;
  return branch(op, context, static_cast<int32_t>(loopOffset(op.code)));
}
Decoded prepareLoopEnd(Op& op, DecodeContext& context) {
  if (context.inIt) return Decoded::Unpredictable;
  return branch(op, context, -static_cast<int32_t>(loopOffset(op.code)));
}
Decoded outsideIt(Op&, DecodeContext& context) {
  return context.inIt ? Decoded::Unpredictable : Decoded::Ok;
}

/// Offset 0 encodes other instructions.
Decoded branchFuture(Op& op, DecodeContext& context) {
  if (bits(op.code, 23, 4) == 0) return Decoded::Undefined;
  context.idle = true;
  return Decoded::Ok;
}

// --- hints, stops

Decoded idle(Op&, DecodeContext& context) {
  context.idle = true;
  return Decoded::Ok;
}
Decoded refuse(Op&, DecodeContext&) {
  return Decoded::Undefined;
}
Decoded ifThen(Op& op, DecodeContext& context) {
  const uint32_t condition = op.code >> 4 & 15, mask = op.code & 15;
  const bool always = condition == 14 && (mask & (mask - 1)) != 0;
  if (condition == 15 || always) return Decoded::Unpredictable;
  context.startsIt = static_cast<uint8_t>(op.code);
  return Decoded::Ok;
}
template <StopReason Reason>
const Op* stopHere(Core& core, const Op* op) {
  return core.stop(op, Reason, op->imm);
}
const Op* sendEvent(Core& core, const Op* op) {
  core.sendEvent();
  return op + 1;
}
const Op* breakpoint(Core& core, const Op* op) {
  core.at(op);
  throw Trap{StopReason::Breakpoint, op->address, op->imm};
}
Decoded endsBlock(Op&, DecodeContext& context) {
  context.branches = true;
  return Decoded::Ok;
}
Decoded always(Op&, DecodeContext& context) {
  context.branches = context.unconditional = true;
  return Decoded::Ok;
}
/// ISB: changed code takes effect after it. DSB and DMB have no effect: memory is always consistent here.
Decoded barrier(Op&, DecodeContext& context) {
  context.idle = context.endsBlock = true;
  return Decoded::Ok;
}
const Op* clearExclusive(Core& core, const Op* op) {
  core.clearExclusiveMonitor();
  return op + 1;
}

// --- Security state transitions

/// BXNS: a target with bit 0 clear changes to Non-secure state.
const Op* jumpNonSecure(Core& core, const Op* op) {
  core.at(op);
  const uint32_t target = core.state.r[op->m];
  if (core.state.world != kSecure) throw Trap{StopReason::Undefined, op->address, op->code};
  if ((target & 1) != 0) return core.interwork(op, target);
  core.state.control[kSecure] &= ~kControlSecureFpActive;
  core.enterWorld(kNonSecure);
  return core.branchTo(target & ~1u);
}
/// BLXNS: pushes the return address and the state to restore to the Secure stack.
const Op* callNonSecure(Core& core, const Op* op) {
  core.at(op);
  State& s = core.state;
  const uint32_t target = s.r[op->m];
  if (s.world != kSecure) throw Trap{StopReason::Undefined, op->address, op->code};
  if ((target & 1) != 0) return callRegister(core, op);
  constexpr uint32_t kFunctionReturn = 0xfeffffff;
  const uint32_t stack = s.r[kSp] - 8;
  core.checkStack(stack);
  const uint32_t fpActive = (s.control[kSecure] & kControlSecureFpActive) != 0 ? 1u << 20 : 0;
  core.memory.storeAligned<uint32_t>(stack, (op->address + 2) | 1);
  core.memory.storeAligned<uint32_t>(stack + 4, s.exception | fpActive);
  s.r[kSp] = stack;
  s.r[kLr] = kFunctionReturn;
  s.control[kSecure] &= ~kControlSecureFpActive;
  core.enterWorld(kNonSecure);
  if (s.exception != 0) s.exception = 1;
  return core.branchTo(target & ~1u);
}

/// TT: permissions at an address for code of this world (with Op::x, Non-secure) and privilege (with Op::y,
/// unprivileged).
void testTarget(Core& core, const Op& op) {
  State& s = core.state;
  const bool alternate = op.x != 0;
  if (alternate && s.world != kSecure) throw Trap{StopReason::Undefined, op.address, op.code};
  const World world = alternate ? kNonSecure : s.world;
  const uint32_t address = s.r[op.n];
  const bool unprivilegedThread = (s.control[world] & kControlUnprivileged) != 0 && !s.handlerMode();
  const bool privileged = op.y == 0 && !unprivilegedThread;
  const Mpu& mpu = core.mpu(world);
  const Permission allowed = mpu.permission(address, privileged, false);
  uint32_t result = (allowed.read ? 1u << 18 : 0) | (allowed.write ? 1u << 19 : 0);
  if (const auto region = mpu.regionOf(address); mpu.enabled() && region) result |= 1u << 16 | *region;
  if (s.world == kSecure && core.has(kSecurity)) {
    const Sau::Attribution at = core.sau().attribution(address);
    // Addresses without attribution belong to the world queried, and to no IDAU region.
    const bool nonSecure = at.exempt ? alternate : !at.secure;
    if (nonSecure) result |= (allowed.read ? 1u << 20 : 0) | (allowed.write ? 1u << 21 : 0);
    if (!nonSecure) result |= 1u << 22;
    if (at.region && (core.sau().control & Sau::kEnable) != 0) result |= 1u << 17 | uint32_t{*at.region} << 8;
    if (!at.exempt) result |= 1u << 23 | (address >> 28) << 24;  // IDAU region
  }
  s.r[op.d] = result;
}
Decoded prepareTestTarget(Op& op, DecodeContext&) {
  return isBad(op.d) || op.n == kPc ? Decoded::Unpredictable : Decoded::Ok;
}

// --- special registers

enum Special : uint8_t {
  kLastPsr = 7,
  kMsp = 8,
  kPsp = 9,
  kMspLimit = 10,
  kPspLimit = 11,
  kPrimask = 16,
  kBasepri = 17,
  kBasepriMax = 18,
  kFaultmask = 19,
  kControl = 20,
  kFirstKey = 32,  // PAC_KEY_P_0 to _3, PAC_KEY_U_0 to _3
  kLastKey = 39,
};

/// Bit that selects a Non-secure register, for Secure code only.
constexpr uint8_t kOfNonSecure = 0x80, kActiveSp = 24;

uint32_t readBanked(const State& s, uint8_t number, World world) {
  switch (number) {
    case kMsp:
    case kPsp:
      return s.stackPointer(world, number - kMsp);
    case kMspLimit:
    case kPspLimit:
      return s.stackLimit[world][number - kMspLimit];
    case kPrimask:
      return s.primask[world];
    case kBasepri:
    case kBasepriMax:
      return s.basepri[world];
    case kFaultmask:
      return s.faultmask[world];
    case kControl:
      return s.control[world] & (world == kSecure ? ~0u : ~kControlSecureFpActive);
    default:
      return 0;
  }
}

/// The stack pointer that Non-secure code uses in this mode.
uint32_t nonSecureStack(const State& s) {
  return !s.handlerMode() && (s.control[kNonSecure] & kControlProcessStack) != 0 ? 1 : 0;
}

uint32_t readSpecial(const State& s, uint8_t number) {
  if (number <= kLastPsr) {
    uint32_t value = (number & 4) == 0 ? s.apsr() : 0;
    if ((number & 1) != 0) value |= s.exception;
    return value;
  }
  if (number == kControl) return readBanked(s, number, s.world);
  const bool ofNonSecure = (number & kOfNonSecure) != 0;
  if (number == (kOfNonSecure | kControl) && s.world == kSecure) return readBanked(s, kControl, kNonSecure);
  if (!s.privileged()) return 0;
  if (!ofNonSecure) return readBanked(s, number, s.world);
  if (s.world != kSecure) return 0;
  if (number == (kOfNonSecure | kActiveSp)) return s.stackPointer(kNonSecure, nonSecureStack(s));
  return readBanked(s, number & ~kOfNonSecure, kNonSecure);
}

void writeControl(Core& core, World world, uint32_t value) {
  State& s = core.state;
  s.putStack();
  constexpr uint32_t kChecks = 15 * kControlLandings;
  const uint32_t kBanked = kControlUnprivileged | kControlProcessStack | (core.has(kPacBti) ? kChecks : 0);
  // How branches behave is determined when they are decoded.
  if (((s.control[world] ^ value) & kBanked & kChecks) != 0) core.codeChanged();
  s.control[world] = (s.control[world] & ~kBanked) | (value & kBanked);
  // FPCA is shared by both worlds, and read-only in CONTROL_NS unless NSACR grants that world the unit.
  if (core.has(kFloat) && (world == kSecure || core.nonSecureFloatingPoint())) {
    for (uint32_t& control : s.control) control = (control & ~kControlFpActive) | (value & kControlFpActive);
  }
  if (world == kSecure && core.has(kFloat) && core.has(kSecurity))
    s.control[kSecure] = (s.control[kSecure] & ~kControlSecureFpActive) | (value & kControlSecureFpActive);
  s.takeStack();
  core.floatingPointChanged();
  core.contextChanged();
}

void writeBanked(Core& core, uint8_t number, World world, uint32_t value) {
  State& s = core.state;
  switch (number) {
    case kMsp:
    case kPsp:
      s.setStackPointer(world, number - kMsp, value & ~3u);
      break;
    case kMspLimit:
    case kPspLimit:
      s.stackLimit[world][number - kMspLimit] = value & ~7u;
      break;
    case kPrimask:
      s.primask[world] = value & 1;
      core.masksChanged();
      break;
    case kBasepri:
      s.basepri[world] = value & kPriorityBits;
      core.masksChanged();
      break;
    case kBasepriMax:
      value &= kPriorityBits;
      if (value != 0 && (s.basepri[world] == 0 || value < s.basepri[world])) s.basepri[world] = value;
      core.masksChanged();
      break;
    case kFaultmask:
      s.faultmask[world] = value & 1;
      core.masksChanged();
      break;
    case kControl:
      writeControl(core, world, value);
      break;
    default:
      break;
  }
}

void writeSpecial(Core& core, uint8_t number, uint8_t mask, uint32_t value) {
  State& s = core.state;
  if (number <= 3) {
    if ((mask & 2) != 0) {
      s.setNzcv(value);
      s.q = value >> 27 & 1;
    }
    if ((mask & 1) != 0 && core.has(kDsp)) s.ge = value >> 16 & 15;
    return;
  }
  if (!s.privileged()) {
    // SFPA is also writable by unprivileged Secure code.
    if (number == kControl && s.world == kSecure && core.has(kFloat) && core.has(kSecurity))
      s.control[kSecure] = (s.control[kSecure] & ~kControlSecureFpActive) | (value & kControlSecureFpActive);
    core.floatingPointChanged();
    return;
  }
  if ((number & kOfNonSecure) == 0) {
    writeBanked(core, number, s.world, value);
  } else if (s.world == kSecure) {
    if (number == (kOfNonSecure | kActiveSp)) {
      s.setStackPointer(kNonSecure, nonSecureStack(s), value & ~3u);
    } else {
      writeBanked(core, number & ~kOfNonSecure, kNonSecure, value);
    }
  }
}

/// A word of an authentication key. Only privileged code can access keys, and Secure code those of both
/// worlds.
uint32_t* keyWord(Core& core, uint8_t number) {
  const State& s = core.state;
  const bool ofNonSecure = (number & kOfNonSecure) != 0;
  if (!s.privileged() || (ofNonSecure && s.world != kSecure)) return nullptr;
  const uint32_t index = (number & ~kOfNonSecure) - uint32_t{kFirstKey};
  return &core.pacKeys[ofNonSecure ? kNonSecure : s.world][index / 4][index % 4];
}
bool isKey(uint8_t number) {
  number &= static_cast<uint8_t>(~kOfNonSecure);
  return number >= kFirstKey && number <= kLastKey;
}

void mrs(Core& core, const Op& op) {
  if (isKey(op.x)) {
    const uint32_t* word = keyWord(core, op.x);
    core.state.r[op.d] = word == nullptr ? 0 : *word;
    return;
  }
  core.state.r[op.d] = readSpecial(core.state, op.x);
}
void msr(Core& core, const Op& op) {
  if (isKey(op.x)) {
    if (uint32_t* word = keyWord(core, op.x); word != nullptr) *word = core.state.r[op.n];
    return;
  }
  writeSpecial(core, op.x, op.y, core.state.r[op.n]);
}
bool isSpecial(uint8_t number, uint32_t features) {
  if (number <= kLastPsr) return number != 4;
  if (isKey(number))
    return (features & kPacBti) != 0 && ((number & kOfNonSecure) == 0 || (features & kSecurity) != 0);
  const bool ofNonSecure = (number & kOfNonSecure) != 0;
  if (ofNonSecure && (features & kSecurity) == 0) return false;
  if (ofNonSecure && number == (kOfNonSecure | kActiveSp)) return true;
  number &= static_cast<uint8_t>(~kOfNonSecure);
  return (number >= kMsp && number <= kPspLimit) || (number >= kPrimask && number <= kControl);
}
Decoded prepareMrs(Op& op, DecodeContext& context) {
  return isBad(op.d) || !isSpecial(op.x, context.features) ? Decoded::Unpredictable : Decoded::Ok;
}
Decoded prepareMsr(Op& op, DecodeContext& context) {
  const bool flags = op.x <= 3;
  const bool badMask =
      op.y == 0 || (!flags && op.y != 2) || ((op.y & 1) != 0 && (context.features & kDsp) == 0);
  if (isBad(op.n) || !isSpecial(op.x, context.features) || badMask) return Decoded::Unpredictable;
  context.endsBlock = !flags;
  return Decoded::Ok;
}
/// CPS: Op::x 1 disables; Op::y 2 PRIMASK, 1 FAULTMASK.
void changeMasks(Core& core, const Op& op) {
  State& s = core.state;
  if (!s.privileged()) return;
  if ((op.y & 2) != 0) s.primask[s.world] = op.x;
  if ((op.y & 1) != 0) s.faultmask[s.world] = op.x;
  core.masksChanged();
}
Decoded prepareChangeMasks(Op& op, DecodeContext& context) {
  context.endsBlock = true;
  return op.y == 0 || context.inIt ? Decoded::Unpredictable : Decoded::Ok;
}

const Encoding kBranchAndSystemRows[] = {
    // clang-format off
    {"1101 1110 iiii iiii", "udf {#i}", kBase, nullptr, refuse},
    {"1101 1111 iiii iiii", "svc {#i}", kBase, stopHere<StopReason::SupervisorCall>, endsBlock},
    {"1101 xxxx iiii iiii", "b{c} {label}", kBase, nullptr, prepareConditional16},
    {"1110 0iii iiii iiii", "b {label}", kBase, jump, prepareBranch16},
    {"1011 00i1 iiii innn", "cbz {Rn}, {label}", kBase, compareJump<true>, prepareCompareBranch},
    {"1011 10i1 iiii innn", "cbnz {Rn}, {label}", kBase, compareJump<false>, prepareCompareBranch},
    {"0100 0111 0mmm m000", "bx {Rm}", kBase, jumpRegister, prepareRegisterBranch},
    {"0100 0111 1mmm m000", "blx {Rm}", kBase, callRegister, prepareRegisterBranch},
    {"0100 0111 0mmm m100", "bxns {Rm}", kSecurity, jumpNonSecure, prepareRegisterBranch},
    {"0100 0111 1mmm m100", "blxns {Rm}", kSecurity, callNonSecure, prepareRegisterBranch},
    {"1011 1111 0001 0000", "yield", kBase, nullptr, idle},
    {"1011 1111 0010 0000", "wfe", kBase, stopHere<StopReason::WaitForEvent>, endsBlock},
    {"1011 1111 0011 0000", "wfi", kBase, stopHere<StopReason::WaitForInterrupt>, endsBlock},
    {"1011 1111 0100 0000", "sev", kBase, sendEvent},
    {"1011 1111 ---- 0000", "nop", kBase, nullptr, idle},
    {"1011 1111 xxxx yyyy", "it {x} {y}", kBase, nullptr, ifThen},
    {"1011 0110 011x 00yy", "cps {x}, {y}", kBase, straight<changeMasks>, prepareChangeMasks},
    {"1011 1110 iiii iiii", "bkpt {#i}", kBase, breakpoint, always},

    {"1111 0111 1111 ---- 1010 ---- ---- ----", "udf.w", kBase, nullptr, refuse},
    {"1111 0011 1010 1111 1000 0000 0000 0010", "wfe.w", kBase, stopHere<StopReason::WaitForEvent>, endsBlock},
    {"1111 0011 1010 1111 1000 0000 0000 0011", "wfi.w", kBase, stopHere<StopReason::WaitForInterrupt>, endsBlock},
    {"1111 0011 1010 1111 1000 0000 0000 0100", "sev.w", kBase, sendEvent},
    {"1111 0011 1010 1111 1000 0000 ---- ----", "hint.w", kBase, nullptr, idle},
    {"1111 0011 1011 1111 1000 1111 0010 1111", "clrex", kBase, clearExclusive},
    {"1111 0011 1011 1111 1000 1111 0100 ----", "dsb", kBase, nullptr, idle},
    {"1111 0011 1011 1111 1000 1111 0101 ----", "dmb", kBase, nullptr, idle},
    {"1111 0011 1011 1111 1000 1111 0110 ----", "isb", kBase, nullptr, barrier},
    {"1111 0011 1000 nnnn 1000 yy00 xxxx xxxx", "msr {x}, {Rn}", kBase, straight<msr>, prepareMsr},
    {"1111 0011 1110 1111 1000 dddd xxxx xxxx", "mrs {Rd}, {x}", kBase, straight<mrs>, prepareMrs},
    {"1110 1000 0100 nnnn 1111 dddd xy00 0000", "tt {Rd}, {Rn}, a {x} t {y}", kBase, straight<testTarget>, prepareTestTarget},
    // When Non-secure code enters it, a gateway is handled separately (Core::isGateway); otherwise it does
    // nothing.
    {"1110 1001 0111 1111 1110 1001 0111 1111", "sg", kSecurity, nullptr, idle},

    {"1111 0000 0000 1111 1110 0000 0000 0001", "lctp", kV81 | kMve, clearTail, outsideIt},
    {"1111 0000 0100 nnnn 1110 0000 0000 0001", "dls lr, {Rn}", kV81, doLoop, prepareLoopStart},
    {"1111 0000 00xx nnnn 1110 0000 0000 0001", "dlstp lr, {Rn}", kV81 | kMve, doLoopTail, prepareLoopStart},
    {"1111 0000 0000 1111 1100 ---- ---- ---1", "le lr, {label}", kV81, loopEnd, prepareLoopEnd},
    {"1111 0000 0010 1111 1100 ---- ---- ---1", "le {label}", kV81, jump, prepareLoopEnd},
    {"1111 0000 0001 1111 1100 ---- ---- ---1", "letp lr, {label}", kV81 | kMve, loopEndTail, prepareLoopEnd},
    {"1111 0000 0100 nnnn 1100 ---- ---- ---1", "wls lr, {Rn}, {label}", kV81, whileLoop, prepareWhileLoop},
    {"1111 0000 00xx nnnn 1100 ---- ---- ---1", "wlstp lr, {Rn}, {label}", kV81 | kMve, whileLoopTail, prepareWhileLoop},
    // Branch future: hints.
    {"1111 0--- -10- ---- 1110 ---- ---- ---1", "bf", kV81, nullptr, branchFuture},
    {"1111 0--- -0-- ---- 1110 ---- ---- ---1", "bfcsel", kV81, nullptr, branchFuture},
    {"1111 0--- -11- nnnn 1110 0000 0000 0001", "bfx", kV81, nullptr, branchFuture},
    {"1111 0--- ---- ---- 1100 ---- ---- ---1", "bfl", kV81, nullptr, branchFuture},

    {"1111 0-xx xx-- ---- 10-0 ---- ---- ----", "b{c}.w {label}", kBase, nullptr, prepareConditional32},
    {"1111 0--- ---- ---- 10-1 ---- ---- ----", "b.w {label}", kBase, jump, prepareBranch32},
    {"1111 0--- ---- ---- 11-1 ---- ---- ----", "bl {label}", kBase, call, prepareBranch32},
    // clang-format on
};

}  // namespace

std::span<const Encoding> branchSystemEncodings() {
  return kBranchAndSystemRows;
}

}  // namespace carina::cpu_m
