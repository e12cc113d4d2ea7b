// SPDX-License-Identifier: Apache-2.0
// Decodes register state into npu::Operation; the counterpart of operation_encoder.cpp. Only the fields that
// an operation reads are filled in, so stale registers never leak into it.
#include <algorithm>

#include "npu/isa/feature_map_registers.hpp"
#include "npu/isa/stream.hpp"

namespace carina::npu {

using isa::Cmd0;
using isa::Cmd1;

namespace {

constexpr int64_t signExtend(uint64_t value, int bits) {
  const uint64_t sign = uint64_t{1} << (bits - 1);
  return static_cast<int64_t>((value ^ sign) - sign);
}

Broadcast broadcastU85(uint32_t value) {
  Broadcast b;
  if ((value & 8u) != 0) {
    b.scalar = true;
    return b;
  }
  b.h = (value & 1u) != 0;
  b.w = (value & 2u) != 0;
  b.c = (value & 4u) != 0;
  return b;
}

constexpr bool knownElementwise(uint32_t mode, bool u85) {
  if (mode <= 9) return true;
  return u85 &&
         (mode == 10 || mode == 11 || (mode >= 16 && mode <= 19) || (mode >= 33 && mode <= 36) || mode == 42);
}

}  // namespace

class OperationDecoder {
 public:
  OperationDecoder(const RegisterState& state, const Target& target, std::vector<std::string_view>* unset)
      : state_(state), target_(target), u85_(target.isU85()), unset_(unset) {}

  Result<Operation> decode(const Command& command) {
    const Operation operation = read(command);
    if (!problem_.empty()) {
      return fail(Code::InvalidStream, "{}: {}", command.info->name, problem_)
          .at(fmt::format("command stream, offset {:#x}", command.offset));
    }
    return operation;
  }

 private:
  void complain(std::string text) {
    if (problem_.empty()) problem_ = std::move(text);
  }
  void note(bool isSet, bool twoWords, uint32_t opcode) {
    if (isSet || unset_ == nullptr) return;
    if (const isa::Command* command = findCommand(target_.family, twoWords, opcode))
      unset_->push_back(command->name);
  }
  uint32_t get(Cmd0 command) {
    note(state_.isSet(command), false, static_cast<uint32_t>(command));
    return state_.get(command);
  }
  int32_t plusOne(Cmd0 command) { return static_cast<int32_t>(get(command)) + 1; }
  uint32_t payload(Cmd1 command) {
    note(state_.isSet(command), true, static_cast<uint32_t>(command));
    return state_.payload(command);
  }
  uint32_t parameter(Cmd1 command) { return state_.parameter(command); }
  uint64_t address(Cmd1 command) {
    const uint64_t low = payload(command);
    return target_.family == Family::U55 ? low : low | uint64_t{parameter(command) & 0xffu} << 32;
  }
  int64_t signedAddress(Cmd1 command) {
    return signExtend(address(command), target_.architecture().addressBits);
  }
  int32_t signedBy(uint32_t value, ElementType type) {
    return isSigned(type) ? static_cast<int16_t>(value) : static_cast<int32_t>(value);
  }

  Operation read(const Command& command);
  KernelOperation kernelOperation(OperationKind kind, uint32_t parameter);
  DmaOperation dma();
  ElementType elementType(uint32_t isSignedBit, uint32_t log2Bytes);
  Layout layout(uint32_t precision);
  Rounding roundingU55(uint32_t value);
  Scale scaleU85(Cmd1 command, bool output);
  void placement(FeatureMap& fm, const FeatureMapRegisters& registers);
  void ifm(KernelOperation& op);
  void ifm2(KernelOperation& op);
  void ofm(KernelOperation& op);
  void inputSizes(KernelOperation& op);
  void kernel(KernelOperation& op);
  void weights(KernelOperation& op);
  void elementwise(KernelOperation& op);
  void activation(KernelOperation& op);
  void resize(KernelOperation& op);
  void block(KernelOperation& op);

  const RegisterState& state_;
  const Target& target_;
  bool u85_;
  std::vector<std::string_view>* unset_;
  std::string problem_;
};

ElementType OperationDecoder::elementType(uint32_t isSignedBit, uint32_t log2Bytes) {
  constexpr ElementType kUnsigned[] = {ElementType::UInt8, ElementType::UInt16, ElementType::UInt32,
                                       ElementType::Int64};
  constexpr ElementType kSigned[] = {ElementType::Int8, ElementType::Int16, ElementType::Int32,
                                     ElementType::Int64};
  if (isSignedBit == 0 && log2Bytes == 3) complain("unsigned 64-bit elements are not supported");
  return isSignedBit != 0 ? kSigned[log2Bytes] : kUnsigned[log2Bytes];
}

Layout OperationDecoder::layout(uint32_t precision) {
  const uint32_t value = precision >> 6 & 3u;
  if (value > 1) complain(fmt::format("activation format {} does not exist", value));
  return value == 1 ? Layout::NHCWB16 : Layout::NHWC;
}

Rounding OperationDecoder::roundingU55(uint32_t value) {
  constexpr Rounding kModes[] = {Rounding::DoubleSymmetric, Rounding::TruncateToZero, Rounding::Natural,
                                 Rounding::Natural};
  if (value > 2) complain("rounding mode 3 does not exist");
  return kModes[value];
}

Scale OperationDecoder::scaleU85(Cmd1 command, bool output) {
  Scale scale;
  scale.multiplier = payload(command) & 0x7fffffffu;
  const uint32_t p = parameter(command);
  scale.shift = static_cast<uint8_t>(p & 0x3fu);
  scale.doubleRound = static_cast<uint8_t>(p >> 6 & 0x1fu);
  const uint32_t rounding = output ? p >> 13 & 7u : p >> 13 & 1u;
  if (rounding > 5)
    complain(fmt::format("rounding mode {} does not exist", rounding));
  else
    scale.rounding = static_cast<Rounding>(rounding);
  return scale;
}

void OperationDecoder::placement(FeatureMap& fm, const FeatureMapRegisters& r) {
  fm.region = static_cast<uint8_t>(get(r.region) & 7u);
  if (fm.storage == Storage::Chained) return;
  for (size_t tile = 0; tile < fm.base.size(); ++tile) {
    fm.base[tile] = address(r.base[tile]);
  }
  fm.height0 = plusOne(r.height0);
  fm.height1 = plusOne(r.height1);
  fm.width0 = plusOne(r.width0);
  fm.strideX = signedAddress(r.strideX);
  fm.strideY = signedAddress(r.strideY);
  fm.strideC = signedAddress(r.strideC);
}

void OperationDecoder::ifm(KernelOperation& op) {
  FeatureMap& fm = op.ifm;
  const uint32_t precision = get(Cmd0::SetIfmPrecision);
  fm.type = elementType(precision & 1u, precision >> 2 & 3u);
  fm.layout = layout(precision);
  if (u85_) fm.storage = static_cast<Storage>(precision >> 14);
  if (op.elementwise.ifmBroadcast.scalar) fm.storage = Storage::None;
  if (fm.storage != Storage::None) placement(fm, kIfm);
  fm.zeroPoint = signedBy(get(Cmd0::SetIfmZeroPoint), fm.type);
}

void OperationDecoder::ifm2(KernelOperation& op) {
  FeatureMap& fm = op.ifm2.emplace();
  const uint32_t precision = get(Cmd0::SetIfm2Precision);
  fm.type = elementType(precision & 1u, precision >> 2 & 3u);
  fm.layout = layout(precision);
  if (u85_) fm.storage = static_cast<Storage>(precision >> 14);
  if (op.elementwise.ifm2Broadcast.scalar) fm.storage = Storage::None;
  if (fm.storage != Storage::None) placement(fm, kIfm2);
  fm.zeroPoint = signedBy(get(Cmd0::SetIfm2ZeroPoint), fm.type);
}

void OperationDecoder::ofm(KernelOperation& op) {
  FeatureMap& fm = op.ofm;
  const uint32_t precision = get(Cmd0::SetOfmPrecision);
  fm.type = elementType(precision & 1u, precision >> 1 & 3u);
  fm.layout = layout(precision);
  op.globalScale = (precision >> 8 & 1u) != 0;
  if (u85_) {
    fm.storage = static_cast<Storage>(precision >> 14);
    op.reverse = static_cast<Reverse>(precision >> 9 & 3u);
    const uint32_t transpose = precision >> 11 & 7u;
    if (transpose == 4 || transpose == 5) complain(fmt::format("transposition {} does not exist", transpose));
    op.transpose = static_cast<Transpose>(transpose);
    op.ofmScale = scaleU85(Cmd1::SetOfmScale, true);
  } else {
    if (op.globalScale) {
      op.ofmScale.multiplier = payload(Cmd1::SetOfmScale);
      op.ofmScale.shift = static_cast<uint8_t>(parameter(Cmd1::SetOfmScale) & 0x3fu);
    }
    op.ofmScale.rounding = roundingU55(precision >> 14);
  }
  if (fm.storage != Storage::None) placement(fm, kOfm);
  fm.height = plusOne(Cmd0::SetOfmHeightM1);
  fm.width = plusOne(Cmd0::SetOfmWidthM1);
  fm.depth = plusOne(Cmd0::SetOfmDepthM1);
  fm.zeroPoint = signedBy(get(Cmd0::SetOfmZeroPoint), fm.type);
}

void OperationDecoder::inputSizes(KernelOperation& op) {
  // The broadcast registers belong to elementwise operations only.
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
  const bool wholeDepth = op.kind == OperationKind::Conv || op.kind == OperationKind::Resize ||
                          (op.kind == OperationKind::Pool && op.pool == PoolMode::ReduceSum);
  op.ifm.depth = wholeDepth ? plusOne(Cmd0::SetIfmDepthM1) : op.ofm.depth;
  if (op.kind == OperationKind::Resize) {
    op.ifm.height = plusOne(Cmd0::SetKernelHeightM1);
    op.ifm.width = plusOne(Cmd0::SetKernelWidthM1);
  } else {
    const int32_t up = op.upscale == Upscale::None ? 1 : 2;
    op.ifm.height = (op.ifmHeight() + up - 1) / up;
    op.ifm.width = (op.ifmWidth() + up - 1) / up;
    if (op.ifm.height < 1 || op.ifm.width < 1) {
      complain(fmt::format("padding leaves an IFM of {}x{}", op.ifm.height, op.ifm.width));
    }
  }
  if (!op.ifm2) return;
  if (op.weightsFromIfm2) {
    // Input channels of output channel o are at (0, o): one row, or tiled as the tile registers specify.
    op.ifm2->height = op.ifm2->height0;
    op.ifm2->width = op.ifm2->width0;
    op.ifm2->depth = op.ifm.depth;
  } else {
    broadcastSize(*op.ifm2, Broadcast{});
  }
}

void OperationDecoder::kernel(KernelOperation& op) {
  const uint32_t stride = get(Cmd0::SetKernelStride);
  Kernel& k = op.kernel;
  k.strideX = static_cast<int32_t>(1 + (stride & 1u) + (stride >> 6 & 1u) * 2);
  k.strideY = static_cast<int32_t>(1 + (stride >> 1 & 1u) + (stride >> 9 & 1u) * 2);
  k.dilationX = static_cast<int32_t>(1 + (stride >> 3 & 1u));
  k.dilationY = static_cast<int32_t>(1 + (stride >> 4 & 1u));
  k.subKernel = (stride >> 5 & 1u) != 0 ? 4 : 8;
  const auto taps = [&](Cmd0 command, int32_t dilation) {
    const auto span = static_cast<int32_t>(get(command));
    if (span % dilation != 0)
      complain(fmt::format("kernel of {} does not fit dilation {}", span + 1, dilation));
    return span / dilation + 1;
  };
  k.height = taps(Cmd0::SetKernelHeightM1, k.dilationY);
  k.width = taps(Cmd0::SetKernelWidthM1, k.dilationX);
  op.padding.top = static_cast<int32_t>(get(Cmd0::SetIfmPadTop) & 0x7fu);
  op.padding.left = static_cast<int32_t>(get(Cmd0::SetIfmPadLeft) & 0x7fu);
  op.padding.bottom = static_cast<int32_t>(get(Cmd0::SetIfmPadBottom) & 0xffu);
  op.padding.right = static_cast<int32_t>(get(Cmd0::SetIfmPadRight) & 0xffu);
  const uint32_t upscale = get(Cmd0::SetIfmUpscale) & 3u;
  if (upscale > 2) complain("IFM upscale mode 3 does not exist");
  op.upscale = static_cast<Upscale>(std::min(upscale, 2u));
}

void OperationDecoder::weights(KernelOperation& op) {
  constexpr Cmd1 kBase[] = {Cmd1::SetWeightBase, Cmd1::SetWeight1Base, Cmd1::SetWeight2Base,
                            Cmd1::SetWeight3Base};
  constexpr Cmd1 kLength[] = {Cmd1::SetWeightLength, Cmd1::SetWeight1Length, Cmd1::SetWeight2Length,
                              Cmd1::SetWeight3Length};
  constexpr Cmd1 kScaleBase[] = {Cmd1::SetScaleBase, Cmd1::SetScale1Base};
  constexpr Cmd1 kScaleLength[] = {Cmd1::SetScaleLength, Cmd1::SetScale1Length};
  const bool pool = op.kind == OperationKind::Pool;
  // A pool without global scale has a scale stream on U85. On U55/U65 that mode divides by the number of
  // valid elements, and only a 1x1 average uses scales (assumption u55-pool-stream). Weights from IFM2 come
  // with a scale stream unless scaled globally.
  const bool single =
      op.pool == PoolMode::Average && op.kernel.height == 1 && op.kernel.width == 1 && !op.padding.any();
  if (pool && (op.globalScale || !(u85_ || single))) return;
  if (op.weightsFromIfm2 && op.globalScale) return;
  WeightStreams& w = op.weights.emplace();
  const auto range = [&](Cmd1 base, Cmd1 length, uint32_t mask) {
    AddressRange r;
    r.length = payload(length) & mask;
    if (r.length != 0) r.address = address(base);
    return r;
  };
  if (!pool && !op.weightsFromIfm2) {
    w.weightRegion = static_cast<uint8_t>(get(Cmd0::SetWeightRegion) & 7u);
    if (u85_) {
      const uint32_t format = get(Cmd0::SetWeightFormat);
      w.fastFormat = (format & 1u) != 0;
      w.sparse = (format >> 4 & 1u) != 0;
    }
    for (size_t s = 0; s < static_cast<size_t>(target_.weightStreams); ++s)
      w.weights[s] = range(kBase[s], kLength[s], UINT32_MAX);
    if ((get(Cmd0::SetKernelStride) >> 2 & 1u) != 0) w.traversal = Traversal::PartKernelFirst;
  }
  w.scaleRegion = static_cast<uint8_t>(get(Cmd0::SetScaleRegion) & 7u);
  for (size_t s = 0; s < static_cast<size_t>(std::min(target_.cores, 2)); ++s)
    w.scales[s] = range(kScaleBase[s], kScaleLength[s], 0xfffffu);
}

void OperationDecoder::elementwise(KernelOperation& op) {
  Elementwise& e = op.elementwise;
  const bool binary = !isUnary(e.mode);
  if (u85_) {
    e.ifmBroadcast = broadcastU85(get(Cmd0::SetIfmBroadcast));
    if (binary) e.ifm2Broadcast = broadcastU85(get(Cmd0::SetIfm2Broadcast));
    e.ifmScale = scaleU85(Cmd1::SetIfmScale, false);
    e.ifm2Scale = scaleU85(Cmd1::SetIfm2Scale, false);
    if (e.ifmBroadcast.scalar || e.ifm2Broadcast.scalar)
      e.scalar = static_cast<int32_t>(payload(Cmd1::SetOpScalar));
    return;
  }
  const uint32_t precision = get(Cmd0::SetIfmPrecision), scaling = precision >> 8 & 3u;
  if (scaling > 2) complain("operand scale mode 3 does not exist");
  e.operandScaling = static_cast<OperandScaling>(std::min(scaling, 2u));
  e.ifmScale.rounding = roundingU55(precision >> 14);
  e.ifmScale.multiplier = payload(Cmd1::SetOpaScale);
  e.ifmScale.shift = static_cast<uint8_t>(parameter(Cmd1::SetOpaScale) & 0x3fu);
  e.ifm2Scale.multiplier = payload(Cmd1::SetOpbScale) & 0xffffu;
  if (!binary) return;
  const uint32_t broadcast = get(Cmd0::SetIfm2Broadcast);
  e.reverseOperands = (broadcast >> 6 & 1u) != 0;
  if ((broadcast >> 7 & 1u) != 0) {
    e.ifm2Broadcast.scalar = true;
    e.scalar = signedBy(get(Cmd0::SetIfm2Scalar), elementType(get(Cmd0::SetIfm2Precision) & 1u, 1));
  } else {
    e.ifm2Broadcast.h = (broadcast & 1u) != 0;
    e.ifm2Broadcast.w = (broadcast >> 1 & 1u) != 0;
    e.ifm2Broadcast.c = (broadcast >> 2 & 1u) != 0;
  }
}

void OperationDecoder::activation(KernelOperation& op) {
  Activation& a = op.activation;
  const uint32_t p = get(Cmd0::SetActivation), function = p & 0x1fu;
  if (u85_) {
    a.clamp = (p >> 12 & 1u) == 0;
    uint32_t tableBytes = 0;
    switch (function) {
      case 0:
        break;
      case 1:
      case 4:
        a.table = Table::Lut8, tableBytes = 256;
        if (isSigned(op.ofm.type) != (function == 4))
          complain("the table's type differs from that of the OFM");
        break;
      case 5:
        a.table = Table::Lut8To16, tableBytes = 512;
        break;
      case 7:
        a.table = Table::Lut8To32, tableBytes = 1024;
        break;
      case 8:
        a.table = Table::Lut16, tableBytes = 2048;
        break;
      case 9:
        a.table = Table::Lut16To32, tableBytes = 2048;
        break;
      case 10:
        a.table = Table::Tanh, tableBytes = 2048;
        break;
      case 11:
        a.table = Table::Sigmoid, tableBytes = 2048;
        break;
      default:
        complain(fmt::format("activation function {} does not exist", function));
    }
    const uint32_t first = (p >> 5 & 7u) * tableBytes;
    if (first + tableBytes > 2048)
      complain("the table extends beyond table memory");
    else
      a.slot = static_cast<uint8_t>(first / 256);
    if (!a.clamp) return;
  } else {
    a.clipRange = static_cast<uint8_t>(p >> 12 & 7u);
    if (function == 3)
      a.table = Table::Tanh;
    else if (function == 4)
      a.table = Table::Sigmoid;
    else if (function >= 16 && function <= 23) {
      a.slot = static_cast<uint8_t>(function - 16);
      const int32_t bytes = elementBytes(op.ofm.type);
      a.table = bytes == 4 ? Table::Lut8To32 : bytes == 2 ? Table::Lut16 : Table::Lut8;
    } else if (function != 0) {
      complain(fmt::format("activation function {} does not exist", function));
    }
  }
  a.min = signedBy(get(Cmd0::SetActivationMin), op.ofm.type);
  a.max = signedBy(get(Cmd0::SetActivationMax), op.ofm.type);
}

void OperationDecoder::resize(KernelOperation& op) {
  const auto axis = [&](Cmd0 numerator, Cmd0 offset, Cmd1 step) {
    ResizeAxis a;
    a.numerator = static_cast<int32_t>(get(numerator) & 0x7ffu) + 1;
    a.offset = static_cast<int32_t>(signExtend(get(offset) & 0xfffu, 12));
    const uint32_t remainder = payload(step) & 0x7ffu;
    a.denominator =
        static_cast<int32_t>((parameter(step) & 0xfu) * static_cast<uint32_t>(a.numerator) + remainder);
    if (a.denominator < 1) complain("a resize step of 0");
    return a;
  };
  op.resizeX = axis(Cmd0::SetResizeXScaleNM1, Cmd0::SetResizeXOffset, Cmd1::SetResizeX);
  op.resizeY = axis(Cmd0::SetResizeYScaleNM1, Cmd0::SetResizeYOffset, Cmd1::SetResizeY);
}

void OperationDecoder::block(KernelOperation& op) {
  op.block.h = plusOne(Cmd0::SetOfmBlkHeightM1);
  op.block.w = plusOne(Cmd0::SetOfmBlkWidthM1);
  op.block.c = plusOne(Cmd0::SetOfmBlkDepthM1);
  const uint32_t format = get(Cmd0::SetAccFormat), type = format & 3u;
  if (type > 1) complain(fmt::format("accumulator format {} is not supported", type));
  if (u85_) {
    constexpr int32_t kHeights[] = {1, 1, 1, 2, 2, 4}, kWidths[] = {1, 2, 4, 2, 4, 4};
    op.accumulator = type == 1 ? AccumulatorFormat::Int48 : AccumulatorFormat::Int32;
    const uint32_t input = format >> 4 & 3u, microblock = format >> 8 & 7u;
    if (input > 2) complain("accumulator input 3 does not exist");
    if (microblock > 5) {
      complain(fmt::format("microblock {} does not exist", microblock));
    } else {
      op.microblock.h = kHeights[microblock];
      op.microblock.w = kWidths[microblock];
      // A microblock has one accumulator per eight MACs: its depth follows from height and width.
      op.microblock.c = std::max(8, target_.macs / 8 / (op.microblock.h * op.microblock.w));
    }
    op.accumulatorInput = static_cast<AccumulatorInput>(std::min(input, 2u));
    op.accumulatorOutput = (format >> 6 & 1u) == 0;
  } else {
    op.accumulator = type == 1 ? AccumulatorFormat::Int40 : AccumulatorFormat::Int32;
    op.ifmBufferEnd = static_cast<int32_t>(get(Cmd0::SetIfmIbEnd) & 0x3fu);
    op.accumulatorStart = static_cast<int32_t>(get(Cmd0::SetAbStart) & 0x3fu);
    if (op.ifm2 && !op.elementwise.ifm2Broadcast.scalar)
      op.ifm2BufferStart = static_cast<int32_t>(get(Cmd0::SetIfm2IbStart) & 0x3fu);
    op.microblock = {target_.macs == 256 || target_.family == Family::U65 ? 2 : 1,
                     target_.macs >= 128 ? 2 : 1, target_.macs == 32 ? 4 : 8};
  }
  op.blockDependency = static_cast<int32_t>(get(Cmd0::SetBlockdep) & (u85_ ? 7u : 3u));
}

KernelOperation OperationDecoder::kernelOperation(OperationKind kind, uint32_t parameter) {
  KernelOperation op;
  op.kind = kind;
  const bool isElementwise = kind == OperationKind::Elementwise;
  if (isElementwise) {
    const uint32_t mode = parameter & 0x3fu;
    if (!knownElementwise(mode, u85_)) complain(fmt::format("elementwise mode {} does not exist", mode));
    op.elementwise.mode = static_cast<ElementwiseMode>(mode);
    elementwise(op);
  } else if (kind == OperationKind::Pool) {
    if ((parameter & 7u) > (u85_ ? 7u : 2u))
      complain(fmt::format("pooling mode {} does not exist", parameter & 7u));
    op.pool = static_cast<PoolMode>(parameter & 7u);
  } else if (kind == OperationKind::Resize) {
    if ((parameter & 3u) > 2) complain("resize mode 3 does not exist");
    op.resize = static_cast<ResizeMode>(std::min(parameter & 3u, 2u));
  } else if (kind == OperationKind::Conv && u85_) {
    op.weightsFromIfm2 = (parameter & 1u) != 0;
  }
  ofm(op);
  ifm(op);
  const bool accumulatorsFromIfm2 = u85_ && (get(Cmd0::SetAccFormat) >> 4 & 3u) == 2;
  if ((isElementwise && !isUnary(op.elementwise.mode)) || op.weightsFromIfm2 ||
      (!isElementwise && accumulatorsFromIfm2)) {
    ifm2(op);
  }
  if (kind == OperationKind::Resize)
    resize(op);
  else if (!isElementwise)
    kernel(op);
  if (!isElementwise && kind != OperationKind::Resize) weights(op);
  inputSizes(op);
  activation(op);
  block(op);
  return op;
}

DmaOperation OperationDecoder::dma() {
  DmaOperation dma;
  const bool u65 = target_.family == Family::U65;
  const auto side = [&](Cmd0 region, Cmd1 base) {
    DmaEnd end;
    const uint32_t p = get(region);
    end.region = static_cast<uint8_t>(p & 7u);
    end.internal = (p >> 8 & 1u) != 0;
    end.indexed = u85_ && (p >> 11 & 1u) != 0;
    end.address = address(base);
    return end;
  };
  const auto dimensionsOf = [&](Cmd0 region) {
    const uint32_t mode = target_.family == Family::U55 ? 0 : get(region) >> 9 & 3u;
    if (mode > 2) complain("DMA stride mode 3 does not exist");
    return static_cast<uint8_t>(std::min(mode, 2u) + 1);
  };
  dma.source = side(Cmd0::SetDma0SrcRegion, Cmd1::SetDma0Src);
  dma.destination = side(Cmd0::SetDma0DstRegion, Cmd1::SetDma0Dst);
  dma.length = address(Cmd1::SetDma0Len);
  dma.dimensions = dimensionsOf(Cmd0::SetDma0SrcRegion);
  if (u65) dma.destinationDimensions = dimensionsOf(Cmd0::SetDma0DstRegion);
  const bool indexed = dma.source.indexed || dma.destination.indexed;
  if (dma.source.indexed && dma.destination.indexed) complain("both sides of a DMA are indexed");
  const int32_t dimensions = std::max(dma.dimensions, dma.destinationDimensions);
  if (dimensions > 1 || indexed) {
    dma.size0 = static_cast<int32_t>(get(Cmd0::SetDma0Size0));
    if (dimensions > 2) dma.size1 = static_cast<int32_t>(get(Cmd0::SetDma0Size1));
    if (dma.size0 < 1 || dma.size1 < 1) complain("a DMA of size 0");
  }
  if (u65) {
    const auto gaps = [&](DmaEnd& end, uint8_t sideDimensions) {
      if (sideDimensions > 1) end.stride0 = signedAddress(Cmd1::SetDma0Skip0);
      if (sideDimensions > 2) end.stride1 = signedAddress(Cmd1::SetDma0Skip1);
    };
    gaps(dma.source, dma.dimensions);
    gaps(dma.destination, dma.destinationDimensions);
  }
  if (u85_ && (dimensions > 1 || indexed)) {
    dma.source.stride0 = signedAddress(Cmd1::SetDma0SrcStride0);
    dma.destination.stride0 = signedAddress(Cmd1::SetDma0DstStride0);
    if (dimensions > 2) {
      dma.source.stride1 = signedAddress(Cmd1::SetDma0SrcStride1);
      dma.destination.stride1 = signedAddress(Cmd1::SetDma0DstStride1);
    }
  }
  if (indexed) {
    dma.indexRegion = static_cast<uint8_t>(get(Cmd0::SetDma0IdxRegion) & 7u);
    dma.indexAddress = address(Cmd1::SetDma0Idx);
    dma.indexMax = payload(Cmd1::SetDma0IdxMax) & 0x7fffffffu;
    if (dimensions > 2) dma.indexSkip1 = signedAddress(Cmd1::SetDma0IdxSkip1);
  }
  return dma;
}

Operation OperationDecoder::read(const Command& command) {
  const uint32_t p = command.parameter;
  if (command.is(Cmd1::OpBranch)) return Branch{(p & 1u) != 0, command.payload};
  switch (static_cast<Cmd0>(command.info->opcode)) {
    case Cmd0::OpStop:
      return Stop{static_cast<uint16_t>(p)};
    case Cmd0::OpIrq:
      return Irq{static_cast<uint16_t>(p)};
    case Cmd0::OpConv:
      return kernelOperation(OperationKind::Conv, p);
    case Cmd0::OpDepthwise:
      return kernelOperation(OperationKind::Depthwise, p);
    case Cmd0::OpPool:
      return kernelOperation(OperationKind::Pool, p);
    case Cmd0::OpElementwise:
      return kernelOperation(OperationKind::Elementwise, p);
    case Cmd0::OpResize:
      return kernelOperation(OperationKind::Resize, p);
    case Cmd0::OpDmaStart:
      return dma();
    case Cmd0::OpDmaWait:
      return DmaWait{static_cast<int32_t>(p & (u85_ ? 3u : 15u))};
    case Cmd0::OpKernelWait:
      return KernelWait{static_cast<int32_t>(p & (u85_ ? 1u : 3u))};
    case Cmd0::OpPmuMask:
      return PmuMask{(p & 1u) != 0};
    default:
      complain("is not an operation");
      return Stop{};
  }
}

Result<Operation> decodeOperation(const RegisterState& state, const Command& command, const Target& target,
                                  std::vector<std::string_view>* unset) {
  CARINA_CHECK(command.info != nullptr && command.info->operation,
               "decodeOperation takes operation commands");
  return OperationDecoder(state, target, unset).decode(command);
}

}  // namespace carina::npu
