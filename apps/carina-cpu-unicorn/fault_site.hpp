// SPDX-License-Identifier: MIT OR Apache-2.0
// Which instruction of a basic block made a memory access. Unicorn reports the address of a failed access and
// the registers as they stand, but the program counter of the block's start.
#pragma once

#include <cstdint>
#include <optional>

/// Bytes that a Thumb load or store touches: [address, address + size).
struct Access {
  uint32_t address, size;
  bool store;
};

/// The access of the instruction `first`, `second` (its second halfword, if it has one) at `pc`, with
/// registers as before its execution; nothing when it makes none.
std::optional<Access> accessOf(uint16_t first, uint16_t second, uint32_t pc, const uint32_t registers[16]);

/// The first instruction of `code` (`size` bytes at `start`) that loads from or stores to `address`.
std::optional<uint32_t> findAccess(const uint8_t* code, uint32_t size, uint32_t start, uint32_t address,
                                   bool store, const uint32_t registers[16]);

/// Whether a Thumb instruction has a second halfword.
constexpr bool isWide(uint16_t first) {
  return (first >> 11) >= 0x1d;
}
