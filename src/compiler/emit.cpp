// SPDX-License-Identifier: Apache-2.0
// Operations of a schedule (emit.hpp). The transfers that a kernel operation needs are started right after
// the kernel operation before it, so that they run while that one computes.
#include "compiler/emit.hpp"

#include <algorithm>
#include <array>

#include "compiler/hazards.hpp"
#include "compiler/operation_builder.hpp"
#include "npu/blockconfig.hpp"

namespace carina::compiler {
namespace {

constexpr int kTableSlots = 8;
constexpr int64_t kTableSlotBytes = 256;

/// Which tables the on-chip table memory holds: slots of 256 bytes, replaced least recently used first.
class TableSlots {
 public:
  struct Place {
    uint8_t slot = 0;
    bool load = false;
  };
  Place use(int64_t constant, int64_t bytes) {
    const auto size = static_cast<size_t>(std::max<int64_t>(bytes / kTableSlotBytes, 1));
    ++clock_;
    size_t best = 0;
    int64_t oldest = clock_ + 1;
    for (size_t s = 0; s + size <= kTableSlots; s += size) {
      if (content_[s] == std::pair(constant, bytes)) {
        touch(s, size);
        return {static_cast<uint8_t>(s), false};
      }
      const int64_t age = *std::max_element(used_.begin() + static_cast<std::ptrdiff_t>(s),
                                            used_.begin() + static_cast<std::ptrdiff_t>(s + size));
      if (age < oldest) {
        oldest = age;
        best = s;
      }
    }
    for (size_t s = best; s < best + size; ++s) content_[s] = {-1, 0};
    // A wider table that covered these slots is gone as well.
    for (size_t s = 0; s < best; ++s) {
      const auto covers = s + static_cast<size_t>(content_[s].second / kTableSlotBytes);
      if (content_[s].first >= 0 && covers > best) content_[s] = {-1, 0};
    }
    content_[best] = {constant, bytes};
    touch(best, size);
    return {static_cast<uint8_t>(best), true};
  }
  void forget() { content_.fill({-1, 0}); }

 private:
  void touch(size_t slot, size_t size) {
    for (size_t s = slot; s < slot + size; ++s) used_[s] = clock_;
  }
  std::array<std::pair<int64_t, int64_t>, kTableSlots> content_ = [] {
    std::array<std::pair<int64_t, int64_t>, kTableSlots> empty;
    empty.fill({-1, 0});
    return empty;
  }();
  std::array<int64_t, kTableSlots> used_{};
  int64_t clock_ = 0;
};

/// A kernel operation or transfer of the program with the transfers that must come before it.
struct Step {
  std::vector<EmittedOperation> transfers;
  EmittedOperation main;
};

class Emitter {
 public:
  explicit Emitter(const Schedule& schedule)
      : schedule_(schedule), target_(*schedule.machine.target), waits_(target_) {}

  std::vector<EmittedOperation> run() {
    for (const Pass& pass : schedule_.passes) {
      addPass(pass);
      if (!steps_.empty()) steps_.back().main.last = true;
    }
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (i == 0) issueTransfers(steps_[0]);
      issue(std::move(steps_[i].main));
      if (i + 1 < steps_.size()) issueTransfers(steps_[i + 1]);
    }
    out_.push_back({npu::Stop{}, nullptr, "", "STOP", false});
    return std::move(out_);
  }

 private:
  void place(npu::FeatureMap& map, const ir::Value* value) const {
    const Placement& placement =
        schedule_.buffers[static_cast<size_t>(schedule_.storage.access(value).buffer)];
    map.region = regionOf(placement.area);
    map.base[0] += static_cast<uint64_t>(placement.address);
  }

  void addPass(const Pass& pass) {
    if (pass.isDma) return addRows(pass);
    npu::KernelOperation op = pass.operation;
    place(op.ofm, pass.node->result());
    const OperationInputs inputs = operationInputs(pass.node, target_);
    if (inputs.ifm) place(op.ifm, inputs.ifm);
    if (inputs.ifm2) place(*op.ifm2, inputs.ifm2);
    if (pass.slices.empty()) {
      Step step;
      addTable(pass, op, step);
      step.main = {op, pass.node, "", operationKindText(op), false};
      steps_.push_back(std::move(step));
      return;
    }
    for (size_t s = 0; s < pass.slices.size(); ++s) addSlice(pass, op, s);
  }

  /// One depth slice of a convolution.
  void addSlice(const Pass& pass, npu::KernelOperation op, size_t index) {
    const WeightSlice& slice = pass.slices[index];
    Step step;
    addTable(pass, op, step);
    op.weights = slice.streams;
    op.weights->traversal = pass.operation.weights->traversal;
    uint64_t base = static_cast<uint64_t>(slice.constant);
    npu::Area area = npu::Area::Constants;
    if (pass.staged) {
      const Placement& staging = schedule_.staging[static_cast<size_t>(pass.staging[index % 2])];
      npu::DmaOperation dma;
      dma.source.region = regionOf(npu::Area::Constants);
      dma.source.address = base;
      dma.destination.region = regionOf(staging.area);
      dma.destination.address = static_cast<uint64_t>(staging.address);
      dma.length = static_cast<uint64_t>(slice.bytes);
      step.transfers.push_back({dma, pass.node, sliceText(pass, slice), "DMA weights", false});
      base = static_cast<uint64_t>(staging.address);
      area = staging.area;
    }
    op.weights->weightRegion = op.weights->scaleRegion = regionOf(area);
    for (npu::AddressRange& range : op.weights->weights) {
      if (range.length > 0) range.address += base;
    }
    for (npu::AddressRange& range : op.weights->scales) {
      if (range.length > 0) range.address += base;
    }
    offsetChannels(op.ofm, slice.channels);
    if (op.kind == npu::OperationKind::Depthwise) offsetChannels(op.ifm, slice.channels);
    step.main = {op, pass.node, sliceText(pass, slice), operationKindText(op), false};
    steps_.push_back(std::move(step));
  }

  static std::string sliceText(const Pass& pass, const WeightSlice& slice) {
    if (pass.slices.size() == 1) return "";
    return fmt::format("[{}:{}]", slice.channels.offset, slice.channels.offset + slice.channels.depth);
  }

  static void offsetChannels(npu::FeatureMap& map, npu::DepthSlice channels) {
    const int64_t offset = map.layout == npu::Layout::NHWC
                               ? int64_t{channels.offset} * npu::elementBytes(map.type)
                               : channels.offset / 16 * map.strideC;
    map.base[0] += static_cast<uint64_t>(offset);
    map.depth = channels.depth;
  }

  /// Makes sure that the operation's table is in table memory.
  void addTable(const Pass& pass, npu::KernelOperation& op, Step& step) {
    const bool shared = !target_.isU85() && target_.lutReservedBanks == 0;
    if (pass.table < 0) {
      // On the smallest variants every other operation overwrites the tables.
      if (shared) tables_.forget();
      return;
    }
    const TableSlots::Place place = tables_.use(pass.table, pass.tableBytes);
    if (place.load) {
      npu::DmaOperation dma;
      dma.source.region = regionOf(npu::Area::Constants);
      dma.source.address = static_cast<uint64_t>(pass.table);
      dma.destination.internal = true;
      dma.destination.region = 3;  // core mask
      const uint64_t tables = target_.isU85() ? 0 : static_cast<uint64_t>(target_.shramKiB) * 1024 - 2048;
      dma.destination.address = tables + static_cast<uint64_t>(place.slot) * kTableSlotBytes;
      dma.length = static_cast<uint64_t>(pass.tableBytes);
      step.transfers.push_back({dma, pass.node, "", "DMA table", false});
    }
    op.activation.slot = place.slot;
  }

  /// GATHER and SCATTER: rows that the U85 DMA copies by index.
  void addRows(const Pass& pass) {
    const ir::Node* node = pass.node;
    const bool scatter = ir::isa<npu_ir::Scatter>(node);
    const auto end = [&](const ir::Value* value) {
      const Access& access = schedule_.storage.access(value);
      const Placement& placement = schedule_.buffers[static_cast<size_t>(access.buffer)];
      npu::DmaEnd side;
      side.region = regionOf(placement.area);
      side.address = static_cast<uint64_t>(placement.address + access.offset);
      side.stride0 = access.strides[0];
      return side;
    };
    const ir::Value* values = node->operand(0);
    const ir::Value* indices = node->operand(1);
    const int64_t row = values->dim(1) * dtypeSize(values->dtype());
    if (scatter) {
      npu::DmaOperation copy;
      copy.source = end(values);
      copy.destination = end(node->result());
      copy.source.stride0 = copy.destination.stride0 = 0;
      copy.length = static_cast<uint64_t>(values->numElements() * dtypeSize(values->dtype()));
      Step step;
      step.main = {copy, node, "", "DMA copy", false};
      steps_.push_back(std::move(step));
    }
    npu::DmaOperation dma;
    dma.source = end(scatter ? node->operand(2) : values);
    dma.destination = end(node->result());
    (scatter ? dma.destination : dma.source).indexed = true;
    dma.length = static_cast<uint64_t>(row);
    dma.dimensions = 2;
    dma.size0 = static_cast<int32_t>(indices->dim(0));
    const npu::DmaEnd index = end(indices);
    dma.indexRegion = index.region;
    dma.indexAddress = index.address;
    dma.indexMax = values->dim(0) - 1;
    Step step;
    step.main = {dma, node, "", scatter ? "DMA scatter" : "DMA gather", false};
    steps_.push_back(std::move(step));
  }

  void issueTransfers(Step& step) {
    for (EmittedOperation& transfer : step.transfers) issue(std::move(transfer));
  }

  void issue(EmittedOperation emitted) {
    const auto wait = [&](npu::Operation operation) {
      out_.push_back({std::move(operation), nullptr, "", "WAIT", false});
    };
    if (const auto* dma = std::get_if<npu::DmaOperation>(&emitted.operation)) {
      for (npu::Operation& operation : waits_.before(*dma)) wait(std::move(operation));
    } else {
      auto& op = std::get<npu::KernelOperation>(emitted.operation);
      op.blockDependency = blockDependency(previous_ ? &*previous_ : nullptr, op, target_);
      if (auto operation = waits_.before(op)) wait(std::move(*operation));
      previous_ = op;
    }
    out_.push_back(std::move(emitted));
  }

  const Schedule& schedule_;
  const npu::Target& target_;
  WaitTracker waits_;
  TableSlots tables_;
  std::vector<Step> steps_;
  std::optional<npu::KernelOperation> previous_;
  std::vector<EmittedOperation> out_;
};

}  // namespace

std::vector<EmittedOperation> emit(const Schedule& schedule) {
  return Emitter(schedule).run();
}

}  // namespace carina::compiler
