// SPDX-License-Identifier: Apache-2.0
// The schedule: which operation runs when, in which blocks, depth slices and stripes, and where every buffer
// is placed. A Pass is one node; passes run one after another, as U85 chains, or interleaved stripe by
// stripe.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "compiler/schedule/cascades.hpp"
#include "compiler/schedule/constant_pool.hpp"
#include "compiler/schedule/weight_plan.hpp"
#include "compiler/schedule/weight_streams.hpp"
#include "compiler/storage/storage.hpp"
#include "packing/packing.hpp"

namespace carina::compiler {

/// Where a buffer is placed.
struct Placement {
  npu::Area area = npu::Area::Arena;
  int64_t address = 0;  // bytes from the start of the area
  int64_t bytes = 0;
  LiveRange live;          // in groups; unused buffers have bytes 0
  int32_t heldRows = 0;    // rows of a rolling buffer, 0: the whole map
  int32_t takesOver = -1;  // the buffer whose memory this one takes over while its last reader runs
  int32_t home = -1;       // index into Schedule::homes, for the copy of a program input in the cache

  bool operator==(const Placement&) const = default;
};

/// Encoded weights of some output channels.
struct WeightSlice {
  npu::DepthSlice channels;
  int64_t bytes = 0;
  npu::WeightStreams streams;  // addresses relative to the slice
  /// The slice's bytes from `begin` on are at an offset in the constants. One piece, or, if the weights are
  /// those of another program, records and streams separately.
  struct Piece {
    int64_t begin = 0, constant = 0;
  };
  std::vector<Piece> pieces;

  /// Where a byte of the slice is in the constants.
  int64_t constantAt(int64_t byte) const {
    size_t i = pieces.size() - 1;
    while (pieces[i].begin > byte) --i;
    return pieces[i].constant + byte - pieces[i].begin;
  }
};

/// A value that a pass reads or writes, and its buffer.
struct PassValue {
  const ir::Value* value = nullptr;
  int32_t buffer = -1;
};

/// One node of the npu graph on its way to operations.
struct Pass {
  const ir::Node* node = nullptr;
  PassValue ifm, ifm2;  // operationInputs(), unless isDma; null if there is none
  PassValue result;
  npu::KernelOperation operation;      // feature map bases relative to their buffers; blocks chosen
  bool isDma = false;                  // GATHER and SCATTER: operation is not used
  int32_t group = 0;                   // index into Schedule::groups
  bool canBeSparse = false;            // U85: the weights are 2:4 sparse
  bool follows = false;                // reads blocks of the preceding pass from a chaining buffer
  int32_t stripeRows = 0;              // in a cascade: rows of its tallest stripe
  std::vector<WeightSlice> slices;     // of convolutions, in channel order
  bool staged = false;                 // weights are copied to fast memory before use
  std::array<int, 2> staging{-1, -1};  // indices into Schedule::staging, of even and odd slices
  int32_t sliceDepth = 0;              // output channels of a slice, if the weights are sliced
  PlannedWeights weights;              // if staged: when they arrive, or the pass whose copy is read
  int64_t table = -1;                  // offset of the lookup table in the constants
  int64_t tableBytes = 0;
};

struct Schedule {
  npu::Machine machine;
  std::shared_ptr<const Storage> storage;  // shared by all tries at a schedule
  std::vector<Pass> passes;
  std::vector<Group> groups;                     // of passes, in order
  std::vector<std::vector<Stripe>> stripes;      // per group; of cascades: indices of passes and their rows
  std::unordered_set<const ir::Value*> chained;  // values that are never in memory
  std::vector<Placement> buffers;                // of storage.buffers
  std::vector<Placement> staging;                // weights in fast memory
  std::vector<Placement> homes;                  // where program inputs that are copied to the cache arrive
  ConstantPool constants;
  int64_t arenaBytes = 0, cacheBytes = 0;
  bool isUsual = true;  // maps and passes as without a limit on memory
  int64_t arenaBound =
      0;  // lower bound for cascades of these passes in this order; 0 if the arena is not fast
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

/// Why the arena of a schedule cannot be smaller: what is alive at its peak.
Error arenaTooLarge(const Schedule& schedule, int64_t limit);

}  // namespace carina::compiler
