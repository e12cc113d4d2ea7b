// SPDX-License-Identifier: Apache-2.0
// The virtual platform: runs firmware images for Corstone-300, 310, 315 and 320 with the NPU model attached,
// as Arm's Fixed Virtual Platforms do. What is modelled: docs/platform.md.
#pragma once

#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "npu/model/model.hpp"
#include "platform/board.hpp"
#include "platform/media.hpp"
#include "platform/memory_timing.hpp"
#include "platform/npu_device.hpp"
#include "platform/pmu_trace.hpp"

namespace carina::platform {

class Debugger;

struct Options {
  const Board* board = nullptr;
  npu::Machine machine;  // the NPU and what its time line assumes about memories
  npu::ModelOptions model;
  /// The firmware's timing adapters determine memory speed, not `machine`.
  bool timingAdapters = false;

  /// Wait states of the core's memory accesses.
  MemoryTiming memoryTiming;

  /// Memory and peripheral protection controllers can reject transactions.
  bool gating = true;

  std::optional<uint32_t> vectorTable;  // empty: found in the image

  bool semihosting = true;
  std::filesystem::path semihostingFolder;  // with files that firmware may use; empty: none
  std::string commandLine;                  // returned by SYS_GET_CMDLINE

  /// Raw bytes loaded before the start.
  struct Data {
    std::filesystem::path file;
    uint32_t address;
  };
  std::vector<Data> data;

  double secondsLimit = 0;         // of wall time; 0 = none
  uint64_t instructionsLimit = 0;  // 0 = none
  uint64_t cyclesLimit = 0;        // of simulated time; 0 = none
  // Output of UART 0 that ends a run; the exit code is then that of EndOfTest.
  bool stopAtEot = true;               // the byte 0x04
  std::string exitTag = "EXITTHESIM";  // a text; empty: none

  /// Receives the output of UART `uart`; semihosting's console is UART 0.
  std::function<void(uint32_t uart, char byte)> output;
  /// Input of semihosting's console, -1 at its end; none by default.
  std::function<int()> input;
  /// Bytes that UART 0 receives, -1 at the end; none by default.
  std::function<int()> uartInput;
  MediaOptions media;
  /// Receives device accesses, exceptions and semihosting calls, one line each; none by default.
  std::function<void(const std::string& line)> trace;
  /// Receives every instruction with its effects, one line each (CpuTrace); none by default. Much slower.
  std::function<void(const std::string& line)> cpuTrace;
  /// Cycles between the samples of Outcome::pmu (at least PmuTrace::kMinInterval); 0: no samples.
  uint64_t pmuInterval = 0;
  /// Requests Outcome::lcov. The image needs line tables.
  bool coverage = false;
  /// Gets control before the first instruction and whenever the board stops; none by default.
  Debugger* debugger = nullptr;
};

enum class EndReason : uint8_t {
  Exit,   // semihosting SYS_EXIT, or a convention on UART0
  Reset,  // the firmware asked for a reset
  TimeLimit,
  CycleLimit,
  InstructionLimit,
  Deadlock,     // waits for an interrupt that cannot come
  EndlessLoop,  // branches to itself, and no interrupt can come
  Lockup,       // a fault that its handler cannot handle
  Killed,       // by the debugger
};
const char* endReasonName(EndReason reason);

/// A fault that was delivered to the firmware's handler.
struct FaultNote {
  std::string what;
  uint32_t pc = 0;
  std::string function;  // "main+0x12"; may be empty
  uint32_t cfsr = 0, hfsr = 0;
};

/// The first access to a word without a device.
struct UnknownAccess {
  uint32_t address = 0;
  bool write = false;
  uint32_t pc = 0;
  std::string function;  // "main+0x12"; may be empty
  std::string device;    // what the board has there: "the Ethernet controller"; may be empty
};
/// "read of 0x40001000, where no device is, at 0x10000200 (main+0x12)".
std::string text(const UnknownAccess& access);

struct Outcome {
  EndReason reason = EndReason::Exit;
  int exitCode = 0;         // of the firmware; 1 for all reasons but Exit and Reset
  std::string explanation;  // for all reasons but Exit: what and where
  uint64_t instructions = 0, cycles = 0;
  double seconds = 0;
  std::vector<NpuJob> jobs;
  std::vector<FaultNote> faults;  // the first few
  std::string lcov;               // line coverage as an lcov tracefile, if requested
  PmuRecord pmu;                  // counters over time, if requested
  std::string refusedFile;        // a file that firmware requested without a folder being given
  std::vector<UnknownAccess> unknownPeripherals;  // the first few
  MediaOutcome media;
};

/// Loads an ELF file (untrusted) and runs it to its end. An Error: it could not be started.
Result<Outcome> runElf(const std::filesystem::path& file, const Options& options);
/// The same for the bytes of one; errors call it `name`.
Result<Outcome> runElf(ByteSpan bytes, const std::string& name, const Options& options);

}  // namespace carina::platform
