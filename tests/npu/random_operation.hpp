// SPDX-License-Identifier: Apache-2.0
// Arbitrary operations that a target can express, in the form that the stream decoder returns: fields that a
// kind of operation does not read keep their defaults.
#pragma once

#include <rapidcheck.h>

#include <algorithm>

#include "npu/isa/operation.hpp"

namespace carina::test {

class RandomOperation {
 public:
  explicit RandomOperation(const npu::Target& target) : target_(target), u85_(target.isU85()) {}

  npu::Operation any() {
    switch (in(0, u85_ ? 11 : 9)) {
      case 0:
        return npu::KernelWait{in(0, u85_ ? 1 : 3)};
      case 1:
        return npu::DmaWait{in(0, 3)};
      case 2:
        return npu::Irq{static_cast<uint16_t>(in(0, 65535))};
      case 3:
        return npu::PmuMask{coin()};
      case 4:
      case 5:
        return dma();
      case 10:
        return npu::Branch{coin(), static_cast<uint32_t>(in(0, 1 << 20)) * 4};
      default:
        return kernel();
    }
  }

  npu::KernelOperation kernel() {
    using namespace npu;
    KernelOperation op;
    op.kind = static_cast<OperationKind>(in(0, u85_ ? 4 : 3));
    const bool elementwise = op.kind == OperationKind::Elementwise, resize = op.kind == OperationKind::Resize;
    if (op.kind == OperationKind::Pool) op.pool = static_cast<PoolMode>(in(0, u85_ ? 7 : 2));
    if (u85_ && op.kind == OperationKind::Conv) op.weightsFromIfm2 = in(0, 4) == 0;
    op.ofm = map(true);
    op.ofm.height = in(1, 200);
    op.ofm.width = in(1, 200);
    op.ofm.depth = in(1, 300);
    op.globalScale = coin();
    op.ofmScale = outputScale(op.globalScale);
    op.ifm = map(false);
    if (u85_) {
      op.accumulatorInput = static_cast<AccumulatorInput>(in(0, elementwise || resize ? 1 : 2));
      op.accumulatorOutput = coin();
      const Transpose transposes[] = {Transpose::HWC, Transpose::WHC, Transpose::HCW,
                                      Transpose::WCH, Transpose::CHW, Transpose::CWH};
      op.transpose = transposes[in(0, 5)];
      op.reverse = static_cast<Reverse>(in(0, 3));
    }
    if (elementwise)
      pickElementwise(op);
    else if (op.weightsFromIfm2 || op.accumulatorInput == AccumulatorInput::Ifm2)
      op.ifm2 = map(false);
    if (resize)
      pickResize(op);
    else if (!elementwise)
      pickWindow(op);
    sizes(op);
    if (op.kind == OperationKind::Conv || op.kind == OperationKind::Depthwise ||
        op.kind == OperationKind::Pool)
      pickWeights(op);
    pickActivation(op);
    pickBlock(op);
    return op;
  }

  npu::DmaOperation dma() {
    using namespace npu;
    DmaOperation dma;
    const bool u65 = target_.family == Family::U65;
    dma.source.region = static_cast<uint8_t>(in(0, 7));
    dma.destination.region = static_cast<uint8_t>(in(0, 7));
    dma.destination.internal = coin();
    dma.source.address = address();
    dma.destination.address = address();
    dma.length = static_cast<uint64_t>(in(1, 1 << 20));
    if (u85_) dma.dimensions = static_cast<uint8_t>(in(1, 3));
    if (u65) {
      dma.dimensions = static_cast<uint8_t>(coin() ? 1 : in(1, 3));
      dma.destinationDimensions = static_cast<uint8_t>(in(1, 3));
    }
    if (u85_ && in(0, 2) == 0) (coin() ? dma.source : dma.destination).indexed = true;
    const bool indexed = dma.source.indexed || dma.destination.indexed;
    const int dimensions = std::max(dma.dimensions, dma.destinationDimensions);
    if (dimensions > 1 || indexed) dma.size0 = in(1, 65535);
    if (dimensions > 2) dma.size1 = in(1, 65535);
    if (u65) {
      const int64_t gap0 = stride(), gap1 = stride();
      const auto gaps = [&](DmaEnd& end, int d) {
        if (d > 1) end.stride0 = gap0;
        if (d > 2) end.stride1 = gap1;
      };
      gaps(dma.source, dma.dimensions);
      gaps(dma.destination, dma.destinationDimensions);
    }
    if (u85_ && (dimensions > 1 || indexed)) {
      dma.source.stride0 = stride();
      dma.destination.stride0 = stride();
      if (dimensions > 2) {
        dma.source.stride1 = stride();
        dma.destination.stride1 = stride();
      }
    }
    if (indexed) {
      dma.indexRegion = static_cast<uint8_t>(in(0, 7));
      dma.indexAddress = address();
      dma.indexMax = in(0, INT32_MAX);
      if (dimensions > 2) dma.indexSkip1 = stride();
    }
    return dma;
  }

 private:
  // inRange excludes its upper end and shrinks with the size; uniform values explore the fields better.
  int in(int low, int high) {
    return static_cast<int>(
        *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<int64_t>(low, int64_t{high} + 1)));
  }
  bool coin() { return in(0, 1) == 1; }
  uint64_t address() {
    uint64_t value = static_cast<uint64_t>(in(0, INT32_MAX)) * 2;
    if (target_.architecture().addressBits == 40 && coin()) value |= static_cast<uint64_t>(in(1, 255)) << 32;
    return value;
  }
  int64_t stride() {
    const int64_t value = in(INT32_MIN + 1, INT32_MAX);
    return target_.architecture().addressBits == 40 && coin() ? value * 200 : value;
  }
  npu::ElementType type() { return static_cast<npu::ElementType>(in(0, 6)); }
  int32_t valueOf(npu::ElementType type) { return npu::isSigned(type) ? in(-32768, 32767) : in(0, 65535); }

  /// Everything except the size.
  npu::FeatureMap map(bool output) {
    using namespace npu;
    FeatureMap fm;
    fm.type = type();
    fm.layout = coin() ? Layout::NHWC : Layout::NHCWB16;
    if (u85_) fm.storage = static_cast<Storage>(in(0, output ? 3 : 2));
    fm.zeroPoint = valueOf(fm.type);
    if (fm.storage == Storage::None) return fm;
    fm.region = static_cast<uint8_t>(in(0, 7));
    if (fm.storage == Storage::Chained) return fm;
    for (uint64_t& base : fm.base) base = address();
    fm.height0 = in(1, 65536);
    fm.height1 = in(1, 65536);
    fm.width0 = in(1, 65536);
    fm.strideX = stride();
    fm.strideY = stride();
    fm.strideC = stride();
    return fm;
  }

  npu::Scale outputScale(bool global) {
    using namespace npu;
    Scale scale;
    if (u85_) {
      scale = {static_cast<uint32_t>(in(0, INT32_MAX)), static_cast<uint8_t>(in(0, 63)),
               static_cast<uint8_t>(in(0, 30)), static_cast<Rounding>(in(0, 5))};
      return scale;
    }
    if (global) {
      scale.multiplier = static_cast<uint32_t>(in(0, INT32_MAX)) * 2u;
      scale.shift = static_cast<uint8_t>(in(0, 63));
    }
    scale.rounding = roundingU55();
    return scale;
  }
  npu::Rounding roundingU55() {
    using npu::Rounding;
    const Rounding modes[] = {Rounding::DoubleSymmetric, Rounding::TruncateToZero, Rounding::Natural};
    return modes[in(0, 2)];
  }

  void pickElementwise(npu::KernelOperation& op) {
    using namespace npu;
    Elementwise& e = op.elementwise;
    const int modes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 33, 34, 35, 36, 42};
    e.mode = static_cast<ElementwiseMode>(modes[in(0, u85_ ? 20 : 9)]);
    const bool binary = !isUnary(e.mode);
    const auto broadcast = [&] { return Broadcast{coin(), coin(), coin(), false}; };
    if (binary) {
      op.ifm2 = map(false);
      e.ifm2Broadcast = broadcast();
    }
    if (u85_) {
      e.ifmBroadcast = broadcast();
      for (Scale* scale : {&e.ifmScale, &e.ifm2Scale}) {
        *scale = {static_cast<uint32_t>(in(0, INT32_MAX)), static_cast<uint8_t>(in(0, 63)),
                  static_cast<uint8_t>(in(0, 30)), static_cast<Rounding>(in(0, 1))};
      }
    } else {
      e.reverseOperands = binary && coin();
      e.operandScaling = static_cast<OperandScaling>(in(0, 2));
      e.ifmScale = {static_cast<uint32_t>(in(0, INT32_MAX)), static_cast<uint8_t>(in(0, 63)), 0,
                    roundingU55()};
      e.ifm2Scale.multiplier = static_cast<uint32_t>(in(0, 65535));
    }
    if (binary && in(0, 3) == 0) {  // a scalar: on U85, either operand
      const bool first = u85_ && coin();
      FeatureMap& fm = first ? op.ifm : *op.ifm2;
      Broadcast& b = first ? e.ifmBroadcast : e.ifm2Broadcast;
      b = Broadcast{false, false, false, true};
      FeatureMap scalar;
      scalar.type = fm.type;
      scalar.layout = fm.layout;
      scalar.zeroPoint = fm.zeroPoint;
      scalar.storage = Storage::None;
      fm = scalar;
      e.scalar = u85_ ? in(INT32_MIN + 1, INT32_MAX) : valueOf(fm.type);
    }
  }

  void pickWindow(npu::KernelOperation& op) {
    op.kernel = {in(1, 16), in(1, 16), in(1, 4), in(1, 4), in(1, 2), in(1, 2), coin() ? 4 : 8};
    op.upscale = static_cast<npu::Upscale>(in(0, 2));
    // Padding never covers the whole window.
    op.padding = {in(0, op.kernel.dilatedHeight() - 1), in(0, op.kernel.dilatedWidth() - 1), 0, 0};
  }

  void pickResize(npu::KernelOperation& op) {
    op.resize = static_cast<npu::ResizeMode>(in(0, 2));
    for (npu::ResizeAxis* axis : {&op.resizeX, &op.resizeY}) {
      axis->numerator = in(1, 2048);
      axis->denominator = in(1, axis->numerator * 2);
      axis->offset = in(-axis->numerator, axis->numerator - 1);
    }
  }

  void sizes(npu::KernelOperation& op) {
    using namespace npu;
    const auto broadcastSize = [&](FeatureMap& fm, const Broadcast& b) {
      fm.height = b.h || b.scalar ? 1 : op.ofm.height;
      fm.width = b.w || b.scalar ? 1 : op.ofm.width;
      fm.depth = b.c || b.scalar ? 1 : op.ofm.depth;
    };
    if (op.kind == OperationKind::Elementwise) {
      broadcastSize(op.ifm, op.elementwise.ifmBroadcast);
      if (op.ifm2) broadcastSize(*op.ifm2, op.elementwise.ifm2Broadcast);
      return;
    }
    const bool wholeDepth = op.kind != OperationKind::Depthwise &&
                            !(op.kind == OperationKind::Pool && op.pool != PoolMode::ReduceSum);
    op.ifm.depth = wholeDepth ? in(1, 65536) : op.ofm.depth;
    if (op.kind == OperationKind::Resize) {
      op.ifm.height = in(1, 65536);
      const int64_t last = int64_t{op.ofm.width - 1} * op.resizeX.denominator + op.resizeX.offset;
      op.ifm.width = static_cast<int32_t>(std::max<int64_t>(0, last / op.resizeX.numerator + 1) + 1);
    } else {
      const int up = op.upscale == Upscale::None ? 1 : 2;
      op.ifm.height = (op.ifmHeight() + up - 1) / up;
      op.ifm.width = (op.ifmWidth() + up - 1) / up;
    }
    if (!op.ifm2) return;
    broadcastSize(*op.ifm2, Broadcast{});
    if (op.weightsFromIfm2) {
      op.ifm2->height = op.ifm2->height0;
      op.ifm2->width = op.ifm2->width0;
      op.ifm2->depth = op.ifm.depth;
    }
  }

  void pickWeights(npu::KernelOperation& op) {
    using namespace npu;
    const bool pool = op.kind == OperationKind::Pool;
    // As in the decoder: on U55 and U65, only the average of single elements uses scales.
    const bool single =
        op.pool == PoolMode::Average && op.kernel.height == 1 && op.kernel.width == 1 && !op.padding.any();
    if (pool && (op.globalScale || !(u85_ || single))) return;
    if (op.weightsFromIfm2 && op.globalScale) return;
    WeightStreams& w = op.weights.emplace();
    const auto range = [&](int high) {
      AddressRange r;
      r.length = static_cast<uint64_t>(in(0, 3) == 0 ? 0 : in(1, high));
      if (r.length != 0) r.address = address();
      return r;
    };
    if (!pool && !op.weightsFromIfm2) {
      w.weightRegion = static_cast<uint8_t>(in(0, 7));
      for (int s = 0; s < target_.weightStreams; ++s) w.weights[static_cast<size_t>(s)] = range(INT32_MAX);
      w.traversal = static_cast<Traversal>(in(0, 1));
      if (u85_) {
        w.fastFormat = coin();
        w.sparse = coin();
      }
    }
    w.scaleRegion = static_cast<uint8_t>(in(0, 7));
    for (int s = 0; s < target_.cores; ++s) w.scales[static_cast<size_t>(s)] = range((1 << 20) - 1);
  }

  void pickActivation(npu::KernelOperation& op) {
    using namespace npu;
    Activation& a = op.activation;
    const int bytes = elementBytes(op.ofm.type);
    if (u85_) {
      a.table = static_cast<Table>(in(0, 7));
      const int tableBytes = a.table == Table::Lut8       ? 256
                             : a.table == Table::Lut8To16 ? 512
                             : a.table == Table::Lut8To32 ? 1024
                                                          : 2048;
      if (a.table != Table::None)
        a.slot = static_cast<uint8_t>(in(0, 2048 / tableBytes - 1) * tableBytes / 256);
      a.clamp = coin();
    } else {
      const Table tables[] = {Table::None,
                              bytes == 4   ? Table::Lut8To32
                              : bytes == 2 ? Table::Lut16
                                           : Table::Lut8,
                              Table::Tanh, Table::Sigmoid};
      a.table = tables[in(0, 3)];
      if (a.table == tables[1]) a.slot = static_cast<uint8_t>(in(0, 7));
      a.clipRange = static_cast<uint8_t>(in(0, 5));
    }
    if (a.clamp) {
      a.min = valueOf(op.ofm.type);
      a.max = valueOf(op.ofm.type);
    }
  }

  void pickBlock(npu::KernelOperation& op) {
    using namespace npu;
    const BlockShape most = target_.architecture().maxBlock;
    op.block = {in(1, most.h), in(1, most.w), in(1, most.c)};
    op.blockDependency = in(0, target_.architecture().maxBlockDependency);
    if (u85_) {
      op.accumulator = coin() ? AccumulatorFormat::Int32 : AccumulatorFormat::Int48;
      const BlockShape microblocks[] = {{1, 1, 0}, {1, 2, 0}, {1, 4, 0}, {2, 2, 0}, {2, 4, 0}, {4, 4, 0}};
      op.microblock = microblocks[in(0, 5)];
      op.microblock.c = std::max(8, target_.macs / 8 / (op.microblock.h * op.microblock.w));
    } else {
      op.accumulator = coin() ? AccumulatorFormat::Int32 : AccumulatorFormat::Int40;
      op.ifmBufferEnd = in(0, 63);
      op.accumulatorStart = in(0, 63);
      if (op.ifm2 && !op.elementwise.ifm2Broadcast.scalar) op.ifm2BufferStart = in(0, 63);
      const int macs = target_.macs;
      op.microblock = {macs >= 256 ? 2 : 1, macs >= 128 ? 2 : 1, macs == 32 ? 4 : 8};
    }
    if (op.kind == OperationKind::Resize) op.block.h = 1;
  }

  const npu::Target& target_;
  bool u85_;
};

}  // namespace carina::test
