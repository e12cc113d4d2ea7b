// SPDX-License-Identifier: Apache-2.0
#include "platform/loader.hpp"

#include <algorithm>

#include "base/file.hpp"

namespace carina::platform {

Status loadImage(const ElfImage& image, const Bus& bus) {
  for (const ElfSegment& segment : image.segments) {
    std::byte* to = bus.find(segment.address, segment.bytes.size());
    if (to == nullptr) {
      return fail(Code::InvalidImage, "the board has no memory for {} bytes at 0x{:08x}",
                  segment.bytes.size(), segment.address)
          .withRemedy("use the linker script of this board");
    }
    std::copy(segment.bytes.begin(), segment.bytes.end(), to);
  }
  return {};
}

Status loadData(const std::filesystem::path& file, uint32_t address, const Bus& bus) {
  CARINA_TRY(const auto mapped, MappedFile::open(file));
  std::byte* to = bus.find(address, mapped->bytes().size());
  if (to == nullptr)
    return fail(Code::InvalidImage, "{} bytes do not fit the board's memory at 0x{:08x}",
                mapped->bytes().size(), address)
        .inFile(file.string())
        .withRemedy("give another address: --data FILE@0xADDRESS");
  std::copy(mapped->bytes().begin(), mapped->bytes().end(), to);
  return {};
}

Result<uint32_t> findVectorTable(const ElfImage& image, const Board& board, const Bus& bus,
                                 std::optional<uint32_t> chosen) {
  const auto entryOf = [&](uint32_t table) -> uint32_t {
    return bus.load32(table) ? bus.load32(table + 4).value_or(0) : 0;
  };
  if (chosen) {
    if ((entryOf(*chosen) & 1) == 0)
      return fail(Code::InvalidImage, "there is no vector table at 0x{:08x}", *chosen)
          .withRemedy(
              "give the address of a table whose second word is the address of the first instruction, plus "
              "1");
    return *chosen;
  }
  std::vector<uint32_t> candidates;
  if (const auto section = image.loadAddressOf(".vectors")) candidates.push_back(*section);
  candidates.push_back(board.vectorTable);
  for (const ElfSegment& segment : image.segments) candidates.push_back(segment.address);
  for (const uint32_t table : candidates) {
    if (entryOf(table) == (image.entry | 1)) return table;
  }
  // The reset vector need not be the entry point: uses the board's default address if a table is there.
  if ((entryOf(board.vectorTable) & 1) != 0) return board.vectorTable;
  return fail(Code::InvalidImage, "no vector table leads to the entry point 0x{:08x}", image.entry)
      .withRemedy("give its address with --vector-table ADDRESS");
}

}  // namespace carina::platform
