// SPDX-License-Identifier: Apache-2.0
// Ranges of memory that operations touch (memory_uses.hpp).
#include "npu/model/memory_uses.hpp"

#include <algorithm>

#include "format/ethosu_extents.hpp"
#include "npu/model/extent_checks.hpp"
#include "npu/model/table_tracker.hpp"

namespace carina::npu {
namespace {

/// The map as it is placed in memory.
format::EthosUMap placedMap(const FeatureMap& map, model::MapAxes axes) {
  format::EthosUMap placed;
  std::copy(map.base.begin(), map.base.end(), placed.base);
  placed.height = axes.h;
  placed.width = axes.w;
  placed.depth = axes.c;
  placed.height0 = map.height0;
  placed.height1 = map.height1;
  placed.width0 = map.width0;
  placed.strideY = map.strideY;
  placed.strideX = map.strideX;
  placed.strideC = map.strideC;
  placed.elementBytes = elementBytes(map.type);
  placed.brick = map.layout == Layout::NHCWB16;
  placed.stacked = map.storage == Storage::Tiles3x1;
  return placed;
}

}  // namespace

std::vector<MemoryUse> memoryUses(const Target& target, const KernelOperation& op) {
  std::vector<MemoryUse> uses;
  const auto add = [&](const FeatureMap& map, model::MapAxes axes, bool write, const char* what) {
    if (!inMemory(map)) return;
    const format::EthosUMap placed = placedMap(map, axes);
    for (size_t t = 0; t < 4; ++t) {
      format::EthosURange range;
      if (!placed.tile(t, &range)) continue;
      uses.push_back(
          {map.region, static_cast<uint64_t>(range.first), static_cast<uint64_t>(range.last), write, what});
    }
  };
  const bool readsIfm = !(op.kind == OperationKind::Pool && op.pool == PoolMode::None);
  if (readsIfm) add(op.ifm, {op.ifm.height, op.ifm.width, op.ifm.depth}, false, "IFM");
  const bool readsIfm2 =
      op.ifm2 && (op.kind == OperationKind::Elementwise
                      ? !isUnary(op.elementwise.mode)
                      : op.weightsFromIfm2 || op.accumulatorInput == AccumulatorInput::Ifm2);
  if (readsIfm2) add(*op.ifm2, {op.ifm2->height, op.ifm2->width, op.ifm2->depth}, false, "IFM2");
  if (op.weights) {
    for (const AddressRange& range : op.weights->weights) {
      if (range.length > 0)
        uses.push_back(
            {op.weights->weightRegion, range.address, range.address + range.length - 1, false, "weights"});
    }
    for (const AddressRange& range : op.weights->scales) {
      if (range.length > 0)
        uses.push_back(
            {op.weights->scaleRegion, range.address, range.address + range.length - 1, false, "scales"});
    }
  }
  if (const auto table = model::tableRange(target, op.activation)) {
    uses.push_back({kInternalSpace, table->first, table->last, false, "table"});
  } else if (target.tablesShareAccumulators()) {
    // U55-32/64: the accumulators (for elementwise operations: the inputs) of an operation without a table
    // are where tables are, in the last two banks.
    const int32_t first = std::min(op.accumulatorStart, target.shramKiB - 2);
    uses.push_back({kInternalSpace, static_cast<uint64_t>(first) * 1024,
                    static_cast<uint64_t>(target.shramKiB) * 1024 - 1, true, "accumulators"});
  }
  if (op.accumulatorOutput) add(op.ofm, model::ofmAxes(op), true, "OFM");
  return uses;
}

std::vector<MemoryUse> memoryUses(const Target& target, const DmaOperation& op) {
  std::vector<MemoryUse> uses;
  if (op.length == 0) return uses;
  const int dimensions = std::max(op.dimensions, op.destinationDimensions);
  const int64_t inner =
      dimensions >= 2 || op.source.indexed || op.destination.indexed ? std::max(op.size0, 1) : 1;
  const int64_t outer = dimensions >= 3 ? std::max(op.size1, 1) : 1;
  // The DMA of the Ethos-U55 is specified in units of 16, but compilers emit other lengths for it as well:
  // the bytes up to the next multiple count as moved.
  const Architecture& npu = target.architecture();
  const uint64_t unit = npu.dmaAlignsMemory ? 16 : 1;
  const uint64_t moved = (op.length + unit - 1) / unit * unit;
  const auto push = [&](int32_t space, const format::EthosURange& range, bool write, const char* what) {
    uses.push_back(
        {space, static_cast<uint64_t>(range.first), static_cast<uint64_t>(range.last), write, what});
  };
  const auto add = [&](const DmaEnd& end, bool write, uint8_t ownDimensions, const char* what) {
    int64_t steps = inner, step = end.stride0, group = end.stride1;
    if (npu.dmaGapStrides) {
      // Strides are gaps after runs; a side without strides is contiguous.
      step = static_cast<int64_t>(op.length) + (ownDimensions >= 2 ? end.stride0 : 0);
      group = inner * step + (ownDimensions >= 3 ? end.stride1 : 0);
    } else if (end.indexed) {
      steps = op.indexMax + 1;
    }
    push(end.internal ? kInternalSpace : end.region,
         format::ethosuDmaRange(end.address, moved, steps, outer, step, group), write, what);
  };
  add(op.source, false, op.dimensions, "DMA source");
  add(op.destination, true, op.destinationDimensions, "DMA destination");
  if (op.source.indexed || op.destination.indexed) {
    push(op.indexRegion,
         format::ethosuDmaRange(op.indexAddress, 4, inner, outer, 4, inner * 4 + op.indexSkip1), false,
         "DMA indices");
  }
  return uses;
}

}  // namespace carina::npu
