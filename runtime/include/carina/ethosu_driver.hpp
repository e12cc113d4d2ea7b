// SPDX-License-Identifier: Apache-2.0
// Driver for one Ethos-U55, U65 or U85: reset, power, memory attributes, jobs, faults, PMU. All state is in
// this object.
#pragma once

#include "carina/device.hpp"
#include "carina/status.hpp"

namespace carina::rt {

/// CONFIG.product of the hardware.
enum class NpuProduct : uint8_t { U55 = 0, U65 = 1, U85 = 2 };

/// How regions and the command stream use the memory ports: a value 0..3 per region (U55/U65: AXI counter,
/// 0/1 = port 0, 2/3 = port 1; U85: index of MEM_ATTR, 0/1 = SRAM, 2/3 = external).
struct RegionAttributes {
  uint8_t queue = 2;                             // QCONFIG
  uint8_t region[8] = {3, 0, 1, 1, 1, 1, 1, 1};  // REGIONCFG

  static constexpr RegionAttributes sramOnly() { return {1, {1, 0, 0, 0, 0, 0, 0, 0}}; }
  static constexpr RegionAttributes sharedSram(NpuProduct product) {
    return product == NpuProduct::U65 ? RegionAttributes{2, {3, 2, 1, 1, 1, 1, 1, 1}} : RegionAttributes{};
  }
  static constexpr RegionAttributes dedicatedSram() { return {3, {3, 3, 0, 0, 0, 0, 0, 0}}; }
};

/// One buffer of a job: region i of the command stream is regions[i].
struct Region {
  uint8_t* data = nullptr;
  size_t bytes = 0;
  Access access = Access::Read;
};

struct DriverOptions {
  bool secure = true;
  bool privileged = true;
  uint32_t timeoutMilliseconds = 60000;  // for one job; Device::kForever: none
  /// Memory attributes of regions; the product's default (Shared_Sram) if not set.
  bool hasAttributes = false;
  RegionAttributes attributes;
  /// Validates the commands of each job before the NPU receives them: validateStream() (ethosu_validator.hpp)
  /// for untrusted programs. Null: the NPU reads and writes wherever the commands say.
  Status (*validate)(uint32_t config, Span<const uint32_t> stream, Span<const Region> regions) = nullptr;
};

/// Contents of the hardware's CONFIG and ID registers.
struct NpuInfo {
  NpuProduct product;
  uint32_t config;  // CONFIG register
  uint32_t id;      // ID register
  uint32_t macsPerCycle() const { return 1u << (config & 0xfu); }
};

/// Why the last job failed: register values before the subsequent reset.
struct FaultReport {
  uint32_t status = 0;         // STATUS
  uint32_t commandOffset = 0;  // QREAD: byte offset in the command stream
  uint32_t commandWord = 0;    // the word there (0 beyond the end)

  bool busError() const { return (status & (1u << 2)) != 0; }
  bool parseError() const { return (status & (1u << 4)) != 0; }
  bool weightError() const { return (status & (1u << 7)) != 0; }  // U55, U65
  bool eccError() const { return (status & (1u << 8)) != 0; }
  bool branchError() const { return (status & (1u << 9)) != 0; }  // U85
  bool endReached() const { return (status & (1u << 5)) != 0; }
  /// 0 command, 1 IFM, 2 weights, 3 scales, 4 DMA read, 8 OFM, 9 DMA write.
  uint32_t channel() const { return (status >> 12) & 0xfu; }
};

constexpr uint32_t kMaxRegions = 8;
constexpr uint32_t kMaxPmuCounters = 8;

/// PMU event numbers are hardware ids (PMEVTYPER).
struct PmuSetup {
  uint16_t events[kMaxPmuCounters] = {};
  uint8_t count = 0;         // 0 leaves the event counters off; U55/U65 have 4, U85 has 8
  uint16_t cycleStart = 35;  // NPU_ACTIVE
  uint16_t cycleStop = 32;   // NPU_IDLE
};
struct PmuResult {
  uint64_t cycles = 0;
  uint32_t events[kMaxPmuCounters] = {};
};

class EthosUDriver {
 public:
  explicit EthosUDriver(Device& device, const DriverOptions& options = {})
      : device_(device), options_(options) {}

  /// Reads CONFIG and ID, resets, checks that the requested security level was granted. Called once before
  /// the first job.
  Status open();
  bool isOpen() const { return open_; }
  const NpuInfo& info() const { return info_; }

  /// Checks a driver payload (untrusted) against this NPU: Code::WrongTarget names what differs. `stream`
  /// becomes the command stream inside the payload.
  Status check(Bytes payload, Span<const uint32_t>* stream) const;
  /// check() without hardware: only the form of the payload. `config` and `id` are 0 if the payload has none.
  static Status parse(Bytes payload, Span<const uint32_t>* stream, uint32_t* config, uint32_t* id);

  /// Starts a job; at most one can be in flight. Regions are aligned to 16 and must not move until finish().
  Status start(Bytes payload, Span<const Region> regions);
  /// Waits for the job and completes it. After DeviceFault or DeviceTimeout, fault() has details and the NPU
  /// has been reset.
  Status finish();
  Status run(Bytes payload, Span<const Region> regions);
  /// Whether a job was started and not yet finished.
  bool busy() const { return busy_; }
  /// Whether the NPU is still working on it. If not, finish() does not wait.
  bool running();

  /// Configures the PMU for subsequent jobs. Default: `count` 0, cycles only.
  void usePmu(const PmuSetup& setup);
  const PmuResult& pmu() const { return pmu_; }
  const FaultReport& fault() const { return fault_; }

 private:
  Status reset();
  void programMemory();
  void programPmu();
  void readPmu();
  void unmapAll();
  uint32_t pmuBase() const;

  Device& device_;
  DriverOptions options_;
  NpuInfo info_{};
  FaultReport fault_;
  PmuSetup pmuSetup_;
  PmuResult pmu_;
  Span<const uint32_t> stream_;
  Region regions_[kMaxRegions];
  uint32_t regionCount_ = 0;
  bool open_ = false;
  bool busy_ = false;
};

}  // namespace carina::rt
