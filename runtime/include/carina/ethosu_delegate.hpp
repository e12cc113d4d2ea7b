// SPDX-License-Identifier: Apache-2.0
// The "EthosUBackend" delegate: reads the blob as ExecuTorch's backend of that name does, copies inputs into
// the scratch arena, runs the command stream, copies outputs back.
#pragma once

#include "carina/backend.hpp"
#include "carina/ethosu_driver.hpp"

namespace carina::rt {

class EthosUDelegate final : public Backend {
 public:
  /// `fastScratch` is the on-chip memory for region 2 (Dedicated_Sram), aligned to 16; may be empty. Without
  /// a driver programs can be checked but not executed.
  explicit EthosUDelegate(EthosUDriver* driver, MutableBytes fastScratch = {})
      : only_(driver), drivers_(&only_, driver != nullptr ? 1 : 0), fast_(fastScratch) {}
  /// Several NPUs: each delegate call goes to the first open driver whose NPU it was compiled for.
  explicit EthosUDelegate(Span<EthosUDriver* const> drivers, MutableBytes fastScratch = {})
      : drivers_(drivers), fast_(fastScratch) {}
  EthosUDelegate(const EthosUDelegate&) = delete;
  EthosUDelegate& operator=(const EthosUDelegate&) = delete;
  ~EthosUDelegate() = default;

  const char* id() const override { return "EthosUBackend"; }
  /// Four spans into the blob, the scratch size and the index of the driver.
  static constexpr size_t kStateBytes = 4 * sizeof(Bytes) + 8;
  size_t stateBytes() const override { return kStateBytes; }
  Status prepare(Bytes blob, const NamedData& named, void* state, size_t* temporaryBytes) override;
  Status checkCall(const void* state, Span<const Value> values, Span<const int32_t> arguments) const override;
  Status execute(void* state, Span<Value> values, Span<const int32_t> arguments, Arena& temporary) override;

  /// Number of inputs among a delegate call's arguments; prepare() must have filled `state`.
  uint32_t inputCount(const void* state) const;

  /// Sums over the jobs run since construction; `counter` as in PmuSetup::events.
  uint64_t cycles() const { return cycles_; }
  uint64_t events(uint32_t counter) const { return events_[counter]; }
  uint32_t jobs() const { return jobs_; }

 private:
  Status choose(Bytes payload, uint32_t* driver) const;

  EthosUDriver* only_ = nullptr;
  Span<EthosUDriver* const> drivers_;
  MutableBytes fast_;
  uint64_t cycles_ = 0;
  uint64_t events_[kMaxPmuCounters] = {};
  uint32_t jobs_ = 0;
};

}  // namespace carina::rt
