// SPDX-License-Identifier: Apache-2.0
// Why a core stops executing.
#pragma once

#include <cstdint>

namespace carina::cpu_m {

enum class StopReason : uint8_t {
  Budget,            // the instructions given have been executed
  Requested,         // Core::requestStop
  WaitForInterrupt,  // WFI; the program counter is behind it, as for WFE
  WaitForEvent,
  Breakpoint,       // BKPT; the program counter is at it, value = its number
  SupervisorCall,   // SVC; the program counter is behind it
  ExceptionReturn,  // branch to EXC_RETURN; value = that word
  Undefined,        // the program counter is at the instruction, as for all that follow
  NoCoprocessor,
  InvalidState,  // ARM state, or a damaged IT state
  NoLanding,     // an indirect branch led to an instruction that is none (BTI)
  InvalidCode,   // a pointer authentication code that does not fit
  StackLimit,    // below MSPLIM or PSPLIM
  Unaligned,
  DivideByZero,  // with CCR.DIV_0_TRP
  ReadFault,     // address = the one that nothing is mapped to
  WriteFault,
  FetchFault,
  DataViolation,   // the memory protection unit refuses; address
  FetchViolation,  // the same for an instruction
  SecureData,      // an access to Secure memory by a Non-secure program; address
  SecureEntry,     // a Non-secure program branched to Secure code other than a gateway
  SecureExit,      // a Secure program branched to Non-secure code without changing state
  InvalidReturn,   // a function return to Secure code whose frame does not fit
  // The floating-point context of an interrupted program cannot be stored; address, value = the StopReason
  // that says why; the program counter is at the instruction that needed it stored.
  LazyStacking,
  LazyState,   // a context is pending where none may be
  Watchpoint,  // a watched address was accessed; address, value = kWatchWrites or kWatchReads; the program
               // counter is behind the instruction
};

/// Stop::value of a Watchpoint.
constexpr uint32_t kWatchWrites = 1;
constexpr uint32_t kWatchReads = 2;

struct Stop {
  StopReason reason = StopReason::Budget;
  uint32_t address = 0;
  uint32_t value = 0;
};

/// Thrown by an instruction that cannot complete: nothing of it has happened but what the architecture leaves
/// open. Core::run turns it into a Stop at the instruction.
struct Trap {
  StopReason reason;
  uint32_t address = 0;
  uint32_t value = 0;
};

}  // namespace carina::cpu_m
