// SPDX-License-Identifier: Apache-2.0
// The NPU's path to the memories, through their protection controllers, Secure or Non-secure as selected by
// the NPU's reset.
#pragma once

#include <functional>
#include <vector>

#include "platform/access_gates.hpp"
#include "platform/bus.hpp"

namespace carina::platform {

class NpuPort final : public npu::Memory {
 public:
  explicit NpuPort(Bus& bus) : bus_(bus) {}

  /// Routes transactions through `gates`; `secure` returns whether the NPU's are Secure (PROT.active_CSL).
  void close(AccessGates& gates, std::function<bool()> secure) {
    gates_ = &gates;
    secure_ = std::move(secure);
  }

  /// Also null if a controller rejects a block with a bus error. Blocks that are rejected without one are
  /// RAZ/WI: the result is then a stand-in for the bytes (at most kMostBytes of them per job).
  std::byte* resolve(uint64_t address, uint64_t length, npu::Access access) override;
  /// Copies what was written to stand-ins to the blocks that accept it; to be called after each operation.
  void settle();
  /// Discards the stand-ins; to be called before a job.
  void forget() { standIns_.clear(); }

  static constexpr uint64_t kMostBytes = uint64_t{1} << 28;

 private:
  struct StandIn {
    uint64_t address;
    npu::Access access;
    std::vector<std::byte> bytes;
  };
  /// Calls `visit` with each part of [address, address + length) that is in one block.
  template <typename Visit>
  void eachBlock(uint64_t address, uint64_t length, Visit visit) const;
  bool open(uint64_t address) const { return gates_->open(static_cast<uint32_t>(address), secure_()); }

  Bus& bus_;
  AccessGates* gates_ = nullptr;
  std::function<bool()> secure_;
  std::vector<StandIn> standIns_;
};

}  // namespace carina::platform
