// SPDX-License-Identifier: Apache-2.0
// Pointer authentication and branch target identification (PACBTI). On cores without it, and for code for
// which CONTROL does not enable it, the forms in the hint space are NOPs.
#include "cpu_m/core.hpp"

namespace carina::cpu_m {
namespace {

constexpr uint8_t kIp = 12;

void authenticate(Core& core, const Op& op, uint32_t code) {
  if (core.authenticates() && code != core.authenticationCode(core.state.r[op.n], core.state.r[op.m]))
    throw Trap{StopReason::InvalidCode, op.address};
}

/// PACG, PAC and PACBTI: the code of Rn with Rm.
void sign(Core& core, const Op& op) {
  State& s = core.state;
  if (core.authenticates()) s.r[op.d] = core.authenticationCode(s.r[op.n], s.r[op.m]);
}
/// AUTG and AUT: Ra must be that code.
void check(Core& core, const Op& op) {
  authenticate(core, op, core.state.r[op.a]);
}
/// BXAUT: the same, then a branch to Rn.
const Op* checkAndJump(Core& core, const Op* op) {
  core.at(op);
  authenticate(core, *op, core.state.r[op->a]);
  return core.interwork(op, core.state.r[op->n]);
}

Decoded ofReturnAddress(Op& op, DecodeContext&) {
  op.d = op.a = kIp;
  op.n = kLr;
  op.m = kSp;
  return Decoded::Ok;
}
Decoded prepareSign(Op& op, DecodeContext&) {
  return isBad(op.d) || isBad(op.n) || op.m == kPc ? Decoded::Unpredictable : Decoded::Ok;
}
Decoded prepareCheck(Op& op, DecodeContext&) {
  return isBad(op.a) || isBad(op.n) || op.m == kPc ? Decoded::Unpredictable : Decoded::Ok;
}
Decoded prepareJump(Op& op, DecodeContext& context) {
  context.branches = true;
  context.targetMustBeLandingPad = op.n != kLr;
  return prepareCheck(op, context);
}
Decoded landing(Op&, DecodeContext& context) {
  context.idle = true;  // handled by Core::land
  return Decoded::Ok;
}

const Encoding kPacBtiRows[] = {
    // clang-format off
    {"1111 0011 1010 1111 1000 0000 0000 1111", "bti", kPacBti, nullptr, landing},
    {"1111 0011 1010 1111 1000 0000 0000 1101", "pacbti r12, lr, sp", kPacBti, straight<sign>, ofReturnAddress},
    {"1111 0011 1010 1111 1000 0000 0001 1101", "pac r12, lr, sp", kPacBti, straight<sign>, ofReturnAddress},
    {"1111 0011 1010 1111 1000 0000 0010 1101", "aut r12, lr, sp", kPacBti, straight<check>, ofReturnAddress},
    // In the encodings of SMMLS without an accumulator and of SMMLA into the program counter.
    {"1111 1011 0110 nnnn 1111 dddd 0000 mmmm", "pacg {Rd}, {Rn}, {Rm}", kPacBti, straight<sign>, prepareSign},
    {"1111 1011 0101 nnnn aaaa 1111 0000 mmmm", "autg {Ra}, {Rn}, {Rm}", kPacBti, straight<check>, prepareCheck},
    {"1111 1011 0101 nnnn aaaa 1111 0001 mmmm", "bxaut {Ra}, {Rn}, {Rm}", kPacBti, checkAndJump, prepareJump},
    // clang-format on
};

}  // namespace

bool Core::authenticates() const {
  const uint32_t enabled = state.privileged() ? kControlAuthenticate : kControlAuthenticate << 1;
  return (state.control[state.world] & enabled) != 0;
}

uint32_t Core::authenticationCode(uint32_t value, uint32_t modifier) const {
  return cpu_m::authenticationCode(value, modifier, pacKeys[state.world][state.privileged() ? 0 : 1]);
}

bool Core::branchesNeedLandings() const {
  const uint32_t enabled = state.privileged() ? kControlLandings : kControlLandings << 1;
  return (state.control[state.world] & enabled) != 0;
}

void Core::land() {
  std::array<uint8_t, 4> code{};
  if (!memory.peek(state.pc, std::span(code).first(2))) return;  // the fetch faults
  const uint32_t first = code[0] | uint32_t{code[1]} << 8;
  constexpr uint32_t kBreakpoint = 0xbe, kGateway = 0xe97fe97f, kLanding = 0xf3af800f,
                     kSigningLanding = 0xf3af800d;
  if (first >> 8 == kBreakpoint) return;  // the instruction after it must be a landing pad
  uint32_t instruction = first;
  if (isWide(static_cast<uint16_t>(first)) && memory.peek(state.pc, code))
    instruction = first << 16 | code[2] | uint32_t{code[3]} << 8;
  if (instruction != kGateway && instruction != kLanding && instruction != kSigningLanding)
    throw Trap{StopReason::NoLanding, state.pc};
  state.landing = false;
}

std::span<const Encoding> pacBtiEncodings() {
  return kPacBtiRows;
}

}  // namespace carina::cpu_m
