// SPDX-License-Identifier: Apache-2.0
// Exception entry and return of a Cortex-M in both worlds, tail-chaining, and faults. Floating-point state is
// stored lazily (cpu_m/fp_context.hpp) unless the firmware requests storing it with the frame.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "platform/bus.hpp"
#include "platform/system_space.hpp"

namespace carina::platform {

/// A fault as reported to the firmware.
struct CpuFault {
  Exception kind =
      kHardFault;  // kUsageFault, kBusFault, kMemManage or kSecureFault; kHardFault with hfsr set
  uint32_t cfsr = 0, hfsr = 0;      // bits to set (of a SecureFault: cfsr is SFSR)
  std::optional<uint32_t> address;  // for BFAR, MMFAR or SFAR
  std::string what;                 // "undefined instruction"
};
/// The fault that corresponds to a stop of the CPU; nullopt if the stop is not a fault.
std::optional<CpuFault> faultOf(const Stop& stop);

class Exceptions final : private cpu_m::FaultPriorities {
 public:
  Exceptions(const Bus& bus, SystemSpace& system, Interrupts& interrupts, Core& core)
      : bus_(bus), system_(system), interrupts_(interrupts), core_(core) {
    core_.setFaultPriorities(this);
  }

  /// Resets the registers; program counter and stack come from the vector table. Fails if there is none.
  Status reset();
  /// Enters `exception`; the interrupted code will resume at State::pc. Fails if the frame or the vector
  /// cannot be accessed: the core locks up.
  Status enter(uint32_t exception);
  /// Branch to EXC_RETURN. If `mayChain`, a pending exception that can be taken is tail-chained, reusing the
  /// frame (takeChained() returns it); otherwise the interrupted code resumes.
  Status leave(uint32_t value, bool mayChain = true);
  /// The exception that the latest return entered, if any; cleared by this call.
  std::optional<uint32_t> takeChained() { return std::exchange(chained_, std::nullopt); }
  /// Raises a fault of lazy stacking (StopReason::LazyStacking). It is taken if its priority allows;
  /// otherwise it becomes pending and the floating-point context is lost. Fails if a core would lock up.
  Status raiseLazyStackingFault(const CpuFault& fault);
  /// Delivers `fault` to the firmware: enters its handler, or HardFault. Fails if a core would lock up.
  Status raise(const CpuFault& fault);
  /// The fault that stacking the frame of the latest exception caused, if any; cleared by this call.
  std::optional<CpuFault> takeStackingFault() { return std::exchange(stackingFault_, std::nullopt); }

 private:
  uint32_t readyFaults(World world) const override;
  bool handlesUrgent(World world) const override;
  void setFpActive(bool active);
  /// Pushes the frame of an exception. Returns the fault if it cannot be stored; the stack pointer is then
  /// where the frame would be, or at its limit.
  std::optional<CpuFault> push(uint32_t& stack, bool fp, bool calleeToo);
  /// Pushes the floating-point part of the frame, which starts at `address`.
  void pushContext(uint32_t address);
  /// Pushes the additional state context below `stack`, which hides R4 to R11 of Secure code.
  void pushCallee(uint32_t stack, bool fp);
  /// Runs `accesses`, which may throw, as stack accesses in `context`; returns the fault, if any.
  template <typename Accesses>
  std::optional<CpuFault> onStack(uint32_t context, bool store, Accesses accesses);
  /// Handles a fault derived from entering `exception`; returns which of the two is entered.
  Result<uint32_t> resolve(const CpuFault& fault, uint32_t exception);
  /// Starts the handler of `exception` with this EXC_RETURN, whose ES and SPSEL are set here.
  Status begin(uint32_t exception, uint32_t value, uint32_t cycles);
  /// Enters HardFault instead of `exception`, whose vector is not in memory.
  Status beginWithoutVector(uint32_t exception, uint32_t value, uint32_t cycles);
  /// Tail-chains `exception` on a return with `value`: the frame stays.
  Status chain(uint32_t exception, uint32_t value);
  /// Enters the handler of a fault that a return caused on the stack of `world`.
  Status chain(const CpuFault& fault, World world, uint32_t value);
  /// Resumes the code that `value` selects.
  Status unstack(uint32_t value);
  /// Records a fault in the fault status registers of `owner`, or of the running code's world.
  void record(const CpuFault& fault, std::optional<World> owner = std::nullopt);
  /// The exception that handles a fault of `world` at priority `now`: its own, or HardFault.
  uint32_t handlerOf(const CpuFault& fault, World world, int now);
  /// HardFault of the world that a fault belongs to.
  uint32_t hardFaultFor(const CpuFault& fault, World world);
  /// Why a return with this EXC_RETURN is invalid; nullopt if it is valid.
  std::optional<CpuFault> refusal(uint32_t value) const;

  const Bus& bus_;
  SystemSpace& system_;
  Interrupts& interrupts_;
  Core& core_;
  std::optional<CpuFault> stackingFault_;
  std::optional<uint32_t> chained_;
};

}  // namespace carina::platform
