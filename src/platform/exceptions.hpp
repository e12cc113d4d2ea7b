// SPDX-License-Identifier: Apache-2.0
// Exception entry and return of a Cortex-M in both worlds, tail chaining, and faults. Floating-point state is
// stored lazily (cpu_m/fp_context.hpp) unless the firmware wants it stored with the frame.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "platform/bus.hpp"
#include "platform/system_space.hpp"

namespace carina::platform {

/// A fault as the firmware is told of it.
struct CpuFault {
  Exception kind =
      kHardFault;  // kUsageFault, kBusFault, kMemManage or kSecureFault; kHardFault with hfsr set
  uint32_t cfsr = 0, hfsr = 0;      // bits to set (of a SecureFault: cfsr is SFSR)
  std::optional<uint32_t> address;  // for BFAR, MMFAR or SFAR
  std::string what;                 // "undefined instruction"
};
/// The fault that a stop of the CPU amounts to; nothing when the stop is no fault.
std::optional<CpuFault> faultOf(const Stop& stop);

class Exceptions final : private cpu_m::FaultPriorities {
 public:
  Exceptions(const Bus& bus, SystemSpace& system, Interrupts& interrupts, Core& core)
      : bus_(bus), system_(system), interrupts_(interrupts), core_(core) {
    core_.setFaultPriorities(this);
  }

  /// Registers as reset leaves them, program counter and stack from the vector table. Fails when there is
  /// none.
  Status reset();
  /// Enters `exception`; the interrupted program goes on at State::pc. Fails when the frame or the
  /// vector cannot be accessed: the core locks up.
  Status enter(uint32_t exception);
  /// Branch to EXC_RETURN. Where `mayChain`, an exception that is pending and may be taken is entered with
  /// the frame that is there (takeChained says which); otherwise the interrupted program goes on.
  Status leave(uint32_t value, bool mayChain = true);
  /// The exception that the latest return led to, if any; asked once.
  std::optional<uint32_t> takeChained() { return std::exchange(chained_, std::nullopt); }
  /// A fault of storing a floating-point context late (StopReason::LazyStacking). It is taken when it may be;
  /// when it could have been taken instead of the exception that runs, it waits, and the context is lost.
  Status raiseLazily(const CpuFault& fault);
  /// Makes `fault` the firmware's: its handler, or HardFault. Fails where a core would lock up.
  Status raise(const CpuFault& fault);
  /// The fault that the frame of the latest exception met, if any; asked once.
  std::optional<CpuFault> takeStackingFault() { return std::exchange(stackingFault_, std::nullopt); }

 private:
  uint32_t readyFaults(World world) const override;
  bool handlesUrgent(World world) const override;
  void setFpActive(bool active);
  /// Puts the frame of an exception on the stack. The fault when it cannot be stored: the stack pointer is
  /// where it would be then, or at its limit.
  std::optional<CpuFault> push(uint32_t& stack, bool fp, bool calleeToo);
  /// The floating-point part of it, which begins at `address`.
  void pushContext(uint32_t address);
  /// The part of a frame that hides R4 to R11 of a Secure program, below `stack`.
  void pushCallee(uint32_t stack, bool fp);
  /// Runs `accesses`, which may throw, as those of a program to its stack; the fault that it met.
  template <typename Accesses>
  std::optional<CpuFault> onStack(uint32_t context, bool store, Accesses accesses);
  /// Sees to a fault that entering `exception` met: which of the two is entered.
  Result<uint32_t> resolve(const CpuFault& fault, uint32_t exception);
  /// Begins the handler of `exception` with this EXC_RETURN, whose ES and SPSEL are set here.
  Status begin(uint32_t exception, uint32_t value, uint32_t cycles);
  /// There is no memory where the vector of `exception` should be: HardFault instead of it.
  Status beginWithoutVector(uint32_t exception, uint32_t value, uint32_t cycles);
  /// Enters `exception` from a return with `value`: the frame stays.
  Status chain(uint32_t exception, uint32_t value);
  /// Enters the handler of a fault that a return met on the stack of `world`.
  Status chain(const CpuFault& fault, World world, uint32_t value);
  /// Goes on with the program that `value` says.
  Status unstack(uint32_t value);
  /// Makes a fault visible in the fault status registers: those of `owner`, or of the program that runs.
  void record(const CpuFault& fault, std::optional<World> owner = std::nullopt);
  /// The exception that handles a fault of `world` at priority `now`: its own, or HardFault.
  uint32_t handlerOf(const CpuFault& fault, World world, int now);
  /// HardFault of the world that a fault belongs to.
  uint32_t hardFaultFor(const CpuFault& fault, World world);
  /// Why a return with this EXC_RETURN is invalid; nothing when it is not.
  std::optional<CpuFault> refusal(uint32_t value) const;

  const Bus& bus_;
  SystemSpace& system_;
  Interrupts& interrupts_;
  Core& core_;
  std::optional<CpuFault> stackingFault_;
  std::optional<uint32_t> chained_;
};

}  // namespace carina::platform
