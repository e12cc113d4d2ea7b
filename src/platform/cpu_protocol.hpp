// SPDX-License-Identifier: MIT OR Apache-2.0
// How the virtual platform and a CPU emulator in a process of its own talk: fixed-size messages over a
// SOCK_SEQPACKET pair, guest memory and registers in a shared mapping. The platform asks, the emulator
// answers; while it runs guest code the emulator asks for every access to a device and waits for the answer.
//
//   platform                          emulator
//   Hello(version)                 →
//                                  ←  Done(version) | Failed(text)
//   MapRam(address, size, offset)  →
//   MapDevices(address, size)      →
//   CodeChanged(address, size)     →
//   Watch(address, size, flags)    →
//                                  ←  Done | Failed(text), to each of them
//   Run(count = budget, flags)     →
//                                  ←  Read(address, size)             any number of times
//   Value(value, flags)            →
//                                  ←  Write(address, size, value)
//   Value(flags)                   →
//                                  ←  Stopped(reason, address, value) | Failed(text)
//
// The shared mapping starts with struct Shared, in a page that no guest address maps to. Registers are valid
// while the emulator is stopped: it takes them over at Run and puts them back at Stopped.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace carina::cpu_protocol {

constexpr uint32_t kVersion = 3;
/// The file descriptors that the emulator inherits.
constexpr int kSocket = 3;
constexpr int kMemory = 4;
/// Guest memory begins here in the shared mapping.
constexpr uint64_t kGuestOffset = 4096;

enum class Kind : uint32_t {
  // platform to emulator
  Hello,
  MapRam,
  MapDevices,
  CodeChanged,
  Watch,
  Run,
  Value,
  // emulator to platform
  Done,
  Failed,
  Read,
  Write,
  Stopped,
};

/// Why the emulator came back from Run.
enum class Reason : uint32_t {
  Budget,            // the instructions given have been executed
  Requested,         // kStopSoon was set in an answer, or kStopOnMaskChange saw a change
  WaitForInterrupt,  // WFI; the program counter is behind it, as for WFE
  WaitForEvent,
  Breakpoint,       // BKPT; the program counter is at it, value = its number
  SupervisorCall,   // SVC; the program counter is behind it
  ExceptionReturn,  // branch to EXC_RETURN; value = that word
  Undefined,        // the program counter is at the instruction, as for all that follow
  NoCoprocessor,
  InvalidState,  // ARM state, or a damaged IT state
  StackLimit,    // below MSPLIM or PSPLIM
  Unaligned,
  ReadFault,  // address = the one that nothing is mapped to
  WriteFault,
  FetchFault,
  Watchpoint,  // a watched address was accessed; address, value = kWatchWrites or kWatchReads; the program
               // counter is behind the instruction
};

/// Flags of Run.
constexpr uint32_t kStopOnMaskChange = 1;  // come back when PRIMASK, BASEPRI or FAULTMASK changes
constexpr uint32_t kOneInstruction = 2;    // or an IT instruction with those it governs
/// Flags of Watch; count 0 instead: nothing is watched any more.
constexpr uint32_t kWatchWrites = 1;
constexpr uint32_t kWatchReads = 2;
/// Flags of Value.
constexpr uint32_t kStopSoon = 1;  // come back at the end of the basic block

struct Message {
  Kind kind;
  Reason reason;
  uint32_t address, size, value, flags;
  uint64_t offset, count;
  char text[88];
};
static_assert(sizeof(Message) == 128 && std::is_trivially_copyable_v<Message>);

struct Registers {
  uint32_t r[16];  // r13 is the active stack pointer; write msp or psp instead
  uint32_t xpsr, msp, psp, control, primask, basepri, faultmask, fpscr;
  uint32_t s[32];
};

struct Shared {
  Registers registers;
  /// Since Hello; advances while guest code runs, a basic block at a time.
  std::atomic<uint64_t> instructions;
  /// SEV has been executed since the platform last set this to 0.
  std::atomic<uint32_t> eventSent;
};
static_assert(sizeof(Shared) <= kGuestOffset && std::atomic<uint64_t>::is_always_lock_free);

}  // namespace carina::cpu_protocol
