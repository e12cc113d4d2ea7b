// SPDX-License-Identifier: Apache-2.0
// The runtime's Device, backed by the NPU model: host buffers get addresses on the model's bus.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "base/work_budget.hpp"
#include "carina/device.hpp"
#include "npu/model/model.hpp"

namespace carina::device {

class HostDevice final : public rt::Device {
 public:
  HostDevice(const npu::Machine& machine, const npu::ModelOptions& options)
      : options_(options), npu_(machine, memory_, options) {}
  ~HostDevice() = default;

  uint32_t read32(uint32_t offset) override { return npu_.read32(offset); }
  void write32(uint32_t offset, uint32_t value) override { npu_.write32(offset, value); }
  bool map(const void* host, size_t bytes, rt::Access access, uint64_t* busAddress) override;
  void unmap(const void* host, size_t bytes) override;
  /// Runs the model until it raises its interrupt; Timeout if it stops without one. The memory limit of an
  /// operation follows from the mapped memory (npu::operationBytesFor()).
  rt::Wait wait(uint32_t milliseconds) override;

  /// From now on, jobs take their steps from `budget`, which must outlive the device.
  void share(WorkBudget& budget) { budget_ = &budget; }

  npu::Npu& npu() { return npu_; }
  /// Results of the latest job, kept across the reset that follows a fault.
  const npu::RunStats& stats() const { return stats_; }
  const std::optional<npu::Fault>& fault() const { return fault_; }
  const std::vector<npu::Finding>& findings() const { return findings_; }

 private:
  npu::ModelOptions options_;
  WorkBudget* budget_ = nullptr;
  npu::MappedMemory memory_;
  npu::Npu npu_;
  struct Mapping {
    uint64_t address, bytes;
    rt::Access access;
  };
  std::multimap<const void*, Mapping> mapped_;
  uint64_t next_ = kBase;
  npu::RunStats stats_;
  std::optional<npu::Fault> fault_;
  std::vector<npu::Finding> findings_;

  /// Not 0, so that an address that was never set does not hit a buffer.
  static constexpr uint64_t kBase = 0x20000000;
};

}  // namespace carina::device
