// SPDX-License-Identifier: Apache-2.0
// The NPU model: bit-exact execution of any Ethos-U55, U65 or U85 command stream. Npu is the device as its
// driver sees it (registers, interrupt, bus); runStream is a shortcut for compilers and tests.
// docs/npu-model.md describes what is modelled and how certain each part is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "npu/isa/operation.hpp"
#include "npu/targets/target.hpp"
#include "npu/timing/timing.hpp"

namespace carina::npu {

enum class Access : uint8_t { Read, Write };

/// Memory behind the NPU's bus.
class Memory {
 public:
  virtual ~Memory() = default;
  /// Host bytes of bus addresses [address, address + length), which must be in one mapping that allows
  /// `access`; null otherwise. Stays valid until the run ends. length > 0.
  virtual std::byte* resolve(uint64_t address, uint64_t length, Access access) = 0;
};

/// Memory composed of mapped ranges, which suits most users.
class MappedMemory final : public Memory {
 public:
  /// The bus addresses of ranges must not overlap. A read-only range rejects writes.
  void map(uint64_t address, std::span<std::byte> bytes, bool writable = true);
  void map(uint64_t address, std::span<const std::byte> bytes);
  void unmap(uint64_t address);
  std::byte* resolve(uint64_t address, uint64_t length, Access access) override;

 private:
  struct Range {
    uint64_t address, length;
    std::byte* bytes;
    bool writable;
  };
  std::vector<Range> ranges_;  // by address
};

enum class FaultKind : uint8_t {
  Parse,         // STATUS.cmd_parse_error: illegal command, field or combination
  Bus,           // STATUS.bus_status: access outside mapped memory
  WeightStream,  // STATUS.wd_fault (U55/U65): corrupt weight stream
  Branch,        // STATUS.branch_fault (U85)
  Limit,         // larger than the model's options allow (reported as a parse error in STATUS)
};
const char* faultKindName(FaultKind kind);

/// Why a run ended early.
struct Fault {
  FaultKind kind = FaultKind::Parse;
  uint32_t offset = 0;  // of the command, bytes from QBASE
  std::string reason;
  uint8_t channel = 0;  // STATUS.faulting_channel of a bus fault: 0 command, 1 IFM, 2 weights, 3 scales, 4
                        // DMA read, 8 OFM, 9 DMA write
  std::string str() const;
};

/// A finding of the checker: legal for the model, wrong or risky on hardware.
struct Finding {
  enum class Kind : uint8_t {
    Hazard,       // an unfinished operation still uses the memory: a wait is missing or BLOCKDEP is too large
    Alignment,    // base, stride, length or stream that the hardware does not accept
    BlockConfig,  // block or microblock that does not fit the internal memories
    Uninitialized,  // reads memory that nothing has written
    StaleState,     // uses a register that no command has set
    OutOfRegion,    // reaches beyond its region, or writes a read-only one
    Table,          // the table memory does not hold the table that the operation uses
    Padding,        // most windows contain only padding
    Extent,         // inconsistent maps: elements or rows that overlap
    Command,        // not a command of this NPU, or a stream without STOP
  };
  Kind kind = Kind::Hazard;
  uint32_t offset = 0;
  std::string message;
};
const char* findingKindName(Finding::Kind kind);  // "hazard", "alignment", ...

/// Memory that holds data before a run: a program's inputs.
struct InitializedRange {
  uint8_t region = 0;
  uint64_t offset = 0, length = 0;
};

struct ModelOptions {
  bool timing = true;  // keep the time line (cycles, PMU, per-operation costs)
  bool check = false;  // look for missing waits, misalignment, illegal blocks, reads of uninitialised memory
  bool parallel = true;                          // use all cores (oneTBB); results do not depend on it
  int64_t maxOperationWork = int64_t{1} << 40;   // multiply-accumulates or elements of one operation
  int64_t maxOperationBytes = int64_t{1} << 31;  // temporary memory of one operation
  int64_t maxCommands = int64_t{1} << 26;        // of one run: ends infinite branch loops
  int64_t maxRunWork =
      int64_t{1} << 37;  // steps of one run, each about a nanosecond of one core: model/work.hpp
  /// For the checker: memory that may be read although no command wrote it. Read-only regions of runStream
  /// may always be read.
  std::vector<InitializedRange> initialized;
};

struct RunStats {
  int64_t commands = 0, kernelOperations = 0, dmaOperations = 0;
  int64_t work = 0;   // steps counted against ModelOptions::maxRunWork
  int64_t macs = 0;   // useful multiply-accumulates
  Cycles cycles = 0;  // estimate; 0 without options.timing
  PmuCounts pmu;
  /// The first kMaxRecorded kernels and transfers; counts, cycles and PMU cover all of them.
  std::vector<ScheduledCost> operations;
  static constexpr size_t kMaxRecorded = size_t{1} << 18;
};

struct RunResult {
  RunStats stats;
  std::optional<Fault> fault;
  std::vector<Finding> findings;
  bool ok() const { return !fault; }
};

/// Limit on the temporary memory of one operation of an untrusted program, by the memory that it can access.
constexpr int64_t operationBytesFor(uint64_t memoryBytes) {
  constexpr uint64_t kMost = uint64_t{1} << 40;
  return (int64_t{1} << 27) + 8 * static_cast<int64_t>(memoryBytes < kMost ? memoryBytes : kMost);
}

/// One of the eight regions of a program; empty if unused.
struct RegionBytes {
  std::span<std::byte> bytes;
  bool writable = true;
};

/// Runs a command stream to its STOP on regions given as host memory. The stream's words are not modified;
/// regions that alias each other (fast scratch = scratch) are allowed.
RunResult runStream(std::span<const uint32_t> words, const Machine& machine,
                    std::span<const RegionBytes> regions, const ModelOptions& options = {});

/// The device: registers as listed in ethosu-isa.json. Not thread-safe.
class Npu {
 public:
  /// `memory` must outlive the device.
  Npu(const Machine& machine, Memory& memory, const ModelOptions& options = {});
  ~Npu();
  Npu(Npu&&) noexcept;
  Npu& operator=(Npu&&) noexcept;

  /// Offsets are byte offsets in the 4 KiB (U55/U65) or 8 KiB (U85) register window; unknown or misaligned
  /// ones read 0 and ignore writes. Writing CMD with bit 0 starts execution; step() or run() then do the
  /// work.
  uint32_t read32(uint32_t offset);
  void write32(uint32_t offset, uint32_t value);

  /// Level of the interrupt line.
  bool interrupt() const;
  /// STATUS.state: a stream is being executed.
  bool running() const;

  /// Executes one command; false if nothing is running (any more). Bounded by options.maxOperationWork.
  bool step();
  /// Steps until stopped, faulted or `maxCommands` are executed (negative: no limit). Returns running().
  bool run(int64_t maxCommands = -1);

  /// Cycles of the current run so far; 0 without options.timing.
  Cycles elapsed() const;
  /// PMU counts of the current run so far; zeros without options.timing.
  PmuCounts counts() const;
  /// Results of the latest run that has ended.
  const RunStats& stats() const;
  const std::optional<Fault>& fault() const;
  const std::vector<Finding>& findings() const;
  const Machine& machine() const;
  /// Sets the memories that the time line assumes (the program's system config and memory mode).
  void setMachine(const Machine& machine);
  /// Sets ModelOptions::maxRunWork and maxOperationBytes, from the next run on.
  void setLimits(int64_t runWork, int64_t operationBytes);
  /// Sets ModelOptions::initialized for the checker, from the next run on. Read-only regions may always be
  /// read.
  void setInitialized(std::vector<InitializedRange> ranges);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace carina::npu
