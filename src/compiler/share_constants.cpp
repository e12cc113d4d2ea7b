// SPDX-License-Identifier: Apache-2.0
#include "compiler/share_constants.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "compiler/emit/hazards.hpp"
#include "compiler/program_writer.hpp"
#include "compiler/schedule/constant_pool.hpp"
#include "npu/isa/stream.hpp"

namespace carina::compiler {
namespace {

constexpr int kConstants = 0;        // region
constexpr uint64_t kAlignment = 16;  // of the data that operations read there
constexpr int64_t kMinSaving = 10;   // minimum saving: one in this many bytes

/// Bytes that operations read together, and where they are in the common region.
struct Piece {
  uint64_t begin = 0, end = 0;
  int64_t place = 0;
  std::vector<npu::AddressRange> streams;  // inside it, if it has more than one
};

/// A program whose constants are being moved.
class Moved {
 public:
  explicit Moved(CompiledProgram& program) : program_(program) {}

  /// Finds what the operations read. Overlapping ranges stay together.
  Status collect() {
    CARINA_TRY(operations_, npu::decodeStream(program_.commands, *program_.machine.target));
    std::vector<Piece> read;
    for (const npu::PlacedOperation& placed : operations_) {
      for (const MemoryRange& range : rangesOf(placed.operation)) {
        if (range.region != kConstants || range.begin == range.end) continue;
        if (range.end > program_.constants.size())
          return fail(Code::Damaged, "an operation reads byte {} of {} bytes of constants", range.end,
                      program_.constants.size());
        read.push_back({range.begin / kAlignment * kAlignment, range.end, 0, {}});
      }
    }
    // What transfers fetch in parts stays whole.
    for (const npu::AddressRange& stream : program_.streams)
      read.push_back({stream.address, stream.address + stream.length, 0, {}});
    std::sort(read.begin(), read.end(), [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
    for (const Piece& piece : read) {
      if (!pieces_.empty() && piece.begin < pieces_.back().end) {
        pieces_.back().end = std::max(pieces_.back().end, piece.end);
      } else {
        pieces_.push_back(piece);
      }
    }
    for (const npu::AddressRange& stream : program_.streams) {
      const auto after = std::upper_bound(pieces_.begin(), pieces_.end(), stream.address,
                                          [](uint64_t at, const Piece& other) { return at < other.begin; });
      Piece& piece = *std::prev(after);
      if (stream.length < piece.end - piece.begin) piece.streams.push_back(stream);
    }
    return {};
  }

  /// Adds pieces to the pool: those with several streams that are read together, and each stream on its own,
  /// or all other pieces, which may equal such a stream. Weights stored between records here may be in
  /// another program without them.
  void add(ConstantPool& pool, bool together) {
    for (Piece& piece : pieces_) {
      if (piece.streams.empty() == together) continue;
      piece.place = pool.add(ByteSpan(program_.constants).subspan(piece.begin, piece.end - piece.begin));
      for (const npu::AddressRange& stream : piece.streams) {
        pool.addPart(piece.place, static_cast<int64_t>(stream.address - piece.begin),
                     static_cast<int64_t>(stream.length));
      }
    }
  }

  /// Rewrites the commands to read the constants where the pool has them.
  Status rewrite() {
    npu::StreamWriter writer(*program_.machine.target);
    findPlaces();
    std::vector<std::pair<uint32_t, npu::Branch*>> branches;  // byte offset of the command
    auto place = places_.begin();
    for (npu::PlacedOperation& placed : operations_) {
      for (; place != places_.end() && place->first <= placed.offset; ++place) {
        place->second = writer.position();
        writer.forgetState();
      }
      std::visit([this](auto& operation) { move(operation); }, placed.operation);
      CARINA_RETURN_IF_ERROR(writer.add(placed.operation));
      auto* branch = std::get_if<npu::Branch>(&placed.operation);
      if (branch) branches.emplace_back(writer.position() - 8, branch);
      moved_.emplace(placed.offset, Written{writer.position() - (branch ? 8 : 4), &placed.operation});
    }
    for (; place != places_.end(); ++place) place->second = writer.position();
    for (const auto& [offset, branch] : branches) {
      branch->target = places_.at(branch->target);
      writer.patchBranch(offset, branch->target);
    }
    commands_ = std::move(writer).take();
    return {};
  }

  bool fits() const { return commands_.size() * 4 <= kMaxCommandBytes; }

  void finish(const std::vector<std::byte>& constants) {
    for (OperationRecord& record : program_.operations) {
      const Written& written = moved_.at(record.wordOffset * 4);
      record.wordOffset = written.offset / 4;
      record.operation = *written.operation;
    }
    for (BranchRecord& record : program_.branches) {
      for (uint32_t* at : {&record.begin, &record.middle, &record.end}) *at = places_.at(*at);
    }
    program_.commands = std::move(commands_);
    program_.constants = constants;
  }

 private:
  /// Collects the targets of branches and the offsets in their records: register contents are unknown there.
  void findPlaces() {
    for (const npu::PlacedOperation& placed : operations_) {
      if (const auto* branch = std::get_if<npu::Branch>(&placed.operation)) places_[branch->target] = 0;
    }
    for (const BranchRecord& record : program_.branches) {
      for (const uint32_t at : {record.begin, record.middle, record.end}) places_[at] = 0;
    }
  }

  struct Written {
    uint32_t offset;
    const npu::Operation* operation;
  };

  std::vector<MemoryRange> rangesOf(const npu::Operation& operation) const {
    const npu::Target& target = *program_.machine.target;
    if (const auto* kernel = std::get_if<npu::KernelOperation>(&operation))
      return memoryRanges(*kernel, target);
    if (const auto* transfer = std::get_if<npu::DmaOperation>(&operation))
      return memoryRanges(*transfer, target);
    return {};
  }

  /// Addresses that nothing reads (of tiles without elements) stay unchanged.
  void move(uint64_t& address) const {
    auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), address,
                                  [](uint64_t at, const Piece& other) { return at < other.begin; });
    if (piece == pieces_.begin() || address >= (--piece)->end) return;
    address = static_cast<uint64_t>(piece->place) + (address - piece->begin);
  }
  void move(npu::FeatureMap& map) const {
    if (map.storage == npu::Storage::Chained || map.storage == npu::Storage::None) return;
    if (map.region != kConstants) return;
    for (uint64_t& base : map.base) move(base);
  }
  void move(npu::KernelOperation& op) const {
    move(op.ifm);
    if (op.ifm2) move(*op.ifm2);
    if (!op.weights) return;
    const auto moveAll = [&](uint8_t region, auto& ranges) {
      if (region != kConstants) return;
      for (npu::AddressRange& range : ranges) {
        if (range.length > 0) move(range.address);
      }
    };
    moveAll(op.weights->weightRegion, op.weights->weights);
    moveAll(op.weights->scaleRegion, op.weights->scales);
  }
  void move(npu::DmaOperation& op) const {
    if (!op.source.internal && op.source.region == kConstants) move(op.source.address);
    const bool indexed = op.source.indexed || op.destination.indexed;
    if (indexed && op.indexRegion == kConstants) move(op.indexAddress);
  }
  template <typename Other>
  void move(Other&) const {}

  CompiledProgram& program_;
  std::vector<npu::PlacedOperation> operations_;
  std::vector<Piece> pieces_;  // sorted, disjoint
  std::vector<uint32_t> commands_;
  std::unordered_map<uint32_t, Written> moved_;  // by offset in the old stream, bytes
  std::map<uint32_t, uint32_t> places_;          // old and new offsets, bytes
};

int64_t bytesApart(std::span<CompiledProgram* const> programs) {
  int64_t bytes = 0;
  for (size_t i = 0; i < programs.size(); ++i) {
    const auto before = programs.first(i);
    const bool known = std::any_of(before.begin(), before.end(), [&](const CompiledProgram* other) {
      return other->commands == programs[i]->commands && other->constants == programs[i]->constants;
    });
    if (!known) bytes += static_cast<int64_t>(programs[i]->constants.size());
  }
  return bytes;
}

}  // namespace

Result<SharedBytes> shareConstants(std::span<CompiledProgram* const> programs) {
  const int64_t apart = bytesApart(programs);
  ConstantPool pool;
  std::vector<Moved> all;
  all.reserve(programs.size());
  for (CompiledProgram* program : programs) CARINA_RETURN_IF_ERROR(all.emplace_back(*program).collect());
  for (const bool together : {true, false}) {
    for (Moved& moved : all) moved.add(pool, together);
  }
  const auto together = static_cast<int64_t>(pool.bytes().size());
  if (apart - together < ceilDiv(apart, kMinSaving)) return SharedBytes{apart, apart};
  for (Moved& moved : all) CARINA_RETURN_IF_ERROR(moved.rewrite());
  if (!std::all_of(all.begin(), all.end(), [](const Moved& moved) { return moved.fits(); }))
    return SharedBytes{apart, apart};
  for (Moved& moved : all) moved.finish(pool.bytes());
  return SharedBytes{together, apart};
}

}  // namespace carina::compiler
