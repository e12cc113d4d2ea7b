// SPDX-License-Identifier: Apache-2.0
#include "platform/exceptions.hpp"

namespace carina::platform {
namespace {

constexpr uint32_t kStackAligned = 1u << 9;  // XPSR in a frame
constexpr uint32_t kBasicFrame = 0x20, kFpFrame = 0x68;
constexpr uint32_t kReturnBase = 0xffffffe1, kReturnNoFp = 0x10, kReturnThread = 0x08, kReturnProcess = 0x04;

// CFSR and HFSR bits.
constexpr uint32_t kUndefinedInstruction = 1u << 16, kInvalidState = 1u << 17, kInvalidReturn = 1u << 18,
                   kNoCoprocessor = 1u << 19, kStackOverflow = 1u << 20, kUnalignedAccess = 1u << 24,
                   kDivideByZero = 1u << 25;
constexpr uint32_t kInstructionViolation = 1u << 0, kDataViolation = 1u << 1, kManagedAddressValid = 1u << 7;
constexpr uint32_t kInstructionBus = 1u << 8, kPreciseData = 1u << 9, kAddressValid = 1u << 15;
constexpr uint32_t kForced = 1u << 30, kDebugEvent = 1u << 31;

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
                      fmt::format("load from 0x{:08x}, where nothing is", stop.address)};
    case StopReason::WriteFault:
      return CpuFault{kBusFault, kPreciseData | kAddressValid, 0, stop.address,
                      fmt::format("store to 0x{:08x}, where nothing is", stop.address)};
    case StopReason::DataViolation:
      return CpuFault{kMemManage, kDataViolation | kManagedAddressValid, 0, stop.address,
                      fmt::format("access to 0x{:08x}, which the MPU refuses", stop.address)};
    case StopReason::FetchViolation:
      return CpuFault{kMemManage,
                      kInstructionViolation,
                      0,
                      {},
                      fmt::format("instruction fetch from 0x{:08x}, which is not executable", stop.address)};
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
  const uint32_t table = system_.vectorTable();
  const auto stack = bus_.load32(table), start = bus_.load32(table + 4);
  if (!stack || !start) return fail("there is no memory for a vector table at 0x{:08x}", table);
  State& s = core_.state;
  s = {};
  s.r[13] = *stack & ~3u;
  s.r[14] = 0xffffffff;
  s.pc = *start & ~1u;
  return {};
}

Status Exceptions::enter(uint32_t exception) {
  State& s = core_.state;
  const bool thread = !s.handlerMode();
  const bool process = s.activeStack() != 0;
  const bool fp = (s.control[s.world] & cpu_m::kControlFpActive) != 0;
  const uint32_t stack = s.r[13];
  const uint32_t size = fp ? kFpFrame : kBasicFrame;
  const uint32_t padding = (stack - size) & 4;
  const uint32_t frame = stack - size - padding;

  const uint32_t saved = s.xpsr() | (padding != 0 ? kStackAligned : 0);
  const uint32_t words[8] = {s.r[0], s.r[1], s.r[2], s.r[3], s.r[12], s.r[14], s.pc, saved};
  bool stored = true;
  for (uint32_t i = 0; i < 8; ++i) stored = stored && bus_.store32(frame + 4 * i, words[i]);
  if (fp) {
    for (uint32_t i = 0; i < 16; ++i)
      stored = stored && bus_.store32(frame + kBasicFrame + 4 * i, s.element<uint32_t>(i));
    stored = stored && bus_.store32(frame + 0x60, s.fpscrWord()) && bus_.store32(frame + 0x64, s.vpr);
  }
  const auto vector = bus_.load32(system_.vectorTable() + 4 * exception);
  if (!stored)
    return fail("the frame of {} does not fit the stack at 0x{:08x}", exceptionName(exception), stack)
        .at(fmt::format("pc 0x{:08x}", s.pc));
  if (!vector || *vector == 0)
    return fail("no handler for {} in the vector table at 0x{:08x}", exceptionName(exception),
                system_.vectorTable())
        .at(fmt::format("pc 0x{:08x}", s.pc));

  s.r[13] = frame;
  s.putStack();
  s.r[14] =
      kReturnBase | (fp ? 0 : kReturnNoFp) | (thread ? kReturnThread : 0) | (process ? kReturnProcess : 0);
  s.pc = *vector & ~1u;
  // Handlers run on the main stack, without floating-point state of their own.
  s.control[s.world] &= ~cpu_m::kControlProcessStack;
  setFpActive(false);
  s.it = 0;
  s.thumb = true;
  s.exception = exception;
  s.takeStack();
  core_.clearMonitor();
  interrupts_.enter(exception);
  return {};
}

Status Exceptions::leave(uint32_t value) {
  State& s = core_.state;
  const uint32_t exception = s.exception;
  const bool thread = (value & kReturnThread) != 0;
  const bool process = thread && (value & kReturnProcess) != 0;
  if (!interrupts_.isActive(exception) || thread != (interrupts_.active().size() == 1)) {
    CpuFault fault{
        kUsageFault, kInvalidReturn, 0, {}, fmt::format("invalid exception return 0x{:08x}", value)};
    return raise(fault);
  }
  const bool fp = (value & kReturnNoFp) == 0;
  const uint32_t frame = s.stackPointer(s.world, process ? 1 : 0);
  const uint32_t size = fp ? kFpFrame : kBasicFrame;
  if (bus_.find(frame, size) == nullptr)
    return fail("return from {} to a stack at 0x{:08x}, where no memory is", exceptionName(exception), frame);
  const auto word = [&](uint32_t offset) { return *bus_.load32(frame + offset); };

  interrupts_.leave(exception);
  if (exception != kNmi) s.faultmask[s.world] = 0;
  for (uint32_t i = 0; i < 4; ++i) s.r[i] = word(4 * i);
  s.r[12] = word(0x10);
  s.r[14] = word(0x14);
  s.pc = word(0x18) & ~1u;
  const uint32_t saved = word(0x1c);
  if (fp) {
    for (uint32_t i = 0; i < 16; ++i) s.setElement<uint32_t>(i, word(kBasicFrame + 4 * i));
    s.setFpscrWord(word(0x60));
    if (core_.has(cpu_m::kMve)) s.vpr = word(0x64);
  }
  s.putStack();
  s.setXpsr(saved);
  s.exception = thread ? 0 : interrupts_.active().back();
  uint32_t& control = s.control[s.world];
  control = (control & ~cpu_m::kControlProcessStack) | (process ? cpu_m::kControlProcessStack : 0);
  setFpActive(fp);
  s.sp[s.world][process ? 1 : 0] = frame + size + ((saved & kStackAligned) != 0 ? 4 : 0);
  s.takeStack();
  core_.clearMonitor();
  return {};
}

void Exceptions::setFpActive(bool active) {
  for (uint32_t& control : core_.state.control)
    control = (control & ~cpu_m::kControlFpActive) | (active ? cpu_m::kControlFpActive : 0);
  core_.floatingPointChanged();
}

Status Exceptions::raise(const CpuFault& fault) {
  FaultRegisters& state = system_.faults();
  state.cfsr |= fault.cfsr;
  state.hfsr |= fault.hfsr;
  if (fault.address) (fault.kind == kMemManage ? state.mmfar : state.bfar) = *fault.address;
  uint32_t exception = fault.kind;
  const int now = interrupts_.executionPriority(core_.state);
  if (exception != kHardFault &&
      (!interrupts_.enabled(exception) || interrupts_.groupPriority(exception) >= now)) {
    exception = kHardFault;
    state.hfsr |= kForced;
  }
  if (interrupts_.groupPriority(exception) >= now) {
    return fail("{}, while {} is handled: the core locks up", fault.what,
                interrupts_.active().empty() ? "a fault" : exceptionName(interrupts_.active().back()))
        .at(fmt::format("pc 0x{:08x}", core_.state.pc));
  }
  return enter(exception);
}

}  // namespace carina::platform
