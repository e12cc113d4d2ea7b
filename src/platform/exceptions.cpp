// SPDX-License-Identifier: Apache-2.0
#include "platform/exceptions.hpp"

namespace carina::platform {
namespace {

constexpr uint32_t kFpActive = 1u << 2, kUseProcessStack = 1u << 1;                     // CONTROL
constexpr uint32_t kExceptionMask = 0x1ff, kThumb = 1u << 24, kStackAligned = 1u << 9;  // XPSR
constexpr uint32_t kExecutionState = 0x0700fc00;                                        // T and IT
constexpr uint32_t kBasicFrame = 0x20, kFpFrame = 0x68;
constexpr uint32_t kReturnBase = 0xffffffe1, kReturnNoFp = 0x10, kReturnThread = 0x08, kReturnProcess = 0x04;

// CFSR and HFSR bits.
constexpr uint32_t kUndefinedInstruction = 1u << 16, kInvalidState = 1u << 17, kInvalidReturn = 1u << 18,
                   kNoCoprocessor = 1u << 19, kStackOverflow = 1u << 20, kUnalignedAccess = 1u << 24;
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
    case StopReason::ReadFault:
      return CpuFault{kBusFault, kPreciseData | kAddressValid, 0, stop.address,
                      fmt::format("load from 0x{:08x}, where nothing is", stop.address)};
    case StopReason::WriteFault:
      return CpuFault{kBusFault, kPreciseData | kAddressValid, 0, stop.address,
                      fmt::format("store to 0x{:08x}, where nothing is", stop.address)};
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

Status Exceptions::reset(CpuRegisters& registers) const {
  const uint32_t table = system_.vectorTable();
  const auto stack = bus_.load32(table), start = bus_.load32(table + 4);
  if (!stack || !start) return fail("there is no memory for a vector table at 0x{:08x}", table);
  registers = {};
  registers.msp = *stack & ~3u;
  registers.r[14] = 0xffffffff;
  registers.r[15] = *start & ~1u;
  registers.xpsr = kThumb;
  return {};
}

Status Exceptions::enter(CpuRegisters& registers, uint32_t exception) {
  const bool thread = (registers.xpsr & kExceptionMask) == 0;
  const bool process = thread && (registers.control & kUseProcessStack) != 0;
  const bool fp = (registers.control & kFpActive) != 0;
  uint32_t& stack = process ? registers.psp : registers.msp;
  const uint32_t size = fp ? kFpFrame : kBasicFrame;
  const uint32_t padding = (stack - size) & 4;
  const uint32_t frame = stack - size - padding;

  const uint32_t saved = (registers.xpsr & ~kStackAligned) | (padding != 0 ? kStackAligned : 0);
  const uint32_t words[8] = {registers.r[0],  registers.r[1],  registers.r[2],  registers.r[3],
                             registers.r[12], registers.r[14], registers.r[15], saved};
  bool stored = true;
  for (uint32_t i = 0; i < 8; ++i) stored = stored && bus_.store32(frame + 4 * i, words[i]);
  if (fp) {
    for (uint32_t i = 0; i < 16; ++i)
      stored = stored && bus_.store32(frame + kBasicFrame + 4 * i, registers.s[i]);
    stored = stored && bus_.store32(frame + 0x60, registers.fpscr) && bus_.store32(frame + 0x64, 0);
  }
  const auto vector = bus_.load32(system_.vectorTable() + 4 * exception);
  if (!stored)
    return fail("the frame of {} does not fit the stack at 0x{:08x}", exceptionName(exception), stack)
        .at(fmt::format("pc 0x{:08x}", registers.r[15]));
  if (!vector || *vector == 0)
    return fail("no handler for {} in the vector table at 0x{:08x}", exceptionName(exception),
                system_.vectorTable())
        .at(fmt::format("pc 0x{:08x}", registers.r[15]));

  stack = frame;
  registers.r[14] =
      kReturnBase | (fp ? 0 : kReturnNoFp) | (thread ? kReturnThread : 0) | (process ? kReturnProcess : 0);
  registers.r[15] = *vector & ~1u;
  // Handlers run on the main stack, without floating-point state of their own.
  registers.control &= ~(kFpActive | kUseProcessStack);
  registers.xpsr = (registers.xpsr & ~(kExceptionMask | kExecutionState)) | kThumb | exception;
  interrupts_.enter(exception);
  return {};
}

Status Exceptions::leave(CpuRegisters& registers, uint32_t value) {
  const uint32_t exception = registers.xpsr & kExceptionMask;
  const bool thread = (value & kReturnThread) != 0;
  const bool process = thread && (value & kReturnProcess) != 0;
  if (!interrupts_.isActive(exception) || thread != (interrupts_.active().size() == 1)) {
    CpuFault fault{
        kUsageFault, kInvalidReturn, 0, {}, fmt::format("invalid exception return 0x{:08x}", value)};
    return raise(registers, fault);
  }
  const bool fp = (value & kReturnNoFp) == 0;
  uint32_t& stack = process ? registers.psp : registers.msp;
  const uint32_t frame = stack;
  const uint32_t size = fp ? kFpFrame : kBasicFrame;
  if (bus_.find(frame, size) == nullptr)
    return fail("return from {} to a stack at 0x{:08x}, where no memory is", exceptionName(exception), frame);
  const auto word = [&](uint32_t offset) { return *bus_.load32(frame + offset); };

  interrupts_.leave(exception);
  if (exception != kNmi) registers.faultmask = 0;
  for (uint32_t i = 0; i < 4; ++i) registers.r[i] = word(4 * i);
  registers.r[12] = word(0x10);
  registers.r[14] = word(0x14);
  registers.r[15] = word(0x18) & ~1u;
  const uint32_t saved = word(0x1c);
  if (fp) {
    for (uint32_t i = 0; i < 16; ++i) registers.s[i] = word(kBasicFrame + 4 * i);
    registers.fpscr = word(0x60);
  }
  stack = frame + size + ((saved & kStackAligned) != 0 ? 4 : 0);
  registers.control &= ~(kFpActive | kUseProcessStack);
  registers.control |= (fp ? kFpActive : 0) | (process ? kUseProcessStack : 0);
  const uint32_t back = thread ? 0 : interrupts_.active().back();
  registers.xpsr = (saved & ~(kExceptionMask | kStackAligned)) | kThumb | back;
  return {};
}

Status Exceptions::raise(CpuRegisters& registers, const CpuFault& fault) {
  FaultRegisters& state = system_.faults();
  state.cfsr |= fault.cfsr;
  state.hfsr |= fault.hfsr;
  if (fault.address) state.bfar = *fault.address;
  uint32_t exception = fault.kind;
  const int now = interrupts_.executionPriority(registers);
  if (exception != kHardFault &&
      (!interrupts_.enabled(exception) || interrupts_.groupPriority(exception) >= now)) {
    exception = kHardFault;
    state.hfsr |= kForced;
  }
  if (interrupts_.groupPriority(exception) >= now) {
    return fail("{}, while {} is handled: the core locks up", fault.what,
                interrupts_.active().empty() ? "a fault" : exceptionName(interrupts_.active().back()))
        .at(fmt::format("pc 0x{:08x}", registers.r[15]));
  }
  return enter(registers, exception);
}

}  // namespace carina::platform
