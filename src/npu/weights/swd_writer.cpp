// SPDX-License-Identifier: Apache-2.0
// A slice is a series of chunks. Each holds the next positions of the unary parts of weights and of zero
// runs, and the remainders of the symbols that the previous chunk completed: four bit strings for the whole
// slice, which are produced one by one and distributed over the chunks.
#include "npu/weights/swd_writer.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "npu/weights/swd_kernels.hpp"

namespace carina::npu::swd {
namespace {
constexpr size_t kSlack = 16;  // bytes past the last bit that cursors and sources access

void putRunUnary(const SliceRuns& runs, BitCursor& out) {
  for (size_t n = 0; n < runs.count; ++n) {
    uint32_t quotient = runs.values[n] >> runs.mode;
    for (; quotient >= 32; quotient -= 32) out.put(UINT32_MAX, 32);
    out.put((uint64_t{1} << quotient) - 1, static_cast<int>(quotient) + 1);
  }
}

void putRunRests(const SliceRuns& runs, BitCursor& out) {
  for (size_t n = 0; n < runs.count; ++n) out.put(runs.values[n] & ((1u << runs.mode) - 1), runs.mode);
}

uint64_t unaryBits(const SliceRuns& runs) {
  uint64_t bits = runs.count;
  for (size_t n = 0; n < runs.count; ++n) bits += runs.values[n] >> runs.mode;
  return bits;
}

}  // namespace

BitCursor StreamWriter::Buffer::start(uint64_t bits) {
  const size_t needed = static_cast<size_t>(bits / 8) + kSlack;
  if (bytes_.size() < needed) bytes_.resize(needed);
  return {bytes_.data()};
}

BitSource StreamWriter::Buffer::end(BitCursor cursor) {
  cursor.put(0, BitCursor::kMaxBits);
  return {bytes_.data()};
}

StreamWriter::StreamWriter(uint64_t bits)
    : bytes_(static_cast<size_t>(bits / 8) + kSlack), out_{bytes_.data()} {}

void StreamWriter::writeHeader(const CodedSection& section, const Slice& slice, bool newPalette) {
  const PaletteChoice& palette = section.code.palette;
  out_.put(section.code.zeroRuns ? static_cast<uint32_t>(slice.zeroRunMode) : 6u, 3);
  out_.put(slice.end - slice.begin - 1, 15);
  out_.put(static_cast<uint32_t>(slice.indexCode.divisor), 3);
  out_.put(slice.indexCode.truncated ? 1 : 0, 1);
  out_.put(newPalette ? 1 : 0, 1);
  if (!newPalette) return;
  out_.put(static_cast<uint32_t>(palette.directOffset), 5);
  out_.put(palette.entries.empty() ? 0 : palette.entries.size() - 1, 5);
  out_.put(static_cast<uint32_t>(palette.bits - 2), 3);
  for (const uint16_t entry : palette.entries) out_.put(entry, palette.bits);
}

void StreamWriter::write(const CodedSection& section, const Slice& slice, bool newPalette) {
  writeHeader(section, slice, newPalette);
  const IndexCode code = slice.indexCode;
  SliceWeights weights{section.values.data() + slice.begin,
                       slice.end - slice.begin,
                       section.indexOf.data(),
                       code.divisor,
                       code.divisor,
                       code.truncated};
  if (weights.raw()) weights.restBits = section.code.palette.rawBits();
  SliceBits bits;
  if (!weights.raw()) {
    BitCursor cursor = unary_.start(weights.count * (kMaxQuotient + 1));
    putUnary(weights, cursor);
    bits.unary = unary_.end(cursor);
  }
  BitCursor cursor = rests_.start(weights.count * static_cast<uint64_t>(weights.restBits));
  putRests(weights, cursor);
  bits.rests = rests_.end(cursor);
  SliceRuns runs;
  if (section.code.zeroRuns) {
    const uint32_t first = newPalette ? 0 : slice.begin + 1;
    runs = {section.runs.data() + first, slice.end + 1 - first, slice.zeroRunMode};
    cursor = runUnary_.start(unaryBits(runs));
    putRunUnary(runs, cursor);
    bits.runUnary = runUnary_.end(cursor);
    cursor = runRests_.start(runs.count * static_cast<uint64_t>(runs.mode));
    putRunRests(runs, cursor);
    bits.runRests = runRests_.end(cursor);
  }
  putChunks(weights, runs, bits, out_);
}

void StreamWriter::write(const CodedSection& section, std::span<const Slice> slices) {
  for (const Slice& slice : slices) write(section, slice, slice.begin == 0);
}

std::vector<uint8_t> StreamWriter::finish() {
  out_.put(7, 3);
  if (out_.filled > 0) out_.put(0xffu >> out_.filled, 8 - out_.filled);
  const auto used = static_cast<size_t>(out_.at - bytes_.data());
  CARINA_CHECK(used + sizeof(out_.pending) <= bytes_.size(), "sections are as long as planned");
  bytes_.resize(used);
  return std::move(bytes_);
}

}  // namespace carina::npu::swd
