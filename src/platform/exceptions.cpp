// SPDX-License-Identifier: Apache-2.0
#include "platform/exceptions.hpp"

#include <cstring>

namespace carina::platform {
namespace {

constexpr uint32_t kStackAligned = 1u << 9;  // XPSR in a frame
constexpr uint32_t kBasicFrame = 0x20, kCalleeFrame = 0x28;
/// Words of the callee frame that are moved.
constexpr uint32_t kCalleeWords = 9;
/// Bits of EXC_RETURN: whose stack holds the frame; the default rules decide whether it holds R4 to R11
/// (Secure code, Non-secure handler); no floating-point state; ...
constexpr uint32_t kReturnBase = 0xffffff80, kReturnSecureStack = 0x40, kReturnDefaultRules = 0x20,
                   kReturnNoFp = 0x10, kReturnThread = 0x08, kReturnProcess = 0x04,
                   kReturnSecureHandler = 0x01;
constexpr uint32_t kSignature = 0xfefa125a, kStackedSfpa = 1u << 20;

// CFSR and HFSR bits.
constexpr uint32_t kUndefinedInstruction = 1u << 16, kInvalidState = 1u << 17, kInvalidReturn = 1u << 18,
                   kNoCoprocessor = 1u << 19, kStackOverflow = 1u << 20, kUnalignedAccess = 1u << 24,
                   kDivideByZero = 1u << 25;
constexpr uint32_t kStackingViolation = 1u << 4, kStackingBus = 1u << 12;
constexpr uint32_t kUnstackingViolation = 1u << 3, kUnstackingBus = 1u << 11;
constexpr uint32_t kLazyViolation = 1u << 5, kLazyBus = 1u << 13;
constexpr uint32_t kInstructionViolation = 1u << 0, kDataViolation = 1u << 1, kManagedAddressValid = 1u << 7;
// Of SFSR.
constexpr uint32_t kInvalidEntry = 1u << 0, kInvalidSignature = 1u << 1, kInvalidExceptionReturn = 1u << 2,
                   kAttributionViolation = 1u << 3, kInvalidTransition = 1u << 4, kLazySecureError = 1u << 5,
                   kSecureAddressValid = 1u << 6, kLazyStateError = 1u << 7;
constexpr uint32_t kInstructionBus = 1u << 8, kPreciseData = 1u << 9, kAddressValid = 1u << 15;
constexpr uint32_t kVectorRead = 1u << 1, kForced = 1u << 30, kDebugEvent = 1u << 31;

const char* whyRefused(uint32_t address) {
  const bool isPrivate = address >= kPrivate && address - kPrivate < kPrivateSize;
  return isPrivate ? "which only privileged programs may access" : "which is not mapped";
}

/// Bits of the fault status registers for the three kinds of rejected stack accesses.
struct StackBits {
  uint32_t managed, bus, secure;
  const char* what;
};
constexpr StackBits kStacking = {kStackingViolation, kStackingBus, kAttributionViolation, "exception frame"};
constexpr StackBits kUnstacking = {kUnstackingViolation, kUnstackingBus, kAttributionViolation,
                                   "return from the exception frame"};
constexpr StackBits kLazyStacking = {kLazyViolation, kLazyBus, kLazySecureError,
                                     "floating-point context of an interrupted program"};

CpuFault stackFault(const StackBits& bits, StopReason reason, uint32_t address) {
  switch (reason) {
    case StopReason::DataViolation:
      return {kMemManage,
              bits.managed,
              0,
              {},
              fmt::format("{} at 0x{:08x}, which the MPU refuses", bits.what, address)};
    case StopReason::SecureData:
      return {kSecureFault, bits.secure | kSecureAddressValid, 0, address,
              fmt::format("{} at 0x{:08x}, which is Secure", bits.what, address)};
    case StopReason::NoCoprocessor:
      return {kUsageFault,
              kNoCoprocessor,
              0,
              {},
              fmt::format("{}, which has no access to the floating-point unit", bits.what)};
    default:
      return {
          kBusFault, bits.bus, 0, {}, fmt::format("{} at 0x{:08x}, which is not mapped", bits.what, address)};
  }
}

}  // namespace

std::optional<CpuFault> faultOf(const Stop& stop) {
  switch (stop.reason) {
    case StopReason::Undefined:
      return CpuFault{kUsageFault, kUndefinedInstruction, 0, {}, "undefined instruction"};
    case StopReason::NoCoprocessor:
      return CpuFault{
          kUsageFault, kNoCoprocessor, 0, {}, "instruction of a coprocessor that is absent or disabled"};
    case StopReason::InvalidState:
      return CpuFault{kUsageFault, kInvalidState, 0, {}, "branch to ARM state (an even address)"};
    case StopReason::NoLanding:
      return CpuFault{kUsageFault,
                      kInvalidState,
                      0,
                      {},
                      "indirect branch to an instruction that is not a landing pad (BTI)"};
    case StopReason::InvalidCode:
      return CpuFault{kUsageFault, kInvalidState, 0, {}, "pointer authentication code that does not match"};
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
                      fmt::format("Secure code at 0x{:08x} is not a gateway", stop.address)};
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
                      fmt::format("instruction fetch from 0x{:08x}, which holds no code", stop.address)};
    case StopReason::LazyStacking:
      return stackFault(kLazyStacking, static_cast<StopReason>(stop.value), stop.address);
    case StopReason::LazyState:
      return CpuFault{
          kSecureFault, kLazyStateError, 0, {}, "VLSTM while a floating-point context is still to be stored"};
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

uint32_t Exceptions::readyFaults(World world) const {
  namespace fpccr = cpu_m::fpccr;
  const int now = interrupts_.executionPriority(core_.state);
  const auto bit = [&](uint32_t number, uint32_t ready) {
    const uint32_t exception = ofWorld(number, world);
    return interrupts_.enabled(exception) && interrupts_.groupPriority(exception) < now ? ready : 0u;
  };
  return bit(kMemManage, fpccr::kMemManageReady) | bit(kUsageFault, fpccr::kUsageFaultReady) |
         bit(kBusFault, fpccr::kBusFaultReady) | bit(kSecureFault, fpccr::kSecureFaultReady) |
         bit(kHardFault, fpccr::kHardFaultReady);
}

bool Exceptions::handlesUrgent(World world) const {
  return interrupts_.isActive(ofWorld(kHardFault, world)) ||
         (interrupts_.targetOf(kNmi) == world && interrupts_.isActive(kNmi));
}

template <typename Accesses>
std::optional<CpuFault> Exceptions::onStack(uint32_t context, bool store, Accesses accesses) {
  const uint32_t before = core_.memory.context();
  core_.memory.select(context);
  std::optional<CpuFault> fault;
  try {
    accesses();
  } catch (const cpu_m::Trap& trap) {
    fault = stackFault(store ? kStacking : kUnstacking, trap.reason, trap.address);
  }
  core_.memory.select(before);
  return fault;
}

void Exceptions::pushContext(uint32_t address) {
  const State& s = core_.state;
  if (core_.fp.has(cpu_m::fpccr::kLazy)) {
    core_.deferContext(address, false);
    return;
  }
  if (!core_.floatingPointGranted(s.world, s.privileged()))
    throw cpu_m::Trap{StopReason::NoCoprocessor, address};
  core_.storeContextAt(address, s.world);
  core_.pass(cpu_m::transferCycles(core_.pipeline(), core_.fp.words(s.world)));
  if (core_.fp.words(s.world) == cpu_m::FpContextControl::kMaxWords) core_.hideContext(s.world);
}

void Exceptions::pushCallee(uint32_t stack, bool fp) {
  const uint32_t end = stack - kCalleeFrame;
  core_.memory.storeAligned<uint32_t>(end, kSignature | (fp ? 0 : 1));
  for (uint32_t i = 4; i < 12; ++i)
    core_.memory.storeAligned<uint32_t>(end + 8 + 4 * (i - 4), core_.state.r[i]);
  core_.pass(cpu_m::transferCycles(core_.pipeline(), kCalleeWords));
}

std::optional<CpuFault> Exceptions::push(uint32_t& stack, bool fp, bool calleeToo) {
  const State& s = core_.state;
  const uint32_t size = kBasicFrame + (fp ? 4 * core_.fp.words(s.world) : 0);
  const uint32_t padding = (stack - size) & 4;
  const uint32_t frame = stack - size - padding, end = frame - (calleeToo ? kCalleeFrame : 0);
  const uint32_t limit = core_.stackLimit(s.world, s.activeStack());
  if (fp && core_.fp.pending(s.world)) {
    return CpuFault{kSecureFault,
                    kLazyStateError,
                    0,
                    {},
                    "exception while an older floating-point context is still to be stored"};
  }
  if (end < limit || end > stack) {
    stack = limit;
    if (fp && core_.fp.has(cpu_m::fpccr::kLazy)) core_.deferContext(frame + kBasicFrame, true);
    return CpuFault{kUsageFault, kStackOverflow, 0, {}, "stack overflow by an exception frame"};
  }
  const bool sfpa = s.world == kSecure && (s.control[kSecure] & cpu_m::kControlSecureFpActive) != 0;
  const uint32_t saved = s.xpsr() | (padding != 0 ? kStackAligned : 0) | (sfpa ? kStackedSfpa : 0);
  const uint32_t words[8] = {s.r[0], s.r[1], s.r[2], s.r[3], s.r[12], s.r[14], s.pc, saved};
  stack = end;
  return onStack(Core::contextOf(s), true, [&] {
    for (uint32_t i = 0; i < 8; ++i) core_.memory.storeAligned<uint32_t>(frame + 4 * i, words[i]);
    if (fp) pushContext(frame + kBasicFrame);
    if (calleeToo) pushCallee(frame, fp);
  });
}

Result<uint32_t> Exceptions::resolve(const CpuFault& fault, uint32_t exception) {
  // The fault is handled first if it is more urgent; the frame is lost in both cases.
  record(fault);
  stackingFault_ = fault;
  // The interrupted code decides whether a handler is available, not the exception being entered: a HardFault
  // whose own frame does not fit is handled, with the stack at its limit.
  const int interrupted = interrupts_.executionPriority(core_.state);
  const uint32_t derived = handlerOf(fault, core_.state.world, interrupted);
  if (interrupts_.groupPriority(derived) >= interrupted)
    return fail(Code::GuestFault, "{}, on entry to {}: the core locks up", fault.what,
                exceptionName(exception))
        .at(fmt::format("pc 0x{:08x}", core_.state.pc));
  const bool first = interrupts_.groupPriority(derived) < interrupts_.groupPriority(exception);
  interrupts_.pend(first ? exception : derived);
  return first ? derived : exception;
}

Status Exceptions::enter(uint32_t exception) {
  State& s = core_.state;
  const World background = s.world;
  const bool fp = (s.control[kSecure] & cpu_m::kControlFpActive) != 0;
  // A Non-secure handler must not see the registers of Secure code.
  const bool callee = background == kSecure && interrupts_.targetOf(exception) == kNonSecure;
  uint32_t stack = s.r[13];
  if (const auto fault = push(stack, fp, callee)) {
    CARINA_TRY(exception, resolve(*fault, exception));
  }
  s.r[13] = stack;
  const uint32_t value = kReturnBase | (background == kSecure ? kReturnSecureStack : 0) |
                         kReturnDefaultRules | (fp ? 0 : kReturnNoFp) | (s.handlerMode() ? 0 : kReturnThread);
  return begin(exception, value, cpu_m::branchCosts(core_.pipeline()).entry);
}

Status Exceptions::begin(uint32_t exception, uint32_t value, uint32_t cycles) {
  State& s = core_.state;
  const World target = interrupts_.targetOf(exception);
  const uint32_t table = system_.vectorTable(target);
  const auto vector = bus_.load32(table + 4 * numberOf(exception));
  if (!vector) return beginWithoutVector(exception, value, cycles);
  if (*vector == 0)
    return fail(Code::GuestFault, "no handler for {} in the vector table at 0x{:08x}",
                exceptionName(exception), table)
        .at(fmt::format("pc 0x{:08x}", s.pc));

  s.putStack();
  const bool process = (s.control[target] & cpu_m::kControlProcessStack) != 0;
  const bool hidden = (value & kReturnSecureStack) != 0 && target == kNonSecure;
  s.r[14] = (value & ~(kReturnProcess | kReturnSecureHandler)) | (process ? kReturnProcess : 0) |
            (target == kSecure ? kReturnSecureHandler : 0);
  // Armv8.1-M clears the registers that the frame holds; earlier cores may leave them to handlers of the same
  // world.
  const bool clears = hidden || (core_.has(cpu_m::kV81) && core_.has(cpu_m::kSecurity));
  for (uint32_t i = 0; clears && i < 13; ++i) {
    if (hidden || i < 4 || i == 12) s.r[i] = 0;
  }
  if (clears) s.setApsr(0);
  s.pc = *vector & ~1u;
  // Handlers run on the main stack, without floating-point state of their own.
  s.control[target] &= ~cpu_m::kControlProcessStack;
  s.control[kSecure] &= ~cpu_m::kControlSecureFpActive;
  setFpActive(false);
  s.it = 0;
  s.landing = false;
  s.thumb = (*vector & 1) != 0;
  s.exception = numberOf(exception);
  s.world = target;
  s.takeStack();
  core_.clearExclusiveMonitor();
  core_.pass(cycles);
  interrupts_.enter(exception);
  return {};
}

Status Exceptions::beginWithoutVector(uint32_t exception, uint32_t value, uint32_t cycles) {
  const World world = interrupts_.faultsNonSecure() ? interrupts_.targetOf(exception) : kSecure;
  const uint32_t hardFault = ofWorld(kHardFault, world);
  const CpuFault fault = {
      kHardFault,
      0,
      kVectorRead,
      {},
      fmt::format("no memory for the vector of {} at 0x{:08x}", exceptionName(exception),
                  system_.vectorTable(interrupts_.targetOf(exception)) + 4 * numberOf(exception))};
  record(fault);
  if (numberOf(exception) == kHardFault ||
      interrupts_.groupPriority(hardFault) >= interrupts_.executionPriority(core_.state))
    return fail(Code::GuestFault, "{}: the core locks up", fault.what)
        .at(fmt::format("pc 0x{:08x}", core_.state.pc));
  stackingFault_ = fault;
  interrupts_.pend(exception);  // it is still to be handled
  if (chained_) chained_ = hardFault;
  // R4 to R11 may already be in the frame, for a Non-secure handler.
  const bool calleeThere = (value & kReturnSecureStack) != 0 && interrupts_.targetOf(exception) == kNonSecure;
  return begin(hardFault, calleeThere && world == kSecure ? value & ~kReturnDefaultRules : value, cycles);
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

Status Exceptions::leave(uint32_t value, bool mayChain) {
  namespace fpccr = cpu_m::fpccr;
  State& s = core_.state;
  if (const auto fault = refusal(value)) return raise(*fault);
  const World handler = (value & kReturnSecureHandler) != 0 ? kSecure : kNonSecure;
  const uint32_t exception = ofWorld(s.exception, handler);
  if (core_.fp.has(fpccr::kClearOnReturn) && (s.control[kSecure] & cpu_m::kControlFpActive) != 0) {
    if (core_.fp.pending(kSecure)) {
      return raise({kSecureFault,
                    kLazyStateError,
                    0,
                    {},
                    "return that clears the floating-point registers while a context is still to be stored"});
    }
    std::memset(s.vector, 0, sizeof s.vector / 2);  // S0 to S15
    s.setFpscrWord(uint32_t{cpu_m::kNoTailPredication} << 16);
    s.vpr = 0;
  }
  s.putStack();
  uint32_t& control = s.control[handler];
  control = (control & ~cpu_m::kControlProcessStack) |
            ((value & kReturnProcess) != 0 ? cpu_m::kControlProcessStack : 0);
  interrupts_.leave(exception);
  if (s.exception != kNmi) s.faultmask[handler] = 0;
  if (mayChain) {
    if (const auto next = interrupts_.takeable(s)) return chain(*next, value);
  }
  return unstack(value);
}

Status Exceptions::chain(uint32_t exception, uint32_t value) {
  State& s = core_.state;
  const World target = interrupts_.targetOf(exception);
  const bool calleeThere = (value & kReturnSecureHandler) == 0 || (value & kReturnDefaultRules) == 0;
  chained_ = exception;
  if ((value & kReturnSecureStack) != 0) {
    if (target == kSecure) {
      // What a Non-secure handler must not see stays in the frame.
      if (calleeThere) value &= ~kReturnDefaultRules;
    } else if (!calleeThere) {
      const uint32_t which =
          (value & kReturnThread) != 0 && (s.control[kSecure] & cpu_m::kControlProcessStack) != 0 ? 1 : 0;
      uint32_t& stack = s.sp[kSecure][which];
      const bool privileged =
          (value & kReturnThread) == 0 || (s.control[kSecure] & cpu_m::kControlUnprivileged) == 0;
      std::optional<CpuFault> fault;
      if (const uint32_t limit = core_.stackLimit(kSecure, which); stack - kCalleeFrame < limit) {
        stack = limit;
        fault = CpuFault{kUsageFault, kStackOverflow, 0, {}, "stack overflow by an exception frame"};
      } else {
        fault = onStack(Core::contextFor(kSecure, privileged, interrupts_.executionPriority(s) < 0), true,
                        [&] { pushCallee(stack, (value & kReturnNoFp) == 0); });
        stack -= kCalleeFrame;
      }
      s.takeStack();
      if (fault) {
        CARINA_TRY(exception, resolve(*fault, exception));
        chained_ = exception;
      }
    } else {
      value |= kReturnDefaultRules;
    }
  }
  s.takeStack();
  return begin(exception, value, cpu_m::branchCosts(core_.pipeline()).chain);
}

Status Exceptions::chain(const CpuFault& fault, World world, uint32_t value) {
  record(fault, world);
  stackingFault_ = fault;
  const int now = interrupts_.executionPriority(core_.state);
  const uint32_t exception = handlerOf(fault, world, now);
  if (interrupts_.groupPriority(exception) >= now)
    return fail(Code::GuestFault, "{}: the core locks up", fault.what)
        .at(fmt::format("pc 0x{:08x}", core_.state.pc));
  return chain(exception, value);
}

Status Exceptions::unstack(uint32_t value) {
  State& s = core_.state;
  const World handler = (value & kReturnSecureHandler) != 0 ? kSecure : kNonSecure;
  const World back = (value & kReturnSecureStack) != 0 ? kSecure : kNonSecure;
  const bool thread = (value & kReturnThread) != 0, fp = (value & kReturnNoFp) == 0;
  const bool calleeToo = back == kSecure && (handler == kNonSecure || (value & kReturnDefaultRules) == 0);
  const uint32_t which = thread && (s.control[back] & cpu_m::kControlProcessStack) != 0 ? 1 : 0;
  const bool privileged = !thread || (s.control[back] & cpu_m::kControlUnprivileged) == 0;
  const bool negative = interrupts_.executionPriority(s) < 0;
  uint32_t frame = s.sp[back][which];
  uint32_t words[8] = {}, callee[8] = {}, signature = kSignature | (fp ? 0 : 1);
  const bool pending = fp && core_.fp.pending(back);
  const auto fault = onStack(Core::contextFor(back, privileged, negative), false, [&] {
    const auto load = [&](uint32_t at) { return core_.memory.loadAligned<uint32_t>(at); };
    if (calleeToo) {
      signature = load(frame);
      for (uint32_t i = 0; i < 8; ++i) callee[i] = load(frame + 8 + 4 * i);
      frame += kCalleeFrame;
      core_.pass(cpu_m::transferCycles(core_.pipeline(), kCalleeWords));
    }
    for (uint32_t i = 0; i < 8; ++i) words[i] = load(frame + 4 * i);
    if (!fp || pending) return;
    if (!core_.floatingPointGranted(back, privileged)) throw cpu_m::Trap{StopReason::NoCoprocessor, frame};
    core_.loadContextAt(frame + kBasicFrame, back);
    core_.pass(cpu_m::transferCycles(core_.pipeline(), core_.fp.words(back)));
  });
  if (fault) return chain(*fault, back, value);
  if (signature != (kSignature | (fp ? 0 : 1)))
    return chain(
        CpuFault{kSecureFault, kInvalidSignature, 0, {}, "the Secure frame has an invalid signature"},
        kSecure, value);
  if (pending) core_.fp.settle(back);

  for (uint32_t i = 4; calleeToo && i < 12; ++i) s.r[i] = callee[i - 4];
  for (uint32_t i = 0; i < 4; ++i) s.r[i] = words[i];
  s.r[12] = words[4];
  s.r[14] = words[5];
  s.pc = words[6] & ~1u;
  const uint32_t saved = words[7];
  s.setXpsr(core_.has(cpu_m::kPacBti) ? saved : saved & ~cpu_m::kXpsrLanding);
  // IPSR is 1 for handlers that called a Non-secure function.
  const uint32_t interrupted = thread ? 0 : numberOf(interrupts_.active().back());
  if (s.exception != 1 || thread) s.exception = interrupted;
  s.world = back;
  uint32_t& control = s.control[kSecure];
  if (back == kSecure)
    control = (control & ~cpu_m::kControlSecureFpActive) |
              ((saved & kStackedSfpa) != 0 ? cpu_m::kControlSecureFpActive : 0);
  setFpActive(fp);
  s.sp[back][which] =
      frame + kBasicFrame + (fp ? 4 * core_.fp.words(back) : 0) + ((saved & kStackAligned) != 0 ? 4 : 0);
  s.takeStack();
  core_.clearExclusiveMonitor();
  core_.pass(cpu_m::branchCosts(core_.pipeline()).exit);
  return {};
}

void Exceptions::setFpActive(bool active) {
  for (uint32_t& control : core_.state.control)
    control = (control & ~cpu_m::kControlFpActive) | (active ? cpu_m::kControlFpActive : 0);
  core_.floatingPointChanged();
}

void Exceptions::record(const CpuFault& fault, std::optional<World> owner) {
  FaultRegisters& state = system_.faults();
  const World world = owner.value_or(core_.state.world);
  state.hfsr |= fault.hfsr;
  if (fault.kind == kSecureFault) {
    state.sfsr |= fault.cfsr;
    if (fault.address) state.sfar = *fault.address;
  } else {
    // BusFault status is shared by both worlds.
    state.cfsr[fault.kind == kBusFault ? kSecure : world] |= fault.cfsr;
    if (fault.address) (fault.kind == kMemManage ? state.mmfar[world] : state.bfar) = *fault.address;
  }
}

uint32_t Exceptions::hardFaultFor(const CpuFault& fault, World world) {
  // A SecureFault stays Secure; so do all others unless faults are assigned to the Non-secure world.
  const bool stays = fault.kind == kSecureFault || !interrupts_.faultsNonSecure();
  system_.faults().hfsr |= kForced;
  return ofWorld(kHardFault, stays ? kSecure : interrupts_.targetOf(ofWorld(fault.kind, world)));
}

uint32_t Exceptions::handlerOf(const CpuFault& fault, World world, int now) {
  const uint32_t exception = ofWorld(fault.kind, world);
  if (fault.kind == kHardFault) return interrupts_.faultsNonSecure() ? exception : uint32_t{kHardFault};
  if (interrupts_.enabled(exception) && interrupts_.groupPriority(exception) < now) return exception;
  return hardFaultFor(fault, world);
}

Status Exceptions::raiseLazyStackingFault(const CpuFault& fault) {
  namespace fpccr = cpu_m::fpccr;
  const World owner = core_.fp.owner();
  record(fault, owner);
  const uint32_t ready = fault.kind == kMemManage    ? fpccr::kMemManageReady
                         : fault.kind == kUsageFault ? fpccr::kUsageFaultReady
                         : fault.kind == kBusFault   ? fpccr::kBusFaultReady
                                                     : fpccr::kSecureFaultReady;
  const bool itself = core_.fp.has(ready, owner);
  const uint32_t exception = itself ? ofWorld(fault.kind, owner) : hardFaultFor(fault, owner);
  const bool now = interrupts_.enabled(exception) &&
                   interrupts_.groupPriority(exception) < interrupts_.executionPriority(core_.state);
  if (now) return enter(exception);
  if (!core_.fp.has(fpccr::kHardFaultReady)) {
    return fail(Code::GuestFault, "{}, which a hard fault had interrupted: the core locks up", fault.what)
        .at(fmt::format("pc 0x{:08x}", core_.state.pc));
  }
  interrupts_.pend(exception);
  core_.dropPendingContext();
  core_.floatingPointChanged();
  return {};
}

Status Exceptions::raise(const CpuFault& fault) {
  record(fault);
  const int now = interrupts_.executionPriority(core_.state);
  const uint32_t exception = handlerOf(fault, core_.state.world, now);
  if (interrupts_.groupPriority(exception) >= now) {
    return fail(Code::GuestFault, "{}, while {} is handled: the core locks up", fault.what,
                interrupts_.active().empty() ? "a fault" : exceptionName(interrupts_.active().back()))
        .at(fmt::format("pc 0x{:08x}", core_.state.pc));
  }
  return enter(exception);
}

}  // namespace carina::platform
