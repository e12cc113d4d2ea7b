// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as firmware: read or refused, and loaded only into memory that the board has.
#include "base/file.hpp"
#include "platform/coverage.hpp"
#include "platform/hex_file.hpp"
#include "platform/image_note.hpp"
#include "platform/loader.hpp"
#include "target.hpp"

namespace carina::elf_fuzz {

CARINA_FUZZ_TARGET(elf) {
  using namespace carina::platform;
  static const Board& board = **findBoard("corstone-300");
  static Bus bus = std::move(*Bus::create(board));
  const auto image = readElf(ByteSpan(reinterpret_cast<const std::byte*>(data), size));
  if (const auto hex = readHexFile(ByteSpan(reinterpret_cast<const std::byte*>(data), size)); hex.ok())
    (void)loadImage(imageOf(*hex), bus).ok();
  (void)readImageNote(ByteSpan(reinterpret_cast<const std::byte*>(data), size));
  if (!image.ok()) return 0;
  (void)checkForCortexM(image->attributes).ok();
  (void)image->nameOf(image->entry);
  if (const auto lines = lineTableOf(*image, ByteSpan(reinterpret_cast<const std::byte*>(data), size));
      lines.ok()) {
    const Core::Executions all{0, ~0u, 1};
    (void)lcovText(*image, *lines, std::span(&all, 1));
  }
  if (!loadImage(*image, bus).ok()) return 0;
  const auto table = findVectorTable(*image, board, bus, {});
  if (table.ok() && !bus.load32(*table + 4)) __builtin_trap();
  return 0;
}

}  // namespace carina::elf_fuzz
