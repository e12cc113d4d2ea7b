// SPDX-License-Identifier: Apache-2.0
// The schedule: which operation runs when, in which blocks, depth slices and stripes, and where every buffer
// lies. A Pass is one node; passes run one after the other, as U85 chains, or interleaved stripe by stripe.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "compiler/schedule/allocator.hpp"
#include "compiler/schedule/cascades.hpp"
#include "compiler/schedule/constant_pool.hpp"
#include "compiler/schedule/weight_plan.hpp"
#include "compiler/schedule/weight_streams.hpp"
#include "compiler/storage/storage.hpp"

namespace carina::compiler {

/// Where a buffer was put.
struct Placement {
  npu::Area area = npu::Area::Arena;
  int64_t address = 0;  // bytes from the start of the area
  int64_t bytes = 0;
  LiveRange live;          // in groups; unused buffers have bytes 0
  int32_t heldRows = 0;    // a rolling buffer of so many rows, 0: the whole map
  int32_t takesOver = -1;  // the buffer whose place this one takes while its last reader runs
  int32_t home = -1;       // index into Schedule::homes: a copy in the cache of a program input

  bool operator==(const Placement&) const = default;
};

/// Encoded weights of some output channels.
struct WeightSlice {
  npu::DepthSlice channels;
  int64_t bytes = 0;
  npu::WeightStreams streams;  // addresses relative to the slice
  /// From the slice's byte `begin` on it lies at an offset in the constants. One piece, or, where its weights
  /// are those of another program, records and streams apart.
  struct Piece {
    int64_t begin = 0, constant = 0;
  };
  std::vector<Piece> pieces;

  /// Where a byte of it lies in the constants.
  int64_t constantAt(int64_t byte) const {
    size_t i = pieces.size() - 1;
    while (pieces[i].begin > byte) --i;
    return pieces[i].constant + byte - pieces[i].begin;
  }
};

/// A value that a pass reads or writes, and the buffer that it lies in.
struct PassValue {
  const ir::Value* value = nullptr;
  int32_t buffer = -1;
};

/// One node of the npu graph on its way to operations.
struct Pass {
  const ir::Node* node = nullptr;
  PassValue ifm, ifm2;  // operationInputs(): of what is no DMA, and null where there is none
  PassValue result;
  npu::KernelOperation operation;      // feature map bases relative to their buffers; blocks chosen
  bool isDma = false;                  // GATHER and SCATTER: operation is not used
  int32_t group = 0;                   // index into Schedule::groups
  bool canBeSparse = false;            // U85: the weights are 2:4 sparse
  bool follows = false;                // takes its blocks from the pass before, through a chaining buffer
  int32_t stripeRows = 0;              // in a cascade: rows of its tallest stripe
  std::vector<WeightSlice> slices;     // of convolutions, in channel order
  bool staged = false;                 // weights are copied to fast memory before use
  std::array<int, 2> staging{-1, -1};  // indices into Schedule::staging, of even and odd slices
  PlannedWeights weights;              // of staged weights: when they arrive, or the pass whose copy is read
  int64_t table = -1;                  // offset of the lookup table in the constants
  int64_t tableBytes = 0;
};

struct Schedule {
  npu::Machine machine;
  std::shared_ptr<const Storage> storage;  // of all tries at a schedule
  std::vector<Pass> passes;
  std::vector<Group> groups;                     // of passes, in order
  std::vector<std::vector<Stripe>> stripes;      // per group; of cascades: indices of passes and their rows
  std::unordered_set<const ir::Value*> chained;  // values that never are in memory
  std::vector<Placement> buffers;                // of storage.buffers
  std::vector<Placement> staging;                // weights in fast memory
  std::vector<Placement> homes;  // where program inputs arrive that are copied to the cache first
  ConstantPool constants;
  int64_t arenaBytes = 0, cacheBytes = 0;
  int64_t arenaBound =
      0;  // no cascades of these passes in this order take less; 0 where the arena is not fast
};

/// Values in memory that a pass reads, at most the three operands of a SCATTER.
class MemoryInputs {
 public:
  void add(const PassValue& value) { values_[size_++] = value; }
  const PassValue* begin() const { return values_.data(); }
  const PassValue* end() const { return values_.data() + size_; }
  size_t size() const { return size_; }

 private:
  std::array<PassValue, 3> values_;
  size_t size_ = 0;
};
MemoryInputs memoryInputs(const Schedule& schedule, const Pass& pass);

/// Region register value of an area.
uint8_t regionOf(npu::Area area);

/// One line per pass and buffer, for --dump-after=schedule (schedule_print.cpp).
std::string print(const Schedule& schedule);

/// Why the arena of a schedule cannot be smaller: what is alive where most is.
Error arenaTooLarge(const Schedule& schedule, int64_t limit);

}  // namespace carina::compiler
