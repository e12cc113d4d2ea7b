// SPDX-License-Identifier: Apache-2.0
#include "platform/exceptions.hpp"

namespace carina::platform {
namespace {

constexpr uint32_t kStackAligned = 1u << 9;  // XPSR in a frame
constexpr uint32_t kBasicFrame = 0x20, kFpFrame = 0x68;
constexpr uint32_t kCalleeFrame = 0x28, kAdditionalFpFrame = 0x40;
/// Of EXC_RETURN: whose stack the frame is on; that R4 to R11 lie there where the default rules say so
/// (Secure program, Non-secure handler); no floating-point state; ...
constexpr uint32_t kReturnBase = 0xffffff80, kReturnSecureStack = 0x40, kReturnDefaultRules = 0x20,
                   kReturnNoFp = 0x10, kReturnThread = 0x08, kReturnProcess = 0x04,
                   kReturnSecureHandler = 0x01;
constexpr uint32_t kSignature = 0xfefa125a, kStackedSfpa = 1u << 20;
constexpr uint32_t kSecureStateOfFp = 1u << 26;  // FPCCR.TS

// CFSR and HFSR bits.
constexpr uint32_t kUndefinedInstruction = 1u << 16, kInvalidState = 1u << 17, kInvalidReturn = 1u << 18,
                   kNoCoprocessor = 1u << 19, kStackOverflow = 1u << 20, kUnalignedAccess = 1u << 24,
                   kDivideByZero = 1u << 25;
constexpr uint32_t kStackingViolation = 1u << 4, kStackingBus = 1u << 12;
constexpr uint32_t kInstructionViolation = 1u << 0, kDataViolation = 1u << 1, kManagedAddressValid = 1u << 7;
// Of SFSR.
constexpr uint32_t kInvalidEntry = 1u << 0, kInvalidSignature = 1u << 1, kInvalidExceptionReturn = 1u << 2,
                   kAttributionViolation = 1u << 3, kInvalidTransition = 1u << 4,
                   kSecureAddressValid = 1u << 6;
constexpr uint32_t kInstructionBus = 1u << 8, kPreciseData = 1u << 9, kAddressValid = 1u << 15;
constexpr uint32_t kForced = 1u << 30, kDebugEvent = 1u << 31;

const char* whyRefused(uint32_t address) {
  const bool isPrivate = address >= kPrivate && address - kPrivate < kPrivateSize;
  return isPrivate ? "which only privileged programs may access" : "where nothing is";
}

}  // namespace

std::optional<CpuFault> faultOf(const Stop& stop) {
  switch (stop.reason) {
    case StopReason::Undefined:
      return CpuFault{kUsageFault, kUndefinedInstruction, 0, {}, "undefined instruction"};
    case StopReason::NoCoprocessor:
      return CpuFault{
          kUsageFault, kNoCoprocessor, 0, {}, "instruction of a coprocessor that is absent or off"};
    case StopReason::InvalidState:
      return CpuFault{kUsageFault, kInvalidState, 0, {}, "branch to ARM state (an even address)"};
    case StopReason::StackLimit:
      return CpuFault{kUsageFault, kStackOverflow, 0, {}, "stack overflow (below the stack limit register)"};
    case StopReason::Unaligned:
      return CpuFault{kUsageFault, kUnalignedAccess, 0, {}, "unaligned access"};
    case StopReason::DivideByZero:
      return CpuFault{kUsageFault, kDivideByZero, 0, {}, "division by zero"};
    case StopReason::ReadFault:
      return CpuFault{kBusFault, kPreciseData | kAddressValid, 0, stop.address,
                      fmt::format("load from 0x{:08x}, {}", stop.address, whyRefused(stop.address))};
    case StopReason::WriteFault:
      return CpuFault{kBusFault, kPreciseData | kAddressValid, 0, stop.address,
                      fmt::format("store to 0x{:08x}, {}", stop.address, whyRefused(stop.address))};
    case StopReason::DataViolation:
      return CpuFault{kMemManage, kDataViolation | kManagedAddressValid, 0, stop.address,
                      fmt::format("access to 0x{:08x}, which the MPU refuses", stop.address)};
    case StopReason::FetchViolation:
      return CpuFault{kMemManage,
                      kInstructionViolation,
                      0,
                      {},
                      fmt::format("instruction fetch from 0x{:08x}, which is not executable", stop.address)};
    case StopReason::SecureData:
      return CpuFault{kSecureFault, kAttributionViolation | kSecureAddressValid, 0, stop.address,
                      fmt::format("access to 0x{:08x}, which is Secure", stop.address)};
    case StopReason::SecureEntry:
      return CpuFault{kSecureFault,
                      kInvalidEntry,
                      0,
                      {},
                      fmt::format("Secure code at 0x{:08x} is no gateway", stop.address)};
    case StopReason::SecureExit:
      return CpuFault{kSecureFault,
                      kInvalidTransition,
                      0,
                      {},
                      fmt::format("Non-secure code at 0x{:08x}, run in Secure state", stop.address)};
    case StopReason::InvalidReturn:
      return CpuFault{kUsageFault, kInvalidReturn, 0, {}, "invalid return to a Secure function"};
    case StopReason::FetchFault:
      return CpuFault{kBusFault,
                      kInstructionBus,
                      0,
                      {},
                      fmt::format("instruction fetch from 0x{:08x}, where no code is", stop.address)};
    case StopReason::Breakpoint:
      return CpuFault{kHardFault, 0, kDebugEvent, {}, fmt::format("BKPT {} without a debugger", stop.value)};
    default:
      return std::nullopt;
  }
}

Status Exceptions::reset() {
  const uint32_t table = system_.vectorTable(kSecure);
  const auto stack = bus_.load32(table), start = bus_.load32(table + 4);
  if (!stack || !start)
    return fail(Code::GuestFault, "there is no memory for a vector table at 0x{:08x}", table);
  State& s = core_.state;
  s = {};
  s.r[13] = *stack & ~3u;
  s.r[14] = 0xffffffff;
  s.pc = *start & ~1u;
  return {};
}

std::optional<CpuFault> Exceptions::push(uint32_t& stack, bool fp, bool calleeToo) {
  const State& s = core_.state;
  const bool secure = s.world == kSecure;
  const bool allFp = fp && secure && (system_.fpccr() & kSecureStateOfFp) != 0;
  const uint32_t size = kBasicFrame + (fp ? kFpFrame - kBasicFrame : 0) + (allFp ? kAdditionalFpFrame : 0);
  const uint32_t padding = (stack - size) & 4;
  const uint32_t frame = stack - size - padding, end = frame - (calleeToo ? kCalleeFrame : 0);
  const uint32_t limit = s.stackLimit[s.world][s.activeStack()];
  if (end < limit || end > stack) {
    stack = limit;
    return CpuFault{kUsageFault, kStackOverflow, 0, {}, "stack overflow by the frame of an exception"};
  }
  const bool sfpa = secure && (s.control[kSecure] & cpu_m::kControlSecureFpActive) != 0;
  const uint32_t saved = s.xpsr() | (padding != 0 ? kStackAligned : 0) | (sfpa ? kStackedSfpa : 0);
  const uint32_t words[8] = {s.r[0], s.r[1], s.r[2], s.r[3], s.r[12], s.r[14], s.pc, saved};
  stack = end;
  std::optional<CpuFault> fault;
  const cpu_m::Mpu& mpu = core_.mpu(s.world);
  const auto store = [&](uint32_t address, uint32_t value) {
    if (fault) return;
    if (mpu.enabled() &&
        !mpu.permission(address, s.privileged(), s.exception == kNmi || s.exception == kHardFault).write)
      fault = CpuFault{kMemManage,
                       kStackingViolation,
                       0,
                       {},
                       fmt::format("frame of an exception at 0x{:08x}, which the MPU refuses", address)};
    else if (!bus_.store32(address, value))
      fault = CpuFault{kBusFault,
                       kStackingBus,
                       0,
                       {},
                       fmt::format("frame of an exception at 0x{:08x}, where no memory is", address)};
  };
  for (uint32_t i = 0; i < 8; ++i) store(frame + 4 * i, words[i]);
  for (uint32_t i = 0; fp && i < 16; ++i) store(frame + kBasicFrame + 4 * i, s.element<uint32_t>(i));
  if (fp) {
    store(frame + 0x60, s.fpscrWord());
    store(frame + 0x64, s.vpr);
  }
  for (uint32_t i = 16; allFp && i < 32; ++i) store(frame + kFpFrame + 4 * (i - 16), s.element<uint32_t>(i));
  if (calleeToo) {
    store(end, kSignature | (fp ? 0 : 1));
    for (uint32_t i = 4; i < 12; ++i) store(end + 8 + 4 * (i - 4), s.r[i]);
  }
  return fault;
}

Status Exceptions::enter(uint32_t exception) {
  State& s = core_.state;
  const World background = s.world;
  const bool thread = !s.handlerMode();
  const bool fp = (s.control[kSecure] & cpu_m::kControlFpActive) != 0;
  // A Non-secure handler may not see what a Secure program has in its registers.
  const bool callee = background == kSecure && interrupts_.targetOf(exception) == kNonSecure;
  uint32_t stack = s.r[13];
  if (const auto fault = push(stack, fp, callee)) {
    // The fault is handled first when it is more urgent; the frame is lost either way.
    record(*fault);
    stackingFault_ = fault;
    // What was interrupted decides whether there is a handler left, not the exception that is entered: a hard
    // fault whose own frame finds no place is handled, with the stack at its limit.
    const int interrupted = interrupts_.executionPriority(s);
    const uint32_t derived = handlerOf(*fault, interrupted);
    if (interrupts_.groupPriority(derived) >= interrupted)
      return fail(Code::GuestFault, "{}, as {} is entered: the core locks up", fault->what,
                  exceptionName(exception))
          .at(fmt::format("pc 0x{:08x}", s.pc));
    const bool first = interrupts_.groupPriority(derived) < interrupts_.groupPriority(exception);
    interrupts_.pend(first ? exception : derived);
    if (first) exception = derived;
  }
  const World target = interrupts_.targetOf(exception);
  const bool hidden = background == kSecure && target == kNonSecure;
  const uint32_t table = system_.vectorTable(target);
  const auto vector = bus_.load32(table + 4 * numberOf(exception));
  if (!vector || *vector == 0)
    return fail(Code::GuestFault, "no handler for {} in the vector table at 0x{:08x}",
                exceptionName(exception), table)
        .at(fmt::format("pc 0x{:08x}", s.pc));

  s.r[13] = stack;
  s.putStack();
  const bool process = (s.control[target] & cpu_m::kControlProcessStack) != 0;
  s.r[14] = kReturnBase | (background == kSecure ? kReturnSecureStack : 0) | kReturnDefaultRules |
            (fp ? 0 : kReturnNoFp) | (thread ? kReturnThread : 0) | (process ? kReturnProcess : 0) |
            (target == kSecure ? kReturnSecureHandler : 0);
  for (uint32_t i = 0; hidden && i < 13; ++i) s.r[i] = 0;
  if (hidden && fp) {
    const uint32_t visible = (system_.fpccr() & kSecureStateOfFp) != 0 ? 32 : 16;
    for (uint32_t i = 0; i < visible; ++i) s.setElement<uint32_t>(i, 0);
  }
  if (hidden) s.setApsr(0);
  s.pc = *vector & ~1u;
  // Handlers run on the main stack, without floating-point state of their own.
  s.control[target] &= ~cpu_m::kControlProcessStack;
  s.control[kSecure] &= ~cpu_m::kControlSecureFpActive;
  setFpActive(false);
  s.it = 0;
  s.thumb = (*vector & 1) != 0;
  s.exception = numberOf(exception);
  s.world = target;
  s.takeStack();
  core_.clearMonitor();
  core_.pass(cpu_m::branchCosts(core_.pipeline()).entry);
  interrupts_.enter(exception);
  return {};
}

std::optional<CpuFault> Exceptions::refusal(uint32_t value) const {
  const State& s = core_.state;
  const bool secureHandler = (value & kReturnSecureHandler) != 0;
  if (s.world == kNonSecure && (secureHandler || (value & kReturnDefaultRules) == 0))
    return CpuFault{kSecureFault,
                    kInvalidExceptionReturn,
                    0,
                    {},
                    "return from a Secure exception by a Non-secure handler"};
  const uint32_t exception = ofWorld(s.exception, secureHandler ? kSecure : kNonSecure);
  const bool thread = (value & kReturnThread) != 0;
  if (value >= kReturnBase && interrupts_.isActive(exception) && thread == (interrupts_.active().size() == 1))
    return std::nullopt;
  return CpuFault{
      kUsageFault, kInvalidReturn, 0, {}, fmt::format("invalid exception return 0x{:08x}", value)};
}

Status Exceptions::leave(uint32_t value) {
  State& s = core_.state;
  if (const auto fault = refusal(value)) return raise(*fault);
  const World handler = (value & kReturnSecureHandler) != 0 ? kSecure : kNonSecure;
  const World back = (value & kReturnSecureStack) != 0 ? kSecure : kNonSecure;
  const uint32_t exception = ofWorld(s.exception, handler);
  const bool thread = (value & kReturnThread) != 0, fp = (value & kReturnNoFp) == 0;
  const bool calleeToo = back == kSecure && (handler == kNonSecure || (value & kReturnDefaultRules) == 0);
  const bool allFp = fp && back == kSecure && (system_.fpccr() & kSecureStateOfFp) != 0;

  s.putStack();
  uint32_t& handlerControl = s.control[handler];
  const uint32_t before = handlerControl;
  handlerControl = (handlerControl & ~cpu_m::kControlProcessStack) |
                   ((value & kReturnProcess) != 0 ? cpu_m::kControlProcessStack : 0);
  const uint32_t which = thread && (s.control[back] & cpu_m::kControlProcessStack) != 0 ? 1 : 0;
  uint32_t frame = s.sp[back][which];
  const uint32_t size = (fp ? kFpFrame : kBasicFrame) + (allFp ? kAdditionalFpFrame : 0);
  const uint32_t callee = calleeToo ? kCalleeFrame : 0;
  if (bus_.find(frame, callee + size) == nullptr)
    return fail(Code::GuestFault, "return from {} to a stack at 0x{:08x}, where no memory is",
                exceptionName(exception), frame);
  const auto word = [&](uint32_t offset) { return *bus_.load32(frame + offset); };
  if (calleeToo && word(0) != (kSignature | (fp ? 0 : 1))) {
    handlerControl = before;
    interrupts_.leave(exception);
    return raise({kSecureFault, kInvalidSignature, 0, {}, "the Secure frame lost its signature"});
  }

  interrupts_.leave(exception);
  if (s.exception != kNmi) s.faultmask[handler] = 0;
  for (uint32_t i = 4; calleeToo && i < 12; ++i) s.r[i] = word(8 + 4 * (i - 4));
  frame += callee;
  for (uint32_t i = 0; i < 4; ++i) s.r[i] = word(4 * i);
  s.r[12] = word(0x10);
  s.r[14] = word(0x14);
  s.pc = word(0x18) & ~1u;
  const uint32_t saved = word(0x1c);
  for (uint32_t i = 0; fp && i < 16; ++i) s.setElement<uint32_t>(i, word(kBasicFrame + 4 * i));
  for (uint32_t i = 16; allFp && i < 32; ++i) s.setElement<uint32_t>(i, word(kFpFrame + 4 * (i - 16)));
  if (fp) {
    s.setFpscrWord(word(0x60));
    if (core_.has(cpu_m::kMve)) s.vpr = word(0x64);
  }
  s.setXpsr(saved);
  // 1 for handlers that called a Non-secure function.
  const uint32_t interrupted = thread ? 0 : numberOf(interrupts_.active().back());
  if (s.exception != 1 || thread) s.exception = interrupted;
  s.world = back;
  uint32_t& control = s.control[kSecure];
  if (back == kSecure)
    control = (control & ~cpu_m::kControlSecureFpActive) |
              ((saved & kStackedSfpa) != 0 ? cpu_m::kControlSecureFpActive : 0);
  setFpActive(fp);
  s.sp[back][which] = frame + size + ((saved & kStackAligned) != 0 ? 4 : 0);
  s.takeStack();
  core_.clearMonitor();
  core_.pass(cpu_m::branchCosts(core_.pipeline()).exit);
  return {};
}

void Exceptions::setFpActive(bool active) {
  for (uint32_t& control : core_.state.control)
    control = (control & ~cpu_m::kControlFpActive) | (active ? cpu_m::kControlFpActive : 0);
  core_.floatingPointChanged();
}

void Exceptions::record(const CpuFault& fault) {
  FaultRegisters& state = system_.faults();
  const World world = core_.state.world;
  state.hfsr |= fault.hfsr;
  if (fault.kind == kSecureFault) {
    state.sfsr |= fault.cfsr;
    if (fault.address) state.sfar = *fault.address;
  } else {
    // What BusFaults tell is in one place for both worlds.
    state.cfsr[fault.kind == kBusFault ? kSecure : world] |= fault.cfsr;
    if (fault.address) (fault.kind == kMemManage ? state.mmfar[world] : state.bfar) = *fault.address;
  }
}

uint32_t Exceptions::handlerOf(const CpuFault& fault, int now) {
  const uint32_t exception = ofWorld(fault.kind, core_.state.world);
  if (fault.kind == kHardFault) return interrupts_.faultsNonSecure() ? exception : uint32_t{kHardFault};
  if (interrupts_.enabled(exception) && interrupts_.groupPriority(exception) < now) return exception;
  // A SecureFault stays Secure; so does everything unless faults are given to the Non-secure world.
  const bool stays = fault.kind == kSecureFault || !interrupts_.faultsNonSecure();
  system_.faults().hfsr |= kForced;
  return ofWorld(kHardFault, stays ? kSecure : interrupts_.targetOf(exception));
}

Status Exceptions::raise(const CpuFault& fault) {
  record(fault);
  const int now = interrupts_.executionPriority(core_.state);
  const uint32_t exception = handlerOf(fault, now);
  if (interrupts_.groupPriority(exception) >= now) {
    return fail(Code::GuestFault, "{}, while {} is handled: the core locks up", fault.what,
                interrupts_.active().empty() ? "a fault" : exceptionName(interrupts_.active().back()))
        .at(fmt::format("pc 0x{:08x}", core_.state.pc));
  }
  return enter(exception);
}

}  // namespace carina::platform
