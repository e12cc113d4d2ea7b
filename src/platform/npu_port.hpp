// SPDX-License-Identifier: Apache-2.0
// The NPU's way to the memories: past their protection controllers, as Secure or not as the NPU was reset.
#pragma once

#include <functional>
#include <vector>

#include "platform/access_gates.hpp"
#include "platform/bus.hpp"

namespace carina::platform {

class NpuPort final : public npu::Memory {
 public:
  explicit NpuPort(Bus& bus) : bus_(bus) {}

  /// From now on transactions pass `gates`; `secure` says what the NPU's are (PROT.active_CSL).
  void close(AccessGates& gates, std::function<bool()> secure) {
    gates_ = &gates;
    secure_ = std::move(secure);
  }

  /// Null also where a controller refuses a block with a bus error. Where it refuses without one, what is
  /// refused reads 0 and keeps what it has: then the bytes are a stand-in (at most kMostBytes of them in a
  /// job).
  std::byte* resolve(uint64_t address, uint64_t length, npu::Access access) override;
  /// Brings what was written to stand-ins to the blocks that take it; after each operation.
  void settle();
  /// Forgets the stand-ins; before a job.
  void forget() { standIns_.clear(); }

  static constexpr uint64_t kMostBytes = uint64_t{1} << 28;

 private:
  struct StandIn {
    uint64_t address;
    npu::Access access;
    std::vector<std::byte> bytes;
  };
  /// Calls `visit` with each part of [address, address + length) that lies in one block.
  template <typename Visit>
  void eachBlock(uint64_t address, uint64_t length, Visit visit) const;
  bool open(uint64_t address) const { return gates_->open(static_cast<uint32_t>(address), secure_()); }

  Bus& bus_;
  AccessGates* gates_ = nullptr;
  std::function<bool()> secure_;
  std::vector<StandIn> standIns_;
};

}  // namespace carina::platform
