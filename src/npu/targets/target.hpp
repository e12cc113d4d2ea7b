// SPDX-License-Identifier: Apache-2.0
// Compilation targets: NPU variants, system configurations (memories and their speed) and memory modes (what
// is placed where). Stock names are those of vela.ini; the same grammar is read from a file with --config.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "npu/targets/architecture.hpp"

namespace carina::npu {

std::string_view familyName(Family family);  // "Ethos-U55"

/// Memory for tables.
constexpr uint64_t kTableMemoryBytes = 2048;

/// One NPU variant. Values from ethosu-architecture 1.1.
struct Target {
  std::string_view name;  // "ethos-u55-128"
  Family family;
  int32_t macs;              // 8x8-bit MACs per cycle, all cores
  int32_t cores;             // U55 1, U65-512 2 (each with its own weight and scale stream)
  int32_t weightStreams;     // weight streams per operation: U55/U65 = cores, U85 = weight decoders
  int32_t shramKiB;          // per core; 0 on U85, which has separate RAMs
  int32_t lutReservedBanks;  // U55/U65: SHRAM banks kept for tables (0 on U55-32/64)
  uint32_t configWord;       // CONFIG register, as it is written into the payload
  uint32_t idWord;           // architecture version written into the payload
  std::string_view defaultSystemConfig;
  std::string_view defaultMemoryMode;

  bool isU85() const { return family == Family::U85; }
  /// The capabilities of its generation.
  const Architecture& architecture() const { return architectureOf(family); }
  /// Inputs, accumulators and tables share one SHRAM per core.
  bool hasShram() const { return shramKiB > 0; }
  /// Size of the internal memory that DMA can access: the SHRAM, or the table memory.
  uint64_t internalBytes() const {
    return hasShram() ? static_cast<uint64_t>(shramKiB) * 1024 : kTableMemoryBytes;
  }
  /// Start of the tables, which are at the end of internal memory.
  uint64_t tableMemoryStart() const { return internalBytes() - kTableMemoryBytes; }
  /// The accumulators of operations without a table overwrite the tables.
  bool tablesShareAccumulators() const { return hasShram() && lutReservedBanks == 0; }
  int32_t maxOutstandingKernels() const { return 2; }
};

std::span<const Target> allTargets();
/// Error lists the known names.
Result<const Target*> findTarget(std::string_view name);
/// By the CONFIG word of a compiled program; null if unknown.
const Target* targetByConfig(uint32_t configWord);

/// Kind of physical memory.
enum class MemoryKind : uint8_t { Sram, Dram, OnChipFlash, OffChipFlash };
std::string_view memoryKindName(MemoryKind kind);

/// One memory behind an AXI port group. Latencies in NPU cycles, bursts in bytes.
struct MemoryTiming {
  MemoryKind kind = MemoryKind::Sram;
  double clockScale = 1.0;  // bandwidth per port = axiBytes * clockScale bytes per NPU cycle
  int32_t ports = 1;
  int32_t burst = 64;
  int32_t readLatency = 1, writeLatency = 1;
  int32_t maxReads = 1, maxWrites = 1;  // outstanding transactions
  /// A timing adapter alternates between accepting addresses for pulseOn cycles and none for pulseOff cycles;
  /// the first pulse of a stream lasts firstPulse cycles. Without pulses it always accepts them.
  int32_t pulseOn = 0, pulseOff = 0, firstPulse = 0;
};

struct SystemConfig {
  std::string name;
  Family family;
  double clockHz = 5e8;
  std::array<MemoryTiming, 2> ports;  // [0] = AXI0/SRAM port group, [1] = AXI1/EXT port group
};

/// The three memory areas of a compiled program; MemoryMode maps each to a port.
enum class Area : uint8_t {
  Constants,  // weights, scales, tables, constant tensors: region 0, read-only
  Arena,      // feature maps, inputs, outputs: region 1 (scratch)
  Cache,  // staging for weights and hot feature maps: region 2 (fast scratch) if it is not the arena's memory
};

struct MemoryMode {
  std::string name;
  uint8_t constantsPort = 1, arenaPort = 0, cachePort = 0;  // index into SystemConfig::ports
  int64_t cacheBytes = 0;  // hard limit of the cache in spilling modes; 0 = no limit

  /// Dedicated modes: a fast cache memory in front of an arena in slow memory.
  bool spilling() const { return cachePort != arenaPort; }
  /// Staging weights pays off: constants are behind a different port than the cache.
  bool slowConstants() const { return constantsPort != cachePort; }
  uint8_t port(Area area) const {
    return area == Area::Constants ? constantsPort : area == Area::Arena ? arenaPort : cachePort;
  }
};

std::span<const SystemConfig> stockSystemConfigs();
std::span<const MemoryMode> stockMemoryModes();
/// Whether the target supports the memory mode (U55: Sram_Only, Shared_Sram).
bool supportsMemoryMode(const Target& target, const MemoryMode& mode);

/// A target with its memory system, as used by the compiler, the timing model and the reports.
struct Machine {
  const Target* target = nullptr;
  SystemConfig system;
  MemoryMode memory;

  const MemoryTiming& timing(Area area) const { return system.ports[memory.port(area)]; }
};

/// Empty names select the target's defaults; `iniFile` (may be empty) is searched before the stock
/// configurations. Errors list the choices for this target.
Result<Machine> makeMachine(std::string_view targetName, std::string_view systemConfig,
                            std::string_view memoryMode, const std::filesystem::path& iniFile = {});

}  // namespace carina::npu
