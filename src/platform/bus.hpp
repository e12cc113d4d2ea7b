// SPDX-License-Identifier: Apache-2.0
// Addresses to memory: for the CPU's platform, for loading, and for the NPU.
#pragma once

#include <optional>

#include "npu/model/model.hpp"
#include "platform/board.hpp"
#include "platform/guest_memory.hpp"

namespace carina::platform {

class Bus final : public npu::Memory {
 public:
  /// Guest memory for all blocks of the board.
  static Result<Bus> create(const Board& board);

  /// Host bytes of [address, address + length), null unless all of it is memory. length may be 0.
  std::byte* find(uint64_t address, uint64_t length) const;
  std::optional<uint32_t> load32(uint32_t address) const;
  bool store32(uint32_t address, uint32_t value) const;
  /// As the NPU sees it: without the tightly coupled memories of the core.
  std::byte* resolve(uint64_t address, uint64_t length, npu::Access access) override;

  /// Name of the memory at an address, empty where there is none.
  std::string_view nameOf(uint32_t address) const;

  struct Mapping {
    const RamBlock* block;
    uint64_t offset;  // in the guest memory
  };
  const std::vector<Mapping>& mappings() const { return mappings_; }
  GuestMemory& memory() { return memory_; }

 private:
  explicit Bus(GuestMemory memory) : memory_(std::move(memory)) {}
  /// The mapping that [address, address + length) lies in, and where in it.
  const Mapping* at(uint64_t address, uint64_t length, uint64_t* offset) const;

  GuestMemory memory_;
  std::vector<Mapping> mappings_;
};

}  // namespace carina::platform
