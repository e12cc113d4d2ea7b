// SPDX-License-Identifier: Apache-2.0
// Why a core stops executing.
#pragma once

#include <cstdint>

namespace carina::cpu_m {

enum class StopReason : uint8_t {
  Budget,            // the cycles or instructions allowed have been executed
  Requested,         // Core::requestStop
  WaitForInterrupt,  // WFI; the program counter is after it, as for WFE
  WaitForEvent,
  Breakpoint,       // BKPT; the program counter is at it, value = its immediate
  SupervisorCall,   // SVC; the program counter is after it
  ExceptionReturn,  // branch to EXC_RETURN; value = the EXC_RETURN value
  Undefined,        // the program counter is at the instruction, as for all that follow
  NoCoprocessor,
  InvalidState,  // Arm state, or an invalid IT state
  NoLanding,     // an indirect branch to an instruction that is not a BTI landing pad
  InvalidCode,   // a pointer authentication code that does not match
  StackLimit,    // below MSPLIM or PSPLIM
  Unaligned,
  DivideByZero,  // with CCR.DIV_0_TRP
  ReadFault,     // address = the unmapped address
  WriteFault,
  FetchFault,
  DataViolation,   // rejected by the memory protection unit; address
  FetchViolation,  // the same for an instruction
  SecureData,      // a Non-secure access to Secure memory; address
  SecureEntry,     // a branch from Non-secure code to Secure code other than a gateway
  SecureExit,      // a branch from Secure to Non-secure code without changing state
  InvalidReturn,   // a function return to Secure code with an inconsistent frame
  // The floating-point context of interrupted code cannot be stored; address, value = the StopReason of the
  // cause; the program counter is at the instruction that required storing it.
  LazyStacking,
  LazyState,   // a context is pending where none is allowed
  Watchpoint,  // a watched address was accessed; address, value = kWatchWrites or kWatchReads; the program
               // counter is after the instruction
};

/// Stop::value of a Watchpoint.
constexpr uint32_t kWatchWrites = 1;
constexpr uint32_t kWatchReads = 2;

struct Stop {
  StopReason reason = StopReason::Budget;
  uint32_t address = 0;
  uint32_t value = 0;
};

/// Thrown by an instruction that cannot complete: it has had no effects other than those the architecture
/// permits. Core::run turns it into a Stop at the instruction.
struct Trap {
  StopReason reason;
  uint32_t address = 0;
  uint32_t value = 0;
};

}  // namespace carina::cpu_m
