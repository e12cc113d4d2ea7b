// SPDX-License-Identifier: Apache-2.0
// Exception entry and return of a Cortex-M in both worlds, and faults. Frames are always written whole (no
// lazy floating-point stacking).
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

class Exceptions {
 public:
  Exceptions(const Bus& bus, SystemSpace& system, Interrupts& interrupts, Core& core)
      : bus_(bus), system_(system), interrupts_(interrupts), core_(core) {}

  /// Registers as reset leaves them, program counter and stack from the vector table. Fails when there is
  /// none.
  Status reset();
  /// Enters `exception`; the interrupted program goes on at State::pc. Fails when the frame or the
  /// vector cannot be accessed: the core locks up.
  Status enter(uint32_t exception);
  /// Branch to EXC_RETURN.
  Status leave(uint32_t value);
  /// Makes `fault` the firmware's: its handler, or HardFault. Fails where a core would lock up.
  Status raise(const CpuFault& fault);
  /// The fault that the frame of the latest exception met, if any; asked once.
  std::optional<CpuFault> takeStackingFault() { return std::exchange(stackingFault_, std::nullopt); }

 private:
  void setFpActive(bool active);
  /// Puts the frame of an exception on the stack. The fault when it cannot be stored: the stack pointer is
  /// where it would be then, or at its limit.
  std::optional<CpuFault> push(uint32_t& stack, bool fp, bool calleeToo);
  /// Makes a fault visible in the fault status registers.
  void record(const CpuFault& fault);
  /// The exception that handles a fault at priority `now`: its own, or HardFault.
  uint32_t handlerOf(const CpuFault& fault, int now);
  /// Why a return with this EXC_RETURN is invalid; nothing when it is not.
  std::optional<CpuFault> refusal(uint32_t value) const;

  const Bus& bus_;
  SystemSpace& system_;
  Interrupts& interrupts_;
  Core& core_;
  std::optional<CpuFault> stackingFault_;
};

}  // namespace carina::platform
