// SPDX-License-Identifier: Apache-2.0
// Maps addresses to memory: for the CPU's platform, the loader and the NPU.
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
  /// As seen by the NPU: without the tightly coupled memories of the core.
  std::byte* resolve(uint64_t address, uint64_t length, npu::Access access) override;

  /// Name of the memory at an address, empty if there is none.
  std::string_view nameOf(uint32_t address) const;

  struct Mapping {
    const RamBlock* block;
    uint64_t offset;  // in the guest memory
  };
  const std::vector<Mapping>& mappings() const { return mappings_; }
  GuestMemory& memory() { return memory_; }

 private:
  explicit Bus(GuestMemory memory) : memory_(std::move(memory)) {}
  /// The mapping that contains [address, address + length), and its offset there.
  const Mapping* at(uint64_t address, uint64_t length, uint64_t* offset) const;

  GuestMemory memory_;
  std::vector<Mapping> mappings_;
};

}  // namespace carina::platform
