// SPDX-License-Identifier: Apache-2.0
// Loads an image into the board's memory.
#pragma once

#include <filesystem>

#include "platform/bus.hpp"
#include "platform/elf.hpp"

namespace carina::platform {

/// Copies every segment to its load address; fails if the board has no memory there.
Status loadImage(const ElfImage& image, const Bus& bus);
/// Copies a file to an address.
Status loadData(const std::filesystem::path& file, uint32_t address, const Bus& bus);
/// The address of the vector table, with the initial stack pointer and program counter: `chosen`, or a loaded
/// table that points to the image's entry: the section .vectors, the board's default address, the start of a
/// segment.
Result<uint32_t> findVectorTable(const ElfImage& image, const Board& board, const Bus& bus,
                                 std::optional<uint32_t> chosen);

}  // namespace carina::platform
