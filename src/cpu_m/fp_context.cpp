// SPDX-License-Identifier: Apache-2.0
#include "cpu_m/fp_context.hpp"

#include "cpu_m/core.hpp"

namespace carina::cpu_m {
namespace {

constexpr uint32_t kCoprocessor10 = 20;  // position of its bits in CPACR
constexpr uint32_t kSingles = 16;        // in every context

/// The bits of FPCCR that Non-secure code cannot change.
uint32_t withheld(uint32_t secureBits, bool faultsNonSecure) {
  uint32_t bits = fpccr::kSecureOnly | fpccr::kMonitorReady;
  if (!faultsNonSecure) bits |= fpccr::kHardFaultReady | fpccr::kBusFaultReady;
  if ((secureBits & fpccr::kLazySecure) != 0) bits |= fpccr::kLazy;
  if ((secureBits & fpccr::kClearOnReturnSecure) != 0) bits |= fpccr::kClearOnReturn;
  return bits;
}

/// Offset of single register `number` in a stored context: S16 to S31 follow VPR.
constexpr uint32_t singleOffset(uint32_t number) {
  return 4 * (number < kSingles ? number : number + 2);
}
constexpr uint32_t kFpscrOffset = 4 * kSingles, kVprOffset = kFpscrOffset + 4;

}  // namespace

// --- the registers

uint32_t FpContextControl::control(World world, bool faultsNonSecure) const {
  const uint32_t value = (control_[kSecure] & ~fpccr::kBanked) | (control_[world] & fpccr::kBanked);
  if (world == kSecure) return value;
  constexpr uint32_t kReadable = fpccr::kLazy | fpccr::kClearOnReturn;
  return value & ~(withheld(control_[kSecure], faultsNonSecure) & ~kReadable);
}

void FpContextControl::setControl(World world, uint32_t value, bool faultsNonSecure) {
  uint32_t writable = fpccr::kAll;
  if (world == kNonSecure) writable &= ~withheld(control_[kSecure], faultsNonSecure);
  const auto set = [&](World of, uint32_t bits) {
    control_[of] = (control_[of] & ~(writable & bits)) | (value & writable & bits);
  };
  set(world, fpccr::kBanked);
  set(kSecure, ~fpccr::kBanked);
}

void FpContextControl::setOwner(World world) {
  control_[kSecure] =
      (control_[kSecure] & ~fpccr::kSecureContext) | (world == kSecure ? fpccr::kSecureContext : 0);
}

void FpContextControl::defer(const State& s, uint32_t address, bool limitViolated,
                             const FaultPriorities* priorities) {
  setAddress(s.world, address);
  setOwner(s.world);
  constexpr uint32_t kReadyBoth = fpccr::kUsageFaultReady;
  constexpr uint32_t kReadyOnce =
      fpccr::kHardFaultReady | fpccr::kBusFaultReady | fpccr::kSecureFaultReady | fpccr::kMonitorReady;
  const auto put = [this](World of, uint32_t mask, uint32_t bits) {
    control_[of] = (control_[of] & ~mask) | (bits & mask);
  };
  // Without a source of priorities, all faults can be taken.
  const auto ready = [&](World of) { return priorities == nullptr ? ~0u : priorities->readyFaults(of); };
  for (const World of : {kNonSecure, kSecure}) put(of, kReadyBoth, ready(of));
  put(s.world, fpccr::kMemManageReady, ready(s.world));
  put(kSecure, kReadyOnce, ready(kSecure) & ~fpccr::kMonitorReady);
  put(s.world, fpccr::kPending | fpccr::kUser | fpccr::kThread | fpccr::kLimitViolated,
      fpccr::kPending | (s.privileged() ? 0 : fpccr::kUser) | (s.handlerMode() ? 0 : fpccr::kThread) |
          (limitViolated ? fpccr::kLimitViolated : 0));
}

// --- the core and its context

bool Core::floatingPointGranted(World world, bool privileged) const {
  const uint32_t access = cpacr_[world] >> kCoprocessor10 & 3;
  const bool granted = world == kSecure || nonSecureFp_;
  return has(kFloat) && granted && (access == 3 || (access == 1 && privileged));
}

void Core::requireFloatingPoint() const {
  if (!floatingPointGranted(state.world, state.privileged()))
    throw Trap{StopReason::NoCoprocessor, at_ == nullptr ? state.pc : at_->address};
}

uint32_t Core::fpscrBits() const {
  // NZCV, AHP, DN, FZ, RMode and the cumulative flags; MVE and half precision add theirs.
  constexpr uint32_t kEvery = 0xf7c0009f, kQc = 1u << 27, kFlushHalf = 1u << 19;
  return kEvery | (has(kMve) ? kQc | kFpscrLtpsize : 0) | (has(kHalf) ? kFlushHalf : 0);
}

void Core::setFpscr(uint32_t value) {
  const uint32_t fixed = has(kMve) ? 0 : uint32_t{kNoTailPredication} << 16;
  state.setFpscrWord((value & fpscrBits()) | fixed);
}

void Core::storeContextAt(uint32_t address, World owner) {
  for (uint32_t i = 0; i < kSingles; ++i)
    memory.storeAligned<uint32_t>(address + singleOffset(i), state.element<uint32_t>(i));
  memory.storeAligned<uint32_t>(address + kFpscrOffset, state.fpscrWord());
  memory.storeAligned<uint32_t>(address + kVprOffset, state.vpr & kVprBits);
  if (fp.words(owner) == FpContextControl::kMinWords) return;
  for (uint32_t i = kSingles; i < 2 * kSingles; ++i)
    memory.storeAligned<uint32_t>(address + singleOffset(i), state.element<uint32_t>(i));
}

void Core::loadContextAt(uint32_t address, World owner) {
  const uint32_t singles = fp.words(owner) == FpContextControl::kMinWords ? kSingles : 2 * kSingles;
  uint32_t words[2 * kSingles];  // a fault leaves the registers unchanged
  for (uint32_t i = 0; i < singles; ++i) words[i] = memory.loadAligned<uint32_t>(address + singleOffset(i));
  const uint32_t fpscr = memory.loadAligned<uint32_t>(address + kFpscrOffset);
  const uint32_t vpr = memory.loadAligned<uint32_t>(address + kVprOffset);
  for (uint32_t i = 0; i < singles; ++i) state.setElement<uint32_t>(i, words[i]);
  setFpscr(fpscr);
  state.vpr = has(kMve) ? vpr & kVprBits : 0;
}

void Core::hideContext(World owner) {
  if (owner == kNonSecure) return;  // its registers may be seen by all code
  std::memset(state.vector, 0, fp.words(owner) == FpContextControl::kMinWords ? 4 * kSingles : 8 * kSingles);
  state.setFpscrWord(uint32_t{kNoTailPredication} << 16);
  state.vpr = 0;
}

void Core::dropPendingContext() {
  const World owner = fp.owner();
  fp.settle(owner);
  hideContext(owner);
}

void Core::storePendingContext() {
  const World owner = fp.owner();
  if (!fp.pending(owner)) return;
  const auto refuse = [](StopReason why, uint32_t address) {
    throw Trap{StopReason::LazyStacking, address, static_cast<uint32_t>(why)};
  };
  const bool privileged = !fp.has(fpccr::kUser, owner);
  const uint32_t address = fp.address(owner);
  if (!floatingPointGranted(owner, privileged)) refuse(StopReason::NoCoprocessor, address);
  if (!fp.has(fpccr::kLimitViolated, owner)) {
    const uint32_t before = memory.context();
    memory.select(contextFor(owner, privileged, !fp.has(fpccr::kHardFaultReady)));
    try {
      storeContextAt(address, owner);
    } catch (const Trap& trap) {
      memory.select(before);
      refuse(trap.reason, trap.address);
    }
    memory.select(before);
    pass(transferCycles(pipeline_, fp.words(owner)));
  }
  dropPendingContext();
}

void Core::prepareFloatingPoint() {
  requireFloatingPoint();
  storePendingContext();
  const bool secure = state.world == kSecure;
  fp.setOwner(state.world);
  if (fp.has(fpccr::kAutomatic, state.world)) {
    const bool active =
        (state.control[kSecure] & kControlFpActive) != 0 &&
        (!secure || !has(kSecurity) || (state.control[kSecure] & kControlSecureFpActive) != 0);
    if (!active) {
      state.setFpscrWord(fp.defaultFpscr(state.world));
      state.vpr = 0;
    }
    for (uint32_t& control : state.control) control |= kControlFpActive;
    if (secure && has(kSecurity)) state.control[kSecure] |= kControlSecureFpActive;
  }
  floatingPointReady_ = true;
}

}  // namespace carina::cpu_m
