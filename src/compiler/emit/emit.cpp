// SPDX-License-Identifier: Apache-2.0
// Operations of a schedule (emit.hpp). The transfers that a kernel operation needs are started directly after
// the preceding kernel operation, so that they run while that one computes. Pieces of weights that the plan
// fetches earlier are started directly after the last operation of their group.
#include "compiler/emit/emit.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "compiler/emit/hazards.hpp"
#include "compiler/emit/table_slots.hpp"
#include "compiler/schedule/operation_builder.hpp"
#include "compiler/schedule/stripes.hpp"
#include "npu/isa/blockconfig.hpp"

namespace carina::compiler {
namespace {

/// A kernel operation or transfer of the program, and the transfers that must precede it.
struct Step {
  std::vector<EmittedOperation> transfers;
  EmittedOperation main;
};

class Emitter {
 public:
  Emitter(const Schedule& schedule, const OperationSink& out)
      : schedule_(schedule), target_(*schedule.machine.target), waits_(target_), out_(out) {}

  void run() {
    planFetches();
    copyInputs();
    for (size_t g = 0; g < schedule_.groups.size(); ++g) {
      const Group& group = schedule_.groups[g];
      if (group.rows == 0) {
        addUnit(group.first, nullptr);
      } else {
        for (const Stripe& stripe : schedule_.stripes[g]) {
          // Passes that are chained to another one run with each of its stripes.
          if (!passAt(stripe.pass).follows) addUnit(stripe.pass, &stripe);
        }
      }
      ++finishedGroups_;
    }
    issueFetches();
    out_({npu::Stop{}, nullptr, "", "STOP", false});
  }

 private:
  const Pass& passAt(int32_t p) const { return schedule_.passes[static_cast<size_t>(p)]; }

  const Placement& placementOf(const PassValue& value) const {
    return schedule_.buffers[static_cast<size_t>(value.buffer)];
  }

  /// Sets region and address; returns how many rows a rolling buffer holds, 0 for other buffers.
  int32_t place(npu::FeatureMap& map, const PassValue& value) const {
    if (map.storage == npu::Storage::Chained) return 0;
    const Placement& placement = placementOf(value);
    map.region = regionOf(placement.area);
    map.base[0] += static_cast<uint64_t>(placement.address);
    return placement.heldRows;
  }

  /// Adds a pass with everything that is chained to it: entirely (`stripe` null) or some rows; slice by
  /// slice.
  void addUnit(int32_t first, const Stripe* stripe) {
    const Pass& head = passAt(first);
    if (head.isDma) return ir::isa<npu_ir::Scatter>(head.node) ? addScatter(head.node) : addGather(head.node);
    int32_t last = first;
    while (last + 1 < static_cast<int32_t>(schedule_.passes.size()) && passAt(last + 1).follows) ++last;
    const size_t slices = std::max<size_t>(head.slices.size(), 1);
    for (size_t s = 0; s < slices; ++s) {
      const WeightSlice* slice = head.slices.empty() ? nullptr : &head.slices[s];
      for (int32_t p = first; p <= last; ++p) {
        addOperation(passAt(p), slice, s, stripe);
        // Nothing may come between the members of a chain: their transfers are placed before it.
        if (p == first) continue;
        Step &before = steps_.front(), &step = steps_.back();
        std::move(step.transfers.begin(), step.transfers.end(), std::back_inserter(before.transfers));
        step.transfers.clear();
      }
      const bool complete = s + 1 == slices && (!stripe || stripe->end == head.operation.ofm.height);
      for (Step& step : steps_) step.main.last |= complete;
      issueSteps();
    }
  }

  /// Adds one operation of a pass: the channels of a slice (null: all), the rows of a stripe (null: all).
  void addOperation(const Pass& pass, const WeightSlice* slice, size_t sliceIndex, const Stripe* stripe) {
    npu::KernelOperation op = pass.operation;
    HeldRows held;
    held.ofm = place(op.ofm, pass.result);
    if (pass.ifm.value) held.ifm = place(op.ifm, pass.ifm);
    if (pass.ifm2.value && op.ifm2) held.ifm2 = place(*op.ifm2, pass.ifm2);
    if (stripe) takeRows(op, stripe->begin, stripe->end, held);
    Step step;
    addTable(pass, op, step);
    std::string suffix;
    if (slice) {
      suffix = sliceSuffix(pass, *slice);
      if (slice->channels.depth < op.ofm.depth) takeChannels(op, slice->channels);
      if (ir::isa<npu_ir::CodedConv>(pass.node)) {
        placeCodedWeights(pass, op, *slice);
      } else if (op.weights) {
        addWeights(pass, op, *slice, sliceIndex, stripe, step);
      }
    }
    if (stripe) suffix += fmt::format("[rows {}:{}]", stripe->begin, stripe->end);
    step.main = {op, pass.node, suffix, "", false};
    steps_.push_back(std::move(step));
  }

  /// Sets weight streams that earlier operations wrote; the scales are constants.
  void placeCodedWeights(const Pass& pass, npu::KernelOperation& op, const WeightSlice& slice) {
    const Placement& placement = placementOf(pass.ifm2);
    const int64_t start = placement.address + schedule_.storage->access(pass.ifm2.value).offset;
    op.weights = slice.streams;
    op.weights->weightRegion = regionOf(placement.area);
    op.weights->scaleRegion = regionOf(npu::Area::Constants);
    for (npu::AddressRange& range : op.weights->weights) {
      if (range.length > 0) range.address += static_cast<uint64_t>(start);
    }
    for (npu::AddressRange& range : op.weights->scales) {
      if (range.length > 0)
        range.address = static_cast<uint64_t>(slice.constantAt(static_cast<int64_t>(range.address)));
    }
  }

  static std::string sliceSuffix(const Pass& pass, const WeightSlice& slice) {
    if (slice.channels.depth >= pass.operation.ofm.depth) return {};
    return fmt::format("[{}:{}]", slice.channels.offset, slice.channels.offset + slice.channels.depth);
  }

  const Placement& stagingOf(const Pass& pass, size_t sliceIndex) const {
    return schedule_.staging[static_cast<size_t>(pass.staging[sliceIndex % 2])];
  }

  /// Adds the transfers of a part of a slice to its staging buffer: one for each piece of the constants.
  void addTransfers(const Pass& pass, size_t sliceIndex, int64_t begin, int64_t end,
                    std::vector<EmittedOperation>& transfers) const {
    const WeightSlice& slice = pass.slices[sliceIndex];
    const Placement& staging = stagingOf(pass, sliceIndex);
    for (size_t p = 0; p < slice.pieces.size(); ++p) {
      const int64_t from = std::max(begin, slice.pieces[p].begin);
      const int64_t to = p + 1 < slice.pieces.size() ? std::min(end, slice.pieces[p + 1].begin) : end;
      if (from >= to) continue;
      npu::DmaOperation dma;
      dma.source.region = regionOf(npu::Area::Constants);
      dma.source.address = static_cast<uint64_t>(slice.constantAt(from));
      dma.destination.region = regionOf(staging.area);
      dma.destination.address = static_cast<uint64_t>(staging.address + from);
      dma.length = static_cast<uint64_t>(to - from);
      transfers.push_back({dma, pass.node, sliceSuffix(pass, slice), "DMA weights", false});
    }
  }

  /// Collects the weight transfers that the plan makes during earlier groups.
  void planFetches() {
    fetches_.resize(schedule_.groups.size() + 1);
    for (const Pass& pass : schedule_.passes) {
      const std::vector<Fetch>& fetches = pass.weights.fetches;
      if (!pass.staged || fetches.empty()) continue;
      // The pieces were planned for the expected size: use the same fractions of the actual size.
      const int64_t planned = fetches.back().offset + fetches.back().bytes;
      for (size_t s = 0; s < pass.slices.size(); ++s) {
        const int64_t bytes = pass.slices[s].bytes;
        const auto share = [&](int64_t offset) {
          return offset == planned ? bytes : bytes * offset / planned / 16 * 16;
        };
        for (const Fetch& fetch : fetches) {
          const int64_t begin = share(fetch.offset), end = share(fetch.offset + fetch.bytes);
          addTransfers(pass, s, begin, end, fetches_[static_cast<size_t>(fetch.during + 1)]);
        }
      }
    }
  }

  /// Sets the weight streams of a slice, and adds their transfer if they are staged: once, before the first
  /// stripe.
  void addWeights(const Pass& pass, npu::KernelOperation& op, const WeightSlice& slice, size_t index,
                  const Stripe* stripe, Step& step) {
    const npu::Traversal traversal = op.weights->traversal;
    op.weights = slice.streams;
    op.weights->traversal = traversal;
    const Placement* staging = pass.staged ? &stagingOf(pass, index) : nullptr;
    if (staging && pass.weights.fetches.empty() && pass.weights.copyOf < 0 &&
        (!stripe || stripe->begin == 0)) {
      addTransfers(pass, index, 0, slice.bytes, step.transfers);
    }
    op.weights->weightRegion = op.weights->scaleRegion =
        regionOf(staging ? staging->area : npu::Area::Constants);
    const auto place = [&](auto& ranges) {
      for (npu::AddressRange& range : ranges) {
        if (range.length == 0) continue;
        const auto at = static_cast<int64_t>(range.address);
        range.address = static_cast<uint64_t>(staging ? staging->address + at : slice.constantAt(at));
      }
    };
    place(op.weights->weights);
    place(op.weights->scales);
  }

  /// Narrows an operation to some channels of its OFM, and likewise inputs that correspond channel by
  /// channel.
  static void takeChannels(npu::KernelOperation& op, npu::DepthSlice channels) {
    const auto follow = [&](npu::FeatureMap& map, const npu::Broadcast& broadcast) {
      if (broadcast.scalar || broadcast.c || map.storage == npu::Storage::None) return;
      offsetChannels(map, channels);
    };
    offsetChannels(op.ofm, channels);
    if (op.kind == npu::OperationKind::Elementwise) {
      follow(op.ifm, op.elementwise.ifmBroadcast);
      if (op.ifm2) follow(*op.ifm2, op.elementwise.ifm2Broadcast);
    } else if (op.kind != npu::OperationKind::Conv) {
      offsetChannels(op.ifm, channels);
    }
  }

  static void offsetChannels(npu::FeatureMap& map, npu::DepthSlice channels) {
    const int64_t offset = map.layout == npu::Layout::NHWC
                               ? int64_t{channels.offset} * npu::elementBytes(map.type)
                               : channels.offset / 16 * map.strideC;
    map.depth = channels.depth;
    if (map.storage == npu::Storage::Chained) return;
    for (uint64_t& base : map.base) base += static_cast<uint64_t>(offset);
  }

  /// Ensures that the operation's table is in table memory.
  void addTable(const Pass& pass, npu::KernelOperation& op, Step& step) {
    const bool shared = target_.tablesShareAccumulators();
    if (pass.table < 0) {
      // On the smallest variants every other operation overwrites the tables.
      if (shared) tables_.forget();
      return;
    }
    const std::vector<StoredTable> tables = tablesFrom(pass);
    const TableSlots::Place place = tables_.use(tables);
    if (place.load) {
      npu::DmaOperation dma;
      dma.source.region = regionOf(npu::Area::Constants);
      dma.source.address = static_cast<uint64_t>(pass.table);
      dma.destination.internal = true;
      dma.destination.region = 3;  // core mask
      dma.destination.address =
          target_.tableMemoryStart() + static_cast<uint64_t>(place.slot) * kTableSlotBytes;
      dma.length = static_cast<uint64_t>(tables.back().end() - tables.front().constant);
      step.transfers.push_back({dma, pass.node, "", "DMA table", false});
    }
    op.activation.slot = place.slot;
  }

  /// The pass's table and, if it has to be loaded, those of passes soon after it that directly follow in the
  /// constants: one transfer loads them all, with a single latency.
  std::vector<StoredTable> tablesFrom(const Pass& pass) {
    std::vector<StoredTable> tables{{pass.table, pass.tableBytes}};
    if (tables_.holds(tables.front()) || target_.tablesShareAccumulators() ||
        pass.tableBytes != kTableSlotBytes)
      return tables;
    constexpr std::ptrdiff_t kLookAhead = 64;  // passes
    const Pass* end = schedule_.passes.data() + schedule_.passes.size();
    size_t kept = 0;  // other tables that are present and will be used in between
    for (const Pass* later = &pass + 1; later < std::min(end, &pass + kLookAhead); ++later) {
      if (later->table < 0 || later->table == tables.front().constant) continue;
      const StoredTable table{later->table, later->tableBytes};
      if (std::find(tables.begin(), tables.end(), table) != tables.end()) continue;
      if (tables_.holds(table)) {
        kept += tables_.touch(table) ? table.slots() : 0;
        continue;
      }
      const bool neighbour = table.constant == tables.back().end() && table.bytes == kTableSlotBytes;
      if (!neighbour || tables.size() + kept >= kTableSlots) break;
      tables.push_back(table);
    }
    return tables;
  }

  /// Where a transfer of a value's rows begins: of its matrix `number`, if it has several.
  npu::DmaEnd rowsOf(const ir::Value* value, int64_t number = 0) const {
    const Access& access = schedule_.storage->access(value);
    const Placement& placement = schedule_.buffers[static_cast<size_t>(access.buffer)];
    npu::DmaEnd end;
    end.region = regionOf(placement.area);
    const bool several = access.shape.size() == 3;
    end.address =
        static_cast<uint64_t>(placement.address + access.offset + (several ? number * access.strides[0] : 0));
    end.stride0 = access.strides[several ? 1 : 0];
    return end;
  }

  void addTransfer(const npu::DmaOperation& dma, const ir::Node* node, const char* what) {
    Step step;
    step.main = {dma, node, "", what, false};
    steps_.push_back(std::move(step));
    issueSteps();
  }

  /// Rows of `row` bytes, one for each of `count` indices.
  npu::DmaOperation indexedRows(int64_t row, int64_t count, const npu::DmaEnd& indices, int64_t table) const {
    npu::DmaOperation dma;
    dma.length = static_cast<uint64_t>(row);
    dma.dimensions = 2;
    dma.size0 = static_cast<int32_t>(count);
    dma.indexRegion = indices.region;
    dma.indexAddress = indices.address;
    dma.indexMax = table - 1;
    return dma;
  }

  /// GATHER: rows that the U85 DMA copies by index.
  void addGather(const ir::Node* node) {
    const ir::Value *table = node->operand(0), *indices = node->operand(1);
    npu::DmaOperation dma = indexedRows(table->dim(1) * dtypeSize(table->dtype()), indices->dim(0),
                                        rowsOf(indices), table->dim(0));
    dma.source = rowsOf(table);
    dma.source.indexed = true;
    dma.destination = rowsOf(node->result());
    addTransfer(dma, node, "DMA gather");
  }

  /// Copies the matrices that a SCATTER changes: all at once, or row by row where rows are apart.
  void copyMatrices(const ir::Node* node) {
    const ir::Value *from = node->operand(0), *to = node->result();
    const int64_t rows = from->dim(1), row = from->dim(2) * dtypeSize(from->dtype());
    const auto isDense = [&](const ir::Value* value) {
      const ir::Ints& strides = schedule_.storage->access(value).strides;
      return (rows == 1 || strides[1] == row) && (value->dim(0) == 1 || strides[0] == rows * row);
    };
    const bool dense = isDense(from) && isDense(to);
    for (int64_t n = 0; n < (dense ? 1 : from->dim(0)); ++n) {
      npu::DmaOperation copy;
      copy.source = rowsOf(from, n);
      copy.destination = rowsOf(to, n);
      if (dense) {
        copy.source.stride0 = copy.destination.stride0 = 0;
        copy.length = static_cast<uint64_t>(from->numBytes());
      } else {
        copy.length = static_cast<uint64_t>(row);
        copy.dimensions = 2;
        copy.size0 = static_cast<int32_t>(rows);
      }
      addTransfer(copy, node, "DMA copy");
    }
  }

  /// SCATTER: a copy of the matrices, unless they are written in place (compiler/flow, dyingInput()), and
  /// rows that the U85 DMA writes into it by index.
  void addScatter(const ir::Node* node) {
    const ir::Value *tables = node->operand(0), *indices = node->operand(1), *updates = node->operand(2);
    const ir::Value* result = node->result();
    const int64_t rows = tables->dim(1), row = tables->dim(2) * dtypeSize(tables->dtype());
    if (!(rowsOf(tables) == rowsOf(result))) copyMatrices(node);
    for (int64_t n = 0; n < tables->dim(0); ++n) {
      npu::DmaEnd numbers = rowsOf(indices);
      numbers.address += static_cast<uint64_t>(n * schedule_.storage->access(indices).strides[0]);
      npu::DmaOperation dma = indexedRows(row, indices->dim(1), numbers, rows);
      dma.source = rowsOf(updates, n);
      dma.destination = rowsOf(result, n);
      dma.destination.indexed = true;
      addTransfer(dma, node, "DMA scatter");
    }
  }

  /// Copies program inputs that are read from the cache.
  void copyInputs() {
    if (schedule_.homes.empty()) return;
    std::unordered_set<int32_t> copied;
    for (const Pass& pass : schedule_.passes) {
      for (const PassValue& input : memoryInputs(schedule_, pass)) {
        const Placement& copy = placementOf(input);
        if (copy.home < 0 || !copied.insert(input.buffer).second) continue;
        const Placement& home = schedule_.homes[static_cast<size_t>(copy.home)];
        npu::DmaOperation dma;
        dma.source.region = regionOf(home.area);
        dma.source.address = static_cast<uint64_t>(home.address);
        dma.destination.region = regionOf(copy.area);
        dma.destination.address = static_cast<uint64_t>(copy.address);
        dma.length = static_cast<uint64_t>(roundUp(copy.bytes, 16));
        issue({dma, pass.node, "", "DMA input", false});
      }
    }
  }

  /// Issues the steps so far: the transfers of each directly after the preceding operation, followed by those
  /// that were planned for the end of that operation's group.
  void issueSteps() {
    for (Step& step : steps_) {
      issueTransfers(step.transfers);
      issueFetches();
      issue(std::move(step.main));
    }
    steps_.clear();
  }

  /// Issues what is planned to be fetched from the end of a group on.
  void issueFetches() {
    for (; fetchedGroups_ <= finishedGroups_; ++fetchedGroups_) issueTransfers(fetches_[fetchedGroups_]);
  }

  void issueTransfers(std::vector<EmittedOperation>& transfers) {
    for (EmittedOperation& transfer : transfers) issue(std::move(transfer));
  }

  void issue(EmittedOperation emitted) {
    const auto wait = [&](const npu::Operation& operation) { out_({operation, nullptr, "", "WAIT", false}); };
    if (const auto* dma = std::get_if<npu::DmaOperation>(&emitted.operation)) {
      for (const npu::Operation& operation : waits_.before(*dma)) wait(operation);
    } else {
      auto& op = std::get<npu::KernelOperation>(emitted.operation);
      op.blockDependency = blockDependency(previous_ ? &*previous_ : nullptr, op, target_);
      for (const npu::Operation& operation : waits_.before(op)) wait(operation);
      previous_ = op;
    }
    out_(std::move(emitted));
  }

  const Schedule& schedule_;
  const npu::Target& target_;
  WaitTracker waits_;
  TableSlots tables_;
  std::vector<Step> steps_;                             // not issued yet
  std::vector<std::vector<EmittedOperation>> fetches_;  // after each group; first: before all groups
  size_t finishedGroups_ = 0, fetchedGroups_ = 0;
  std::optional<npu::KernelOperation> previous_;
  const OperationSink& out_;
};

}  // namespace

void emit(const Schedule& schedule, const OperationSink& out) {
  Emitter(schedule, out).run();
}

npu::Cycles streamCycles(const Schedule& schedule, const npu::timing::Rules& rules) {
  npu::Timeline timeline(schedule.machine, rules);
  emit(schedule, [&](EmittedOperation&& emitted) { timeline.add(emitted.operation, 0); });
  return timeline.total();
}

}  // namespace carina::compiler
