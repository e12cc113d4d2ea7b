// SPDX-License-Identifier: Apache-2.0
// Random legal operations of every kind on every target, written to a command stream, run by the model and
// compared byte by byte with the simple interpreter in tests/npu/reference.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <random>

#include "npu/isa/blockconfig.hpp"
#include "npu/isa/stream.hpp"
#include "npu/model/model.hpp"
#include "npu/reference/reference.hpp"
#include "npu/weights/scale_records.hpp"
#include "npu/weights/weight_codec.hpp"
#include "support/require.hpp"

namespace carina::test {
namespace {

using namespace npu;

/// One random operation with its data.
class Case {
 public:
  Case(const Target& target, uint32_t seed) : random_(seed), target_(target), u85_(target.isU85()) {
    machine_.target = &target;
    machine_.regions.assign(2, {});
  }

  KernelOperation op;
  reference::Constants constants;
  reference::Machine machine_;

  int in(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool coin(int oneIn = 2) { return in(1, oneIn) == 1; }
  template <typename T>
  T pick(std::initializer_list<T> values) {
    return *(values.begin() + in(0, static_cast<int>(values.size()) - 1));
  }

  void makeWindow() {
    op.kernel.height = coin(8) ? in(1, 12) : in(1, 4);
    op.kernel.width = coin(8) ? in(1, 12) : in(1, 4);
    op.kernel.strideY = in(1, 3);
    op.kernel.strideX = in(1, 3);
    op.kernel.dilationY = coin(4) ? 2 : 1;
    op.kernel.dilationX = coin(4) ? 2 : 1;
    op.ofm.height = in(1, 7);
    op.ofm.width = in(1, 9);
    if (coin()) {
      op.padding = {in(0, op.kernel.dilatedHeight() - 1), in(0, op.kernel.dilatedWidth() - 1), 0, 0};
      op.padding.bottom = in(0, op.kernel.dilatedHeight() - 1);
      op.padding.right = in(0, op.kernel.dilatedWidth() - 1);
    }
    while (op.ifmHeight() < 1 || op.ifmWidth() < 1) op.padding = {};
    op.upscale = coin(5) ? pick({Upscale::Nearest, Upscale::Zeros}) : Upscale::None;
    const int up = op.upscale == Upscale::None ? 1 : 2;
    op.ifm.height = (op.ifmHeight() + up - 1) / up;
    op.ifm.width = (op.ifmWidth() + up - 1) / up;
  }

  int zeroPoint(ElementType type) {
    if (type == ElementType::Int8) return in(-128, 127);
    if (type == ElementType::UInt8) return in(0, 255);
    return 0;
  }

  /// Places a feature map of h x w x c elements at the end of region 1, in one tile or in four.
  void place(FeatureMap& map, int h, int w, int c, bool fill) {
    const int bytes = elementBytes(map.type);
    map.layout = coin() ? Layout::NHWC : Layout::NHCWB16;
    map.region = 1;
    const int gap = coin(4) ? 16 : 0;
    if (map.layout == Layout::NHWC) {
      map.strideX = c * bytes + (coin(4) ? bytes * in(1, 3) : 0);
      map.strideY = map.strideX * w + gap;
      map.strideC = bytes;
    } else {
      map.strideX = int64_t{16} * bytes * (coin(4) ? in(2, 4) : 1);
      map.strideC = map.strideX * w + gap;
      map.strideY = map.strideC * ((c + 15) / 16) + gap;
    }
    map.height0 = map.height1 = h;
    map.width0 = w;
    if (coin(4)) {
      map.height0 = in(1, h);
      map.height1 = in(1, h);
      map.width0 = in(1, w);
    }
    auto& region = machine_.regions[1];
    for (size_t tile = 0; tile < 4; ++tile) {
      map.base[tile] = region.size();
      region.resize(region.size() + static_cast<size_t>(map.strideY * h + 64) / 16 * 16 + 16);
    }
    if (fill) {
      for (size_t i = map.base[0]; i < region.size(); ++i) region[i] = static_cast<uint8_t>(in(0, 255));
    }
  }

  Scale outputScale(int accumulatorBits) {
    Scale scale;
    // Scales a random accumulator close to the output range.
    scale.shift = static_cast<uint8_t>(in(std::max(30, 20 + accumulatorBits / 2), 44));
    scale.multiplier = static_cast<uint32_t>(in(1 << 29, 0x7fffffff));
    if (coin(6)) scale = {1, 0, 0, Rounding::DoubleSymmetric};
    if (u85_) {
      scale.rounding = static_cast<Rounding>(in(0, 5));
      if (coin(4)) scale.doubleRound = static_cast<uint8_t>(in(0, 30));
    } else {
      scale.rounding = pick({Rounding::DoubleSymmetric, Rounding::TruncateToZero, Rounding::Natural});
    }
    return scale;
  }

  void makeActivation(bool tables) {
    Activation& a = op.activation;
    const ElementType type = op.ofm.type;
    const bool sign = isSigned(type);
    const int bytes = elementBytes(type);
    const int low = bytes == 1 ? (sign ? -128 : 0)
                    : sign     ? -32768
                               : 0,
              high = bytes == 1 ? (sign ? 127 : 255)
                     : sign     ? 32767
                                : 65535;
    a.min = low;
    a.max = high;
    if (coin(3)) {
      a.min = in(low, high);
      a.max = in(a.min, high);
    }
    if (u85_ && (bytes >= 4 || coin(6))) a.clamp = false;
    if (tables && coin(4)) {
      if (bytes == 1) a.table = Table::Lut8;
      if (type == ElementType::Int16) a.table = Table::Lut16;
      if (type == ElementType::Int32) {
        a.table = Table::Lut8To32;
        a.min = in(-128, 0);
        a.max = in(0, 127);
        a.clipRange = u85_ ? 0 : 3;
      }
      a.clamp = true;
      if (a.table != Table::None) {
        a.slot = static_cast<uint8_t>(a.table == Table::Lut8       ? in(0, 7)
                                      : a.table == Table::Lut8To32 ? in(0, 1) * 4
                                                                   : 0);
        for (uint8_t& byte : machine_.table) byte = static_cast<uint8_t>(in(0, 255));
      }
    }
    if (!a.clamp) a.min = a.max = 0;
  }

  void makeBlock() {
    if (u85_) {
      const auto all = microblocks(target_);
      op.microblock = all[static_cast<size_t>(in(0, static_cast<int>(all.size()) - 1))];
      op.block = {op.microblock.h * 2, op.microblock.w * 2,
                  static_cast<int32_t>(std::max(op.microblock.c, 16) * in(1, 2))};
    } else {
      const BlockShape ub = microblocks(target_).front();
      op.block = {ub.h * in(1, 3), ub.w * in(1, 3), 8 * in(1, 4)};
    }
  }

  /// Feature maps of window operations: types, zero points, memory.
  void makeMaps(int ofmDepth, int ifmDepth) {
    op.ofm.depth = ofmDepth;
    op.ifm.depth = ifmDepth;
    op.ifm.zeroPoint = zeroPoint(op.ifm.type);
    op.ofm.zeroPoint =
        elementBytes(op.ofm.type) <= 2 ? (isSigned(op.ofm.type) ? in(-128, 127) : in(0, 255)) : 0;
    place(op.ifm, op.ifm.height, op.ifm.width, ifmDepth, true);
    if (u85_ && coin(4)) {
      if (coin())
        op.reverse = pick({Reverse::H, Reverse::W, Reverse::C});
      else
        op.transpose = pick({Transpose::WHC, Transpose::HCW, Transpose::WCH, Transpose::CHW, Transpose::CWH});
    }
    int h = op.ofm.height, w = op.ofm.width, c = op.ofm.depth;
    switch (op.transpose) {
      case Transpose::HWC:
        break;
      case Transpose::WHC:
        std::swap(h, w);
        break;
      case Transpose::HCW:
        std::swap(w, c);
        break;
      case Transpose::WCH:
        std::tie(h, w, c) = std::tuple(w, c, h);
        break;
      case Transpose::CHW:
        std::tie(h, w, c) = std::tuple(c, h, w);
        break;
      case Transpose::CWH:
        std::swap(h, c);
        break;
    }
    place(op.ofm, h, w, c, false);
  }

  void makeConvolution(bool isDepthwise) {
    op.kind = isDepthwise ? OperationKind::Depthwise : OperationKind::Conv;
    makeWindow();
    op.ifm.type = pick({ElementType::Int8, ElementType::Int8, ElementType::UInt8, ElementType::Int16});
    op.ofm.type = pick(
        {ElementType::Int8, ElementType::Int8, ElementType::UInt8, ElementType::Int16, ElementType::Int32});
    const int channels = in(1, 40);
    makeMaps(channels, isDepthwise ? channels : in(1, 40));
    const bool wide = op.ifm.type == ElementType::Int16;
    if (wide) op.accumulator = u85_ ? AccumulatorFormat::Int48 : AccumulatorFormat::Int40;
    op.ofmScale = outputScale(16);
    op.ofmScale.multiplier = op.ofmScale.shift = 0;  // per channel: only the rounding is read
    if (!u85_) op.ofmScale = {1, 0, 0, op.ofmScale.rounding};
    makeActivation(true);
    op.kernel.subKernel = coin(6) ? 4 : 8;
    WeightStreams& streams = op.weights.emplace();
    if (!isDepthwise && coin()) streams.traversal = Traversal::PartKernelFirst;
    if (u85_ && !isDepthwise) {
      streams.fastFormat = coin(5);
      streams.sparse = coin(4);
    }
    makeBlock();
    const WeightShape shape = weightShape(op);
    WeightOrder order = weightOrder(target_, op);
    if (!u85_) order.ofmUblockDepth = microblocks(target_).front().c;
    const int range = coin(5) ? 255 : pick({127, 12, 2});
    const int top = streams.fastFormat || streams.sparse ? std::min(range, 127) : range;
    std::vector<int16_t> weights;
    for (int64_t i = 0; i < shape.elements(); ++i) {
      weights.push_back(static_cast<int16_t>(in(-top, top)));
    }
    if (streams.sparse) makeSparse(weights, shape.ifmDepth);
    constants.weights.assign(weights.begin(), weights.end());
    const WeightView view = isDepthwise ? WeightView::hwc(weights.data(), DType::Int16, shape)
                                        : WeightView::ohwi(weights.data(), DType::Int16, shape);
    const auto encoded = require(encodeWeights(
        view, order, {0, channels}, streams.fastFormat ? WeightEncoding::Fast : WeightEncoding::Standard));
    auto& region = machine_.regions[0];
    const auto append = [&](const std::vector<uint8_t>& bytes) {
      region.resize((region.size() + 15) / 16 * 16);
      const AddressRange range_{bytes.empty() ? 0 : region.size(), bytes.size()};
      region.insert(region.end(), bytes.begin(), bytes.end());
      return range_;
    };
    for (size_t s = 0; s < encoded.streams.size(); ++s) streams.weights[s] = append(encoded.streams[s]);
    makeRecords(streams, wide, append, channels);
  }

  /// 2:4 sparsity: two of each group of four input channels are zero; the first channel starts a group.
  void makeSparse(std::vector<int16_t>& ohwi, int32_t depth) {
    for (size_t row = 0; row < ohwi.size(); row += static_cast<size_t>(depth)) {
      for (int32_t group = 0; group < depth; group += 4) {
        const int first = in(0, 3), second = (first + in(1, 3)) % 4;
        for (const int lost : {first, second}) {
          if (group + lost < depth) ohwi[row + static_cast<size_t>(group + lost)] = 0;
        }
      }
    }
  }

  template <typename Append>
  void makeRecords(WeightStreams& streams, bool wide, const Append& append, int channels) {
    std::vector<ScaleRecord> records;
    for (int c = 0; c < channels; ++c) {
      ScaleRecord record;
      record.bias = in(-100000, 100000);
      if (wide && coin(3)) record.bias *= 10000;
      if (u85_ && wide) {
        record.scale = static_cast<uint32_t>(in(1 << 13, 0x7fff));
        record.shift = static_cast<uint8_t>(in(14, 30));
      } else {
        record.scale = static_cast<uint32_t>(in(1 << 29, 0x7fffffff)) * (!u85_ && coin(8) ? 2u : 1u);
        record.shift = static_cast<uint8_t>(in(32, 46));
      }
      if (coin(12)) record.scale = 1, record.shift = 0;
      records.push_back(record);
      constants.records.push_back({record.bias, record.scale, record.shift});
    }
    const auto format = scaleFormat(target_, op.accumulator);
    const auto encoded = require(encodeScales(records, target_, format, u85_ ? op.microblock.c : 8));
    for (size_t s = 0; s < encoded.size(); ++s) streams.scales[s] = append(encoded[s]);
  }

  void makePool() {
    op.kind = OperationKind::Pool;
    op.pool = u85_ ? pick({PoolMode::Max, PoolMode::Average, PoolMode::ReduceSum, PoolMode::Sum,
                           PoolMode::Min, PoolMode::ArgMaxX, PoolMode::ArgMaxY})
                   : pick({PoolMode::Max, PoolMode::Average, PoolMode::ReduceSum});
    makeWindow();
    op.ifm.type = pick({ElementType::Int8, ElementType::UInt8, ElementType::Int16});
    op.ofm.type = op.ifm.type;
    const int depth = in(1, 40);
    op.globalScale = true;
    op.ofmScale = outputScale(10);
    if (op.pool == PoolMode::ReduceSum) {
      op.kernel = {};
      op.padding = {};
      op.upscale = Upscale::None;
      op.ifm.height = op.ofm.height;
      op.ifm.width = op.ofm.width;
      op.ifm.type = pick({ElementType::Int8, ElementType::Int16, ElementType::Int32});
      op.ofm.type = pick({ElementType::Int8, ElementType::Int16, ElementType::Int32});
      makeMaps(1, depth);
    } else {
      makeMaps(depth, depth);
    }
    if (op.pool == PoolMode::Max && !u85_) {
      op.globalScale = coin();
      if (!op.globalScale) op.ofmScale = {1, 0, 0, op.ofmScale.rounding};
    }
    if (op.pool == PoolMode::Average && (u85_ || op.padding.any())) {
      op.ofmScale = {1, 0, 0, op.ofmScale.rounding};
    }
    if (op.pool == PoolMode::ArgMaxX || op.pool == PoolMode::ArgMaxY) {
      op.ofm.type = ElementType::Int32;
      op.ofm.zeroPoint = 0;
      op.ofmScale = {1, 16, 0, Rounding::TruncateToLower};
      machine_.regions[1].clear();
      op.transpose = Transpose::HWC;
      op.reverse = Reverse::None;
      place(op.ifm, op.ifm.height, op.ifm.width, depth, true);
      place(op.ofm, op.ofm.height, op.ofm.width, depth, false);
    }
    makeActivation(op.pool != PoolMode::ArgMaxX && op.pool != PoolMode::ArgMaxY);
    makeBlock();
  }

  void makeElementwise() {
    op.kind = OperationKind::Elementwise;
    Elementwise& e = op.elementwise;
    using M = ElementwiseMode;
    e.mode = u85_ ? pick({M::Mul,   M::Add,   M::Sub, M::Min, M::Max, M::LRelu, M::Abs,
                          M::Clz,   M::Shr,   M::Shl, M::Lsr, M::Div, M::CmpEq, M::CmpNe,
                          M::CmpGe, M::CmpGt, M::And, M::Or,  M::Xor, M::Not,   M::AndNot})
                  : pick({M::Mul, M::Add, M::Sub, M::Min, M::Max, M::LRelu, M::Abs, M::Clz, M::Shr, M::Shl});
    const bool shifts = e.mode == M::Shr || e.mode == M::Shl || e.mode == M::Lsr;
    op.ifm.type = pick({ElementType::Int8, ElementType::UInt8, ElementType::Int16, ElementType::Int32});
    if (shifts || e.mode == M::Clz || e.mode == M::Div) op.ifm.type = ElementType::Int32;
    op.ofm.type = op.ifm.type;
    if (op.ifm.type == ElementType::Int32 && !shifts && coin(4)) op.ofm.type = ElementType::Int16;
    if (elementBytes(op.ifm.type) < 4 && e.mode == M::Mul && coin(4)) op.ofm.type = ElementType::Int32;
    op.ofm.height = in(1, 6);
    op.ofm.width = in(1, 8);
    op.ofm.depth = in(1, 36);
    const bool plainZero = e.mode >= M::Clz;
    op.ifm.zeroPoint = plainZero ? 0 : zeroPoint(op.ifm.type);
    op.ofm.zeroPoint = elementBytes(op.ofm.type) <= 2 && !plainZero
                           ? (isSigned(op.ofm.type) ? in(-128, 127) : in(0, 255))
                           : 0;
    const bool binary = !isUnary(e.mode);
    const auto size = [&](FeatureMap& map, const Broadcast& b) {
      map.height = b.h || b.scalar ? 1 : op.ofm.height;
      map.width = b.w || b.scalar ? 1 : op.ofm.width;
      map.depth = b.c || b.scalar ? 1 : op.ofm.depth;
    };
    if (binary) {
      op.ifm2.emplace();
      op.ifm2->type = op.ifm.type;
      op.ifm2->zeroPoint = plainZero ? 0 : zeroPoint(op.ifm.type);
      e.ifm2Broadcast = {coin(4), coin(4), coin(4), false};
      if (u85_) e.ifmBroadcast = {coin(6), coin(6), coin(6), false};
      if (coin(5)) {
        const bool first = u85_ && coin();
        (first ? e.ifmBroadcast : e.ifm2Broadcast) = {false, false, false, true};
        FeatureMap& map = first ? op.ifm : *op.ifm2;
        map.storage = Storage::None;
        const ElementType type = map.type;
        e.scalar = type == ElementType::Int8             ? in(-128, 127)
                   : type == ElementType::UInt8          ? in(0, 255)
                   : type == ElementType::Int16 || !u85_ ? in(-32768, 32767)
                                                         : in(-2000000000, 2000000000);
        if (shifts) e.scalar = in(0, 31);
      }
      if (!u85_) e.reverseOperands = coin(3);
    }
    size(op.ifm, e.ifmBroadcast);
    if (op.ifm.storage != Storage::None) place(op.ifm, op.ifm.height, op.ifm.width, op.ifm.depth, true);
    if (binary) {
      size(*op.ifm2, e.ifm2Broadcast);
      if (op.ifm2->storage != Storage::None) {
        place(*op.ifm2, op.ifm2->height, op.ifm2->width, op.ifm2->depth, true);
      }
      if (shifts) {  // the second operand in execution order is a shift amount
        e.reverseOperands = false;
        if (op.ifm2->storage != Storage::None) {
          auto& region = machine_.regions[1];
          for (size_t i = op.ifm2->base[0]; i < region.size(); ++i)
            region[i] = i % 4 == 0 ? static_cast<uint8_t>(in(0, 31)) : uint8_t{0};
        }
      }
    }
    op.globalScale = u85_ || coin(4) || (e.mode != M::Min && e.mode != M::Max && !shifts && e.mode != M::Clz);
    op.ofmScale = {1, 0, 0, Rounding::Natural};
    const bool scalable = e.mode == M::Add || e.mode == M::Sub || e.mode == M::Mul || e.mode == M::Abs ||
                          (u85_ && (e.mode == M::Min || e.mode == M::Max)) || (!u85_ && e.mode == M::LRelu);
    if (scalable && op.globalScale) op.ofmScale = outputScale(16);
    if (e.mode == M::Shr && u85_) op.ofmScale.rounding = pick({Rounding::Natural, Rounding::TruncateToLower});
    if (!u85_ && !op.globalScale) op.ofmScale = {1, 0, 0, op.ofmScale.rounding};
    if (u85_) {
      for (Scale* scale : {&e.ifmScale, &e.ifm2Scale}) {
        *scale = {1, 0, 0, Rounding::DoubleSymmetric};
        if (elementBytes(op.ifm.type) <= 2 &&
            (scalable || e.mode == M::LRelu || (e.mode >= M::CmpEq && e.mode <= M::CmpGt)) &&
            e.mode != M::Mul && coin()) {
          *scale = {static_cast<uint32_t>(in(1 << 29, 0x7fffffff)), static_cast<uint8_t>(in(11, 20)),
                    static_cast<uint8_t>(in(0, 20)), pick({Rounding::DoubleSymmetric, Rounding::Natural})};
        }
      }
    } else {
      e.ifmScale = {static_cast<uint32_t>(in(1, 65535)), 0, 0, Rounding::DoubleSymmetric};
      e.ifm2Scale.multiplier = static_cast<uint32_t>(in(1, 65535));
      if (coin()) {
        e.operandScaling = pick({OperandScaling::OperandA32, OperandScaling::OperandB32});
        e.ifmScale = {static_cast<uint32_t>(in(1 << 29, 0x7fffffff)), static_cast<uint8_t>(in(11, 16)), 0,
                      pick({Rounding::DoubleSymmetric, Rounding::Natural})};
      }
    }
    place(op.ofm, op.ofm.height, op.ofm.width, op.ofm.depth, false);
    makeActivation(!plainZero);
    makeBlock();
  }

  void makeResize() {
    op.kind = OperationKind::Resize;
    op.resize = pick({ResizeMode::Bilinear, ResizeMode::Replicate, ResizeMode::Nearest});
    op.ifm.type = pick({ElementType::Int8, ElementType::Int16});
    op.ofm.type = op.resize == ResizeMode::Bilinear ? ElementType::Int32 : op.ifm.type;
    op.ifm.height = in(1, 6);
    op.ifm.width = in(1, 6);
    op.ofm.height = in(1, 10);
    op.ofm.width = in(1, 10);
    for (ResizeAxis* axis : {&op.resizeX, &op.resizeY}) {
      axis->numerator = in(1, 32);
      axis->denominator = in(1, std::min(32, 15 * axis->numerator));
      axis->offset = in(-axis->numerator, axis->numerator - 1);
    }
    const int depth = in(1, 36);
    op.ofm.depth = op.ifm.depth = depth;
    place(op.ifm, op.ifm.height, op.ifm.width, depth, true);
    place(op.ofm, op.ofm.height, op.ofm.width, depth, false);
    op.globalScale = true;
    op.ofmScale = {1, static_cast<uint8_t>(16 + (op.resize == ResizeMode::Bilinear ? in(0, 8) : 0)), 0,
                   pick({Rounding::Symmetric, Rounding::Natural})};
    makeActivation(false);
    makeBlock();
    op.block.h = 1;
  }

  /// Runs model and reference. Returns an empty string if they agree, otherwise what differs.
  std::string compare() {
    auto machine = makeMachine(target_.name, "", "");
    StreamWriter writer(target_);
    if (op.activation.table != Table::None) {
      // The table is loaded from memory by DMA, as in programs.
      DmaOperation load;
      auto& region = machine_.regions[0];
      region.resize((region.size() + 15) / 16 * 16);
      load.source.address = region.size();
      region.insert(region.end(), machine_.table.begin(), machine_.table.end());
      load.destination.internal = true;
      load.destination.region = 3;
      load.destination.address = u85_ ? 0 : static_cast<uint64_t>(target_.shramKiB) * 1024 - 2048;
      load.length = 2048;
      if (auto status = writer.add(Operation(load)); !status.ok()) return status.error().str();
    }
    if (auto status = writer.add(Operation(op)); !status.ok()) return "writer: " + status.error().str();
    if (auto status = writer.add(Operation(Stop{})); !status.ok()) return status.error().str();

    reference::Machine expected = machine_;
    reference::execute(expected, op, constants);
    std::vector<std::byte> constantsBytes = bytesOf(machine_.regions[0]),
                           arena = bytesOf(machine_.regions[1]);
    const RegionBytes regions[] = {{constantsBytes, false}, {arena, true}};
    ModelOptions options;
    options.parallel = false;
    const RunResult result = runStream(writer.words(), *machine, regions, options);
    if (result.fault) return result.fault->str();
    const std::vector<std::byte> wanted = bytesOf(expected.regions[1]);
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i] == arena[i]) continue;
      return fmt::format("{} kind {} pool {} elementwise {}: byte {} is {}, not {}", target_.name,
                         static_cast<int>(op.kind), static_cast<int>(op.pool),
                         static_cast<int>(op.elementwise.mode), i, static_cast<int>(arena[i]),
                         static_cast<int>(wanted[i]));
    }
    return "";
  }

 private:
  static std::vector<std::byte> bytesOf(const std::vector<uint8_t>& bytes) {
    const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
    return {first, first + bytes.size()};
  }

  std::mt19937 random_;
  const Target& target_;
  bool u85_;
};

void runMany(void (*make)(Case&), bool onlyU85 = false) {
  constexpr int kPerSeed = 1;
  for (const Target& target : allTargets()) {
    if (onlyU85 && !target.isU85()) continue;
    for (int i = 0; i < kPerSeed; ++i) {
      const auto seed = *rc::gen::resize(1000, rc::gen::arbitrary<uint32_t>());
      Case test(target, seed);
      make(test);
      const std::string difference = test.compare();
      if (!difference.empty()) RC_FAIL(fmt::format("seed {}: {}", seed, difference));
    }
  }
}

RC_GTEST_PROP(ModelAgainstReference, Convolution, ()) {
  runMany([](Case& test) { test.makeConvolution(false); });
}
RC_GTEST_PROP(ModelAgainstReference, Depthwise, ()) {
  runMany([](Case& test) { test.makeConvolution(true); });
}
RC_GTEST_PROP(ModelAgainstReference, Pooling, ()) {
  runMany([](Case& test) { test.makePool(); });
}
RC_GTEST_PROP(ModelAgainstReference, Elementwise, ()) {
  runMany([](Case& test) { test.makeElementwise(); });
}
RC_GTEST_PROP(ModelAgainstReference, Resize, ()) {
  runMany([](Case& test) { test.makeResize(); }, true);
}

}  // namespace
}  // namespace carina::test
