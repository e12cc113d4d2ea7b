// SPDX-License-Identifier: Apache-2.0
// Builds firmware from the given bytes: an ELF file with segments, a vector table, an entry point and code,
// executed on one of the boards with all its devices. A few bytes of the file are then changed, so that most
// images run and some are malformed. Nothing may access memory outside the board's or run forever.
#include <array>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "npu/targets/target.hpp"
#include "platform/platform.hpp"
#include "target.hpp"

namespace carina::firmware_fuzz {

namespace {
using namespace carina::platform;

constexpr uint64_t kInstructions = 20'000, kCycles = 2'000'000;
constexpr double kSeconds = 10;
constexpr size_t kMostBytes = 16384;
constexpr uint32_t kVectors = 16 + 64;

/// The boards with small memories, because a run begins by building tables of all memory.
class SmallBoards {
 public:
  SmallBoards() {
    for (const Board& board : allBoards()) {
      auto& blocks = blocks_[boards_.size()];
      blocks.assign(board.ram.begin(), board.ram.end());
      for (RamBlock& block : blocks) block.size = 1 << 17;
      boards_.push_back(board);
      boards_.back().ram = blocks;
    }
  }
  const Board& at(uint32_t number) const { return boards_[number % boards_.size()]; }

 private:
  std::array<std::vector<RamBlock>, 4> blocks_;
  std::vector<Board> boards_;
};

/// Takes numbers from the front of the bytes; 0 when none are left.
class Source {
 public:
  explicit Source(ByteSpan bytes) : bytes_(bytes) {}
  uint32_t take(size_t size) {
    uint32_t value = 0;
    for (size_t i = 0; i < size; ++i) {
      if (bytes_.empty()) break;
      value |= std::to_integer<uint32_t>(bytes_[0]) << 8 * i;
      bytes_ = bytes_.subspan(1);
    }
    return value;
  }
  ByteSpan rest(size_t size) {
    const ByteSpan part = bytes_.first(std::min(size, bytes_.size()));
    bytes_ = bytes_.subspan(part.size());
    return part;
  }

 private:
  ByteSpan bytes_;
};

void put(std::string& to, uint32_t value, size_t size) {
  for (size_t i = 0; i < size; ++i) to += static_cast<char>(value >> 8 * i & 0xff);
}

struct Segment {
  uint32_t address = 0;
  std::string bytes;
};

/// A 32-bit Arm executable of these segments.
std::string elfOf(const std::vector<Segment>& segments, uint32_t entry) {
  constexpr uint32_t kHeader = 52, kProgramHeader = 32, kArm = 40, kHardFloat = 0x05000400;
  std::string file(
      "\x7f"
      "ELF\1\1\1",
      7);
  file.resize(16);
  put(file, 2, 2);
  put(file, kArm, 2);
  for (const uint32_t word : {1u, entry, kHeader, 0u, kHardFloat}) put(file, word, 4);
  for (const uint32_t half : {kHeader, kProgramHeader, static_cast<uint32_t>(segments.size()), 40u, 0u, 0u})
    put(file, half, 2);
  uint32_t offset = kHeader + kProgramHeader * static_cast<uint32_t>(segments.size());
  for (const Segment& segment : segments) {
    const auto size = static_cast<uint32_t>(segment.bytes.size());
    for (const uint32_t word : {1u, offset, segment.address, segment.address, size, size, 7u, 4u})
      put(file, word, 4);
    offset += size;
  }
  for (const Segment& segment : segments) file += segment.bytes;
  return file;
}

/// An address for code and data, in the board's memory or next to it.
uint32_t addressOf(const Board& board, Source& source) {
  const RamBlock& block = board.ram[source.take(1) % board.ram.size()];
  const uint32_t offset = source.take(2) * 4;
  return (source.take(1) & 1) != 0 ? block.alias + offset : block.address + offset;
}

struct Image {
  std::string file;
  bool plain = false;  // only the code may be malformed
};

Image imageOf(const Board& board, Source& source) {
  std::vector<Segment> segments(2 + source.take(1) % 3);
  Segment& vectors = segments[0];
  vectors.address = board.vectorTable;
  Segment& code = segments[1];
  code.address = board.vectorTable + 4 * kVectors;
  const uint32_t entry = code.address + (source.take(1) & 0x3e) + 1;
  put(vectors.bytes, board.ram[2].address + 0x8000, 4);
  put(vectors.bytes, entry, 4);
  for (uint32_t i = 2; i < kVectors; ++i) put(vectors.bytes, code.address + (source.take(1) & 0xfe) + 1, 4);
  for (size_t i = 2; i < segments.size(); ++i) {
    segments[i].address = addressOf(board, source);
    segments[i].bytes = std::string(asText(source.rest(source.take(1))));
  }
  const uint32_t changes = source.take(1) % 4;
  std::array<std::array<uint32_t, 2>, 4> change{};
  for (uint32_t i = 0; i < changes; ++i) change[i] = {source.take(1), source.take(1)};
  code.bytes = std::string(asText(source.rest(kMostBytes)));
  std::string file = elfOf(segments, entry);
  for (uint32_t i = 0; i < changes; ++i) file[change[i][0] % file.size()] = static_cast<char>(change[i][1]);
  return {std::move(file), changes == 0 && segments.size() == 2};
}

Options optionsOf(const Board& board, uint32_t bits) {
  static const npu::Machine u55 = *npu::makeMachine("ethos-u55-128", "", ""),
                            u65 = *npu::makeMachine("ethos-u65-256", "", ""),
                            u85 = *npu::makeMachine("ethos-u85-128", "", "");
  Options options;
  options.board = &board;
  options.machine = board.npus[0] == npu::Family::U85 ? u85 : board.npus[0] == npu::Family::U55 ? u55 : u65;
  options.model.parallel = false;
  options.model.maxOperationWork = options.model.maxRunWork = 1 << 24;
  options.model.maxOperationBytes = 1 << 26;
  options.model.maxCommands = 1 << 12;
  options.secondsLimit = kSeconds;
  options.instructionsLimit = kInstructions;
  options.cyclesLimit = kCycles;
  options.timingAdapters = (bits & 1) != 0;
  options.pmuInterval = (bits & 2) != 0 ? 5000 : 0;
  if ((bits & 4) != 0) options.cpuTrace = [](const std::string&) {};
  if ((bits & 8) != 0) options.trace = [](const std::string&) {};
  if ((bits & 16) != 0) {
    options.uartInput = [n = 0]() mutable { return n < 100 ? n++ : -1; };
    options.media.frames = options.media.soundOut = true;
    options.media.soundIn = Wave{1, 48'000, 24, std::vector<uint8_t>(300, 7)};
    options.media.events =
        *readBoardEvents("0 touch 1 2\n1 release\n1 gpio 0.3 1\n2 switch 1 1\n2 signal 3 1\n");
    const Picture picture{2, 2, std::vector<uint8_t>(12, 9)};
    options.media.streams = {{0, StreamDriver::Audio, true, false, *options.media.soundIn},
                             {1, StreamDriver::VStream, true, true, std::vector<Picture>{picture}},
                             {2, StreamDriver::VStream, true, false, *options.media.soundIn},
                             {4, StreamDriver::Video, true, true, std::vector<Picture>{picture}},
                             {5, StreamDriver::Data, true, false, std::vector<uint8_t>(99, 1)}};
  }
  return options;
}

}  // namespace

CARINA_FUZZ_TARGET(firmware) {
  if (size > kMostBytes) return 0;
  Source source(ByteSpan(reinterpret_cast<const std::byte*>(data), size));
  static const SmallBoards boards;
  const Board& board = boards.at(source.take(1));
  const Options options = optionsOf(board, source.take(1));
  const Image image = imageOf(board, source);
  const auto outcome = runElf(asBytes(image.file), "image", options);
  if (image.plain && !outcome.ok()) __builtin_trap();  // such images are executed
  // The limit is checked at the end of a block.
  if (outcome.ok() && outcome->instructions > kInstructions + 1000) __builtin_trap();
  return 0;
}

}  // namespace carina::firmware_fuzz
