// SPDX-License-Identifier: Apache-2.0
// Encodes npu::Operation as register writes; the counterpart of operation_decoder.cpp.
#include <algorithm>

#include "npu/isa/feature_map_registers.hpp"
#include "npu/isa/stream.hpp"

namespace carina::npu {

using isa::Cmd0;
using isa::Cmd1;

namespace {

uint32_t log2Bytes(ElementType type) {
  switch (elementBytes(type)) {
    case 1:
      return 0;
    case 2:
      return 1;
    case 4:
      return 2;
    default:
      return 3;
  }
}

uint32_t broadcastU85(const Broadcast& broadcast) {
  if (broadcast.scalar) return 8;
  return (broadcast.h ? 1u : 0u) | (broadcast.w ? 2u : 0u) | (broadcast.c ? 4u : 0u);
}

}  // namespace

/// Encodes one operation; records the first value that does not fit.
class OperationEncoder {
 public:
  explicit OperationEncoder(StreamWriter& writer)
      : out_(writer), target_(writer.target_), u85_(writer.target_.isU85()) {}

  Status encode(const Operation& operation) {
    std::visit([this](const auto& op) { write(op); }, operation);
    if (!problem_.empty()) return fail(Code::InvalidStream, "command stream: {}", problem_);
    return {};
  }

 private:
  void complain(std::string text) {
    if (problem_.empty()) problem_ = std::move(text);
  }
  void need(bool condition, std::string_view what) {
    if (!condition) complain(fmt::format("{} is not supported on {}", what, familyName(target_.family)));
  }
  uint16_t fit(int64_t value, int64_t low, int64_t high, std::string_view what) {
    if (value < low || value > high)
      complain(fmt::format("{} = {} is outside {}..{}", what, value, low, high));
    return static_cast<uint16_t>(value);
  }
  void minusOne(Cmd0 command, int64_t value, int64_t high, std::string_view what) {
    out_.set(command, static_cast<uint16_t>(fit(value, 1, high, what) - 1));
  }
  void address(Cmd1 command, uint64_t value, std::string_view what) {
    if (value >> target_.architecture().addressBits != 0)
      complain(fmt::format("{} = {:#x} exceeds {} bits", what, value, target_.architecture().addressBits));
    out_.set(command, static_cast<uint16_t>(value >> 32 & 0xffu), static_cast<uint32_t>(value));
  }
  /// Two's complement in the width of an address. U55 wraps modulo 2^32.
  void signedAddress(Cmd1 command, int64_t value, std::string_view what) {
    const int64_t limit = int64_t{1} << (target_.architecture().addressBits - 1);
    if (value < -limit || value >= limit)
      complain(fmt::format("{} = {} exceeds {} bits", what, value, target_.architecture().addressBits));
    const auto raw = static_cast<uint64_t>(value);
    out_.set(command, target_.family == Family::U55 ? uint16_t{0} : static_cast<uint16_t>(raw >> 32 & 0xffu),
             static_cast<uint32_t>(raw));
  }

  void write(const KernelWait& wait) {
    out_.emit(Cmd0::OpKernelWait, fit(wait.outstanding, 0, u85_ ? 1 : 3, "KERNEL_WAIT"));
  }
  void write(const DmaWait& wait) {
    out_.emit(Cmd0::OpDmaWait, fit(wait.outstanding, 0, u85_ ? 3 : 15, "DMA_WAIT"));
  }
  void write(const Stop& stop) { out_.emit(Cmd0::OpStop, stop.mask); }
  void write(const Irq& irq) { out_.emit(Cmd0::OpIrq, irq.mask); }
  void write(const PmuMask& mask) { out_.emit(Cmd0::OpPmuMask, mask.count ? 1 : 0); }
  void write(const Branch& branch) {
    need(u85_, "NPU_OP_BRANCH");
    out_.words_.push_back(static_cast<uint32_t>(Cmd1::OpBranch) | 1u << 14 |
                          (branch.ifResult ? 1u << 16 : 0u));
    out_.words_.push_back(branch.target);
    out_.forgetState();
  }

  void write(const DmaOperation& dma);
  void write(const KernelOperation& op);
  void placement(const FeatureMap& fm, const FeatureMapRegisters& registers, std::string_view name);
  void zeroPoint(const FeatureMap& fm, Cmd0 command, std::string_view name);
  void ifm(const KernelOperation& op);
  void ifm2(const KernelOperation& op);
  void ofm(const KernelOperation& op);
  void kernel(const KernelOperation& op);
  void weights(const KernelOperation& op);
  void scales(const KernelOperation& op);
  void activation(const KernelOperation& op);
  void broadcasts(const KernelOperation& op);
  void resize(const KernelOperation& op);
  void block(const KernelOperation& op);
  uint32_t roundingU55(Rounding rounding);
  void scaleU85(Cmd1 command, const Scale& scale, bool output);

  StreamWriter& out_;
  const Target& target_;
  bool u85_;
  std::string problem_;
};

uint32_t OperationEncoder::roundingU55(Rounding rounding) {
  switch (rounding) {
    case Rounding::DoubleSymmetric:
      return 0;
    case Rounding::TruncateToZero:
      return 1;
    case Rounding::Natural:
      return 2;
    default:
      need(false, fmt::format("rounding mode {}", static_cast<int>(rounding)));
      return 0;
  }
}

void OperationEncoder::scaleU85(Cmd1 command, const Scale& scale, bool output) {
  if (scale.multiplier >> 31 != 0)
    complain(fmt::format("scale multiplier {} exceeds 31 bits", scale.multiplier));
  const auto rounding = static_cast<uint32_t>(scale.rounding);
  if (!output && rounding > 1) need(false, fmt::format("input rounding mode {}", rounding));
  const uint32_t parameter = fit(scale.shift, 0, 63, "scale shift") |
                             fit(scale.doubleRound, 0, 31, "double rounding") << 6u | rounding << 13;
  out_.set(command, static_cast<uint16_t>(parameter), scale.multiplier);
}

void OperationEncoder::zeroPoint(const FeatureMap& fm, Cmd0 command, std::string_view name) {
  const bool isSignedType = isSigned(fm.type);
  out_.set(command, fit(fm.zeroPoint, isSignedType ? -32768 : 0, isSignedType ? 32767 : 65535,
                        fmt::format("{} zero point", name)));
}

void OperationEncoder::placement(const FeatureMap& fm, const FeatureMapRegisters& registers,
                                 std::string_view name) {
  out_.set(registers.region, fit(fm.region, 0, 7, fmt::format("{} region", name)));
  if (fm.storage == Storage::Chained) return;
  for (size_t tile = 0; tile < fm.base.size(); ++tile)
    address(registers.base[tile], fm.base[tile], fmt::format("{} base", name));
  minusOne(registers.height0, fm.height0, 65536, fmt::format("{} rows of tile 0", name));
  minusOne(registers.height1, fm.height1, 65536, fmt::format("{} rows of tile 1", name));
  minusOne(registers.width0, fm.width0, 65536, fmt::format("{} columns of tile 0", name));
  signedAddress(registers.strideX, fm.strideX, fmt::format("{} stride x", name));
  signedAddress(registers.strideY, fm.strideY, fmt::format("{} stride y", name));
  signedAddress(registers.strideC, fm.strideC, fmt::format("{} stride c", name));
}

void OperationEncoder::ifm(const KernelOperation& op) {
  const FeatureMap& fm = op.ifm;
  const bool elementwise = op.kind == OperationKind::Elementwise;
  const bool scalar = elementwise && op.elementwise.ifmBroadcast.scalar;
  uint32_t precision =
      (isSigned(fm.type) ? 1u : 0u) | log2Bytes(fm.type) << 2 | static_cast<uint32_t>(fm.layout) << 6;
  if (u85_) {
    precision |= static_cast<uint32_t>(scalar ? Storage::None : fm.storage) << 14;
  } else {
    need(fm.storage == Storage::Tiles2x2, "IFM storage other than 2x2 tiles");
    need(!scalar, "a scalar IFM");
    if (elementwise) {
      precision |= static_cast<uint32_t>(op.elementwise.operandScaling) << 8 |
                   roundingU55(op.elementwise.ifmScale.rounding) << 14;
    }
  }
  if (!scalar && fm.storage != Storage::None) placement(fm, kIfm, "IFM");
  // One register serves both inputs: it holds the depth of the one that is not broadcast along the depth.
  int32_t depth = fm.depth;
  if (elementwise && op.ifm2 && (op.elementwise.ifmBroadcast.c || scalar))
    depth = std::max(depth, op.ifm2->depth);
  minusOne(Cmd0::SetIfmDepthM1, depth, 65536, "IFM depth");
  out_.set(Cmd0::SetIfmPrecision, static_cast<uint16_t>(precision));
  zeroPoint(fm, Cmd0::SetIfmZeroPoint, "IFM");
}

void OperationEncoder::ifm2(const KernelOperation& op) {
  if (op.kind == OperationKind::Resize) out_.set(Cmd0::SetIfm2ZeroPoint, 0);
  if (!op.ifm2) return;
  const FeatureMap& fm = *op.ifm2;
  const bool scalar = op.elementwise.ifm2Broadcast.scalar;
  uint32_t precision =
      (isSigned(fm.type) ? 1u : 0u) | log2Bytes(fm.type) << 2 | static_cast<uint32_t>(fm.layout) << 6;
  if (u85_) {
    precision |= static_cast<uint32_t>(scalar ? Storage::None : fm.storage) << 14;
  } else {
    need(scalar || fm.storage == Storage::Tiles2x2, "IFM2 storage other than 2x2 tiles");
    need(op.kind == OperationKind::Elementwise, "IFM2 of an operation that is not elementwise");
  }
  if (!scalar && fm.storage != Storage::None) placement(fm, kIfm2, "IFM2");
  out_.set(Cmd0::SetIfm2Precision, static_cast<uint16_t>(precision));
  zeroPoint(fm, Cmd0::SetIfm2ZeroPoint, "IFM2");
}

void OperationEncoder::ofm(const KernelOperation& op) {
  const FeatureMap& fm = op.ofm;
  uint32_t precision = (isSigned(fm.type) ? 1u : 0u) | log2Bytes(fm.type) << 1 |
                       static_cast<uint32_t>(fm.layout) << 6 | (op.globalScale ? 1u << 8 : 0u);
  if (u85_) {
    precision |= static_cast<uint32_t>(op.reverse) << 9 | static_cast<uint32_t>(op.transpose) << 11 |
                 static_cast<uint32_t>(fm.storage) << 14;
  } else {
    need(op.transpose == Transpose::HWC && op.reverse == Reverse::None, "transposed or reversed output");
    need(fm.storage == Storage::Tiles2x2, "OFM storage other than 2x2 tiles");
    precision |= roundingU55(op.ofmScale.rounding) << 14;
  }
  if (fm.storage != Storage::None) placement(fm, kOfm, "OFM");
  minusOne(Cmd0::SetOfmHeightM1, fm.height, 65536, "OFM height");
  minusOne(Cmd0::SetOfmWidthM1, fm.width, 65536, "OFM width");
  minusOne(Cmd0::SetOfmDepthM1, fm.depth, 65536, "OFM depth");
  out_.set(Cmd0::SetOfmPrecision, static_cast<uint16_t>(precision));
  zeroPoint(fm, Cmd0::SetOfmZeroPoint, "OFM");
}

void OperationEncoder::kernel(const KernelOperation& op) {
  const Kernel& k = op.kernel;
  minusOne(Cmd0::SetKernelHeightM1, k.dilatedHeight(), 65536, "kernel height");
  minusOne(Cmd0::SetKernelWidthM1, k.dilatedWidth(), 65536, "kernel width");
  const uint32_t x = fit(k.strideX, 1, 4, "stride x") - 1u, y = fit(k.strideY, 1, 4, "stride y") - 1u;
  const uint32_t dx = fit(k.dilationX, 1, 2, "dilation x") - 1u,
                 dy = fit(k.dilationY, 1, 2, "dilation y") - 1u;
  const bool partKernel = op.weights && op.weights->traversal == Traversal::PartKernelFirst;
  out_.set(Cmd0::SetKernelStride,
           static_cast<uint16_t>((x & 1u) | (y & 1u) << 1 | (partKernel ? 4u : 0u) | dx << 3 | dy << 4 |
                                 (k.subKernel == 4 ? 32u : 0u) | x >> 1 << 6 | y >> 1 << 9));
  out_.set(Cmd0::SetIfmPadTop, fit(op.padding.top, 0, 127, "top padding"));
  out_.set(Cmd0::SetIfmPadLeft, fit(op.padding.left, 0, 127, "left padding"));
  out_.set(Cmd0::SetIfmPadBottom, fit(op.padding.bottom, 0, 255, "bottom padding"));
  out_.set(Cmd0::SetIfmPadRight, fit(op.padding.right, 0, 255, "right padding"));
  out_.set(Cmd0::SetIfmUpscale, static_cast<uint16_t>(op.upscale));
}

void OperationEncoder::weights(const KernelOperation& op) {
  constexpr Cmd1 kBase[] = {Cmd1::SetWeightBase, Cmd1::SetWeight1Base, Cmd1::SetWeight2Base,
                            Cmd1::SetWeight3Base};
  constexpr Cmd1 kLength[] = {Cmd1::SetWeightLength, Cmd1::SetWeight1Length, Cmd1::SetWeight2Length,
                              Cmd1::SetWeight3Length};
  if (u85_) {
    const bool fast = op.weights && op.weights->fastFormat, sparse = op.weights && op.weights->sparse;
    out_.set(Cmd0::SetWeightFormat, static_cast<uint16_t>((fast ? 1 : 0) | (sparse ? 16 : 0)));
  }
  if (!op.weights || op.weightsFromIfm2) return;
  const WeightStreams& w = *op.weights;
  need(u85_ || (!w.fastFormat && !w.sparse), "the fast or sparse weight format");
  out_.set(Cmd0::SetWeightRegion, fit(w.weightRegion, 0, 7, "weight region"));
  for (size_t s = 0; s < w.weights.size(); ++s) {
    if (s >= static_cast<size_t>(target_.weightStreams)) {
      if (w.weights[s].length != 0)
        complain(fmt::format("weight stream {} does not exist on {}", s, target_.name));
      continue;
    }
    if (w.weights[s].length >> 32 != 0)
      complain(fmt::format("weight length {} exceeds 32 bits", w.weights[s].length));
    if (w.weights[s].length != 0) address(kBase[s], w.weights[s].address, "weight base");
    out_.set(kLength[s], 0, static_cast<uint32_t>(w.weights[s].length));
  }
}

void OperationEncoder::scales(const KernelOperation& op) {
  if (!op.weights) return;
  const WeightStreams& w = *op.weights;
  out_.set(Cmd0::SetScaleRegion, fit(w.scaleRegion, 0, 7, "scale region"));
  constexpr Cmd1 kBase[] = {Cmd1::SetScaleBase, Cmd1::SetScale1Base},
                 kLength[] = {Cmd1::SetScaleLength, Cmd1::SetScale1Length};
  for (size_t s = 0; s < w.scales.size(); ++s) {
    if (s >= static_cast<size_t>(target_.cores)) {
      if (w.scales[s].length != 0)
        complain(fmt::format("scale stream {} does not exist on {}", s, target_.name));
      continue;
    }
    if (w.scales[s].length >> 20 != 0)
      complain(fmt::format("scale length {} exceeds 20 bits", w.scales[s].length));
    if (w.scales[s].length != 0) address(kBase[s], w.scales[s].address, "scale base");
    out_.set(kLength[s], 0, static_cast<uint32_t>(w.scales[s].length));
  }
}

void OperationEncoder::activation(const KernelOperation& op) {
  const Activation& a = op.activation;
  uint32_t parameter = 0;
  if (u85_) {
    uint32_t function = 0, tableBytes = 256;
    switch (a.table) {
      case Table::None:
        break;
      case Table::Lut8:
        function = isSigned(op.ofm.type) ? 4 : 1;
        break;
      case Table::Lut8To16:
        function = 5, tableBytes = 512;
        break;
      case Table::Lut8To32:
        function = 7, tableBytes = 1024;
        break;
      case Table::Lut16:
        function = 8, tableBytes = 2048;
        break;
      case Table::Lut16To32:
        function = 9, tableBytes = 2048;
        break;
      case Table::Tanh:
        function = 10, tableBytes = 2048;
        break;
      case Table::Sigmoid:
        function = 11, tableBytes = 2048;
        break;
    }
    const uint32_t first = uint32_t{a.slot} * 256;
    if (first % tableBytes != 0 || first + tableBytes > 2048) {
      complain(fmt::format("a table of {} bytes cannot start at slot {}", tableBytes, a.slot));
    }
    parameter = function | (function == 0 ? 0 : first / tableBytes) << 5 | (a.clamp ? 0u : 1u) << 12;
  } else {
    switch (a.table) {
      case Table::None:
        break;
      case Table::Tanh:
        parameter = 3;
        break;
      case Table::Sigmoid:
        parameter = 4;
        break;
      case Table::Lut8:
      case Table::Lut8To32:
      case Table::Lut16:
        parameter = 16u + fit(a.slot, 0, 7, "table slot");
        break;
      default:
        need(false, "a table of this type");
    }
    parameter |= uint32_t{fit(a.clipRange, 0, 7, "clip range")} << 12;
  }
  out_.set(Cmd0::SetActivation, static_cast<uint16_t>(parameter));
  if (u85_ && !a.clamp) return;
  const bool isSignedType = isSigned(op.ofm.type);
  const int32_t low = isSignedType ? -32768 : 0, high = isSignedType ? 32767 : 65535;
  out_.set(Cmd0::SetActivationMin, fit(a.min, low, high, "activation minimum"));
  out_.set(Cmd0::SetActivationMax, fit(a.max, low, high, "activation maximum"));
}

void OperationEncoder::broadcasts(const KernelOperation& op) {
  const Elementwise& e = op.elementwise;
  const bool scalar = e.ifmBroadcast.scalar || e.ifm2Broadcast.scalar;
  if (u85_) {
    out_.set(Cmd0::SetIfmBroadcast, static_cast<uint16_t>(broadcastU85(e.ifmBroadcast)));
    if (op.ifm2) out_.set(Cmd0::SetIfm2Broadcast, static_cast<uint16_t>(broadcastU85(e.ifm2Broadcast)));
    if (scalar) out_.set(Cmd1::SetOpScalar, 0, static_cast<uint32_t>(e.scalar));
    return;
  }
  need(e.ifmBroadcast == Broadcast{}, "a broadcast IFM");
  if (!op.ifm2) return;
  const Broadcast& b = e.ifm2Broadcast;
  out_.set(Cmd0::SetIfm2Broadcast,
           static_cast<uint16_t>((b.h ? 1 : 0) | (b.w ? 2 : 0) | (b.c ? 4 : 0) |
                                 (e.reverseOperands ? 64 : 0) | (b.scalar ? 128 : 0)));
  if (scalar) {
    const bool isSignedType = isSigned(op.ifm2->type);
    out_.set(Cmd0::SetIfm2Scalar,
             fit(e.scalar, isSignedType ? -32768 : 0, isSignedType ? 32767 : 65535, "scalar"));
  }
}

void OperationEncoder::resize(const KernelOperation& op) {
  need(u85_, "RESIZE");
  const auto axis = [&](Cmd0 numerator, Cmd0 offset, Cmd1 step, const ResizeAxis& a, int32_t blockSize) {
    minusOne(numerator, a.numerator, 2048, "resize numerator");
    out_.set(offset, static_cast<uint16_t>(fit(a.offset, -2048, 2047, "resize offset") & 0xfffu));
    const int64_t n = std::max(a.numerator, 1), block = int64_t{blockSize - 1} * a.denominator;
    const uint32_t parameter =
        fit(a.denominator / n, 0, 15, "resize step") | fit(block / n, 0, 2047, "resize block step") << 4u;
    const uint32_t payload = fit(a.denominator % n, 0, 2047, "resize step remainder") |
                             static_cast<uint32_t>(fit(block % n, 0, 2047, "resize block remainder")) << 16;
    out_.set(step, static_cast<uint16_t>(parameter), payload);
  };
  axis(Cmd0::SetResizeXScaleNM1, Cmd0::SetResizeXOffset, Cmd1::SetResizeX, op.resizeX, op.block.w);
  axis(Cmd0::SetResizeYScaleNM1, Cmd0::SetResizeYOffset, Cmd1::SetResizeY, op.resizeY, op.block.h);
  // Only the columns that are read, but all rows.
  const int64_t n = std::max(op.resizeX.numerator, 1);
  const int64_t last =
      std::max<int64_t>(0, (int64_t{op.ofm.width - 1} * op.resizeX.denominator + op.resizeX.offset) / n + 1);
  minusOne(Cmd0::SetKernelWidthM1, std::min<int64_t>(op.ifm.width, last + 1), 65536, "resize columns");
  minusOne(Cmd0::SetKernelHeightM1, op.ifm.height, 65536, "IFM height");
}

void OperationEncoder::block(const KernelOperation& op) {
  const BlockShape most = target_.architecture().maxBlock;
  minusOne(Cmd0::SetOfmBlkHeightM1, op.block.h, most.h, "OFM block height");
  minusOne(Cmd0::SetOfmBlkWidthM1, op.block.w, most.w, "OFM block width");
  minusOne(Cmd0::SetOfmBlkDepthM1, op.block.c, most.c, "OFM block depth");
  uint32_t format = op.accumulator == AccumulatorFormat::Int32 ? 0 : 1;
  if (u85_) {
    need(op.accumulator != AccumulatorFormat::Int40, "a 40-bit accumulator");
    constexpr BlockShape kMicroblocks[] = {{1, 1, 0}, {1, 2, 0}, {1, 4, 0}, {2, 2, 0}, {2, 4, 0}, {4, 4, 0}};
    uint32_t code = 0;
    while (code < 6 && (kMicroblocks[code].h != op.microblock.h || kMicroblocks[code].w != op.microblock.w))
      ++code;
    if (code == 6)
      complain(fmt::format("OFM microblock {}x{} does not exist", op.microblock.h, op.microblock.w));
    format |=
        static_cast<uint32_t>(op.accumulatorInput) << 4 | (op.accumulatorOutput ? 0u : 1u << 6) | code << 8;
  } else {
    need(op.accumulator != AccumulatorFormat::Int48, "a 48-bit accumulator");
    need(op.accumulatorInput == AccumulatorInput::Reset && op.accumulatorOutput, "keeping accumulators");
    out_.set(Cmd0::SetIfmIbEnd, fit(op.ifmBufferEnd, 0, 63, "IFM buffer end"));
    out_.set(Cmd0::SetAbStart, fit(op.accumulatorStart, 0, 63, "accumulator start"));
    if (op.ifm2 && !op.elementwise.ifm2Broadcast.scalar) {
      out_.set(Cmd0::SetIfm2IbStart, fit(op.ifm2BufferStart, 0, 63, "IFM2 buffer start"));
    }
  }
  out_.set(Cmd0::SetAccFormat, static_cast<uint16_t>(format));
  out_.set(Cmd0::SetBlockdep,
           fit(op.blockDependency, 0, target_.architecture().maxBlockDependency, "BLOCKDEP"));
}

void OperationEncoder::write(const KernelOperation& op) {
  if (target_.family == Family::U65 && target_.cores > 1) {
    out_.set(Cmd0::SetParallelMode, static_cast<uint16_t>(target_.cores - 1));
  }
  const bool elementwise = op.kind == OperationKind::Elementwise, isResize = op.kind == OperationKind::Resize;
  const bool convolution = op.kind == OperationKind::Conv || op.kind == OperationKind::Depthwise;
  if (op.kind == OperationKind::Conv && op.weightsFromIfm2 && !op.ifm2)
    complain("weights from IFM2 without an IFM2");
  if (convolution && !op.weights && !op.weightsFromIfm2) complain("a convolution without weights");
  if (elementwise && !op.ifm2 && !isUnary(op.elementwise.mode))
    complain("a binary elementwise operation without IFM2");
  ifm(op);
  ifm2(op);
  if (elementwise)
    broadcasts(op);
  else if (op.elementwise.ifmBroadcast != Broadcast{} || op.elementwise.ifm2Broadcast != Broadcast{}) {
    complain("only elementwise operations broadcast");  // others use strides of 0
  }
  ofm(op);
  if (isResize)
    resize(op);
  else if (!elementwise)
    kernel(op);
  if (convolution) weights(op);
  if (!elementwise && !isResize) scales(op);
  if (u85_) {
    if (elementwise) {
      scaleU85(Cmd1::SetIfmScale, op.elementwise.ifmScale, false);
      scaleU85(Cmd1::SetIfm2Scale, op.elementwise.ifm2Scale, false);
    }
    scaleU85(Cmd1::SetOfmScale, op.ofmScale, true);
  } else {
    if (elementwise) {
      out_.set(Cmd1::SetOpaScale, fit(op.elementwise.ifmScale.shift, 0, 63, "OPA shift"),
               op.elementwise.ifmScale.multiplier);
      if (op.elementwise.ifm2Scale.multiplier >> 16 != 0)
        complain(fmt::format("OPB scale {} exceeds 16 bits", op.elementwise.ifm2Scale.multiplier));
      out_.set(Cmd1::SetOpbScale, 0, op.elementwise.ifm2Scale.multiplier & 0xffffu);
    }
    if (op.globalScale)
      out_.set(Cmd1::SetOfmScale, fit(op.ofmScale.shift, 0, 63, "OFM shift"), op.ofmScale.multiplier);
  }
  activation(op);
  block(op);
  switch (op.kind) {
    case OperationKind::Conv:
      need(u85_ || !op.weightsFromIfm2, "weights from IFM2");
      out_.emit(Cmd0::OpConv, op.weightsFromIfm2 ? 1 : 0);
      break;
    case OperationKind::Depthwise:
      out_.emit(Cmd0::OpDepthwise, 0);
      break;
    case OperationKind::Pool:
      need(u85_ || op.pool <= PoolMode::ReduceSum, "this pooling mode");
      out_.emit(Cmd0::OpPool, static_cast<uint16_t>(op.pool));
      break;
    case OperationKind::Elementwise:
      need(u85_ || op.elementwise.mode <= ElementwiseMode::Shl, "this elementwise mode");
      out_.emit(Cmd0::OpElementwise, static_cast<uint16_t>(op.elementwise.mode));
      break;
    case OperationKind::Resize:
      out_.emit(Cmd0::OpResize, static_cast<uint16_t>(op.resize));
      break;
  }
}

void OperationEncoder::write(const DmaOperation& dma) {
  const bool u55 = target_.family == Family::U55, indexed = dma.source.indexed || dma.destination.indexed;
  need(u85_ || !indexed, "an indexed DMA");
  const int32_t dimensions =
      std::max(dma.dimensions, target_.family == Family::U65 ? dma.destinationDimensions : uint8_t{1});
  need(!u55 || dimensions == 1, "a 2D or 3D DMA");
  const auto side = [&](const DmaEnd& end, uint8_t sideDimensions) {
    uint32_t parameter =
        fit(end.region, 0, 7, "DMA region") | (end.internal ? 1u << 8 : 0u) | (end.indexed ? 1u << 11 : 0u);
    return parameter | static_cast<uint32_t>(fit(sideDimensions, 1, 3, "DMA dimensions") - 1) << 9;
  };
  if (dma.source.internal && !u55 && target_.family != Family::U65)
    complain("a DMA cannot read from internal RAM");
  out_.set(Cmd0::SetDma0SrcRegion, static_cast<uint16_t>(side(dma.source, dma.dimensions)));
  address(Cmd1::SetDma0Src, dma.source.address, "DMA source");
  out_.set(Cmd0::SetDma0DstRegion,
           static_cast<uint16_t>(side(
               dma.destination, target_.family == Family::U65 ? dma.destinationDimensions : uint8_t{1})));
  address(Cmd1::SetDma0Dst, dma.destination.address, "DMA destination");
  address(Cmd1::SetDma0Len, dma.length, "DMA length");
  if (dimensions > 1 || indexed) {
    out_.set(Cmd0::SetDma0Size0, fit(dma.size0, 1, 65535, "DMA size 0"));
    if (dimensions > 2) out_.set(Cmd0::SetDma0Size1, fit(dma.size1, 1, 65535, "DMA size 1"));
  }
  if (target_.family == Family::U65 && dimensions > 1) {
    // Both sides share one pair of gap registers.
    const auto gap = [&](int64_t DmaEnd::*stride, uint8_t least) {
      const bool ofSource = dma.dimensions >= least, ofDestination = dma.destinationDimensions >= least;
      if (ofSource && ofDestination && dma.source.*stride != dma.destination.*stride) {
        complain("both sides of a DMA must have the same gaps on Ethos-U65");
      }
      return ofDestination ? dma.destination.*stride : dma.source.*stride;
    };
    signedAddress(Cmd1::SetDma0Skip0, gap(&DmaEnd::stride0, 2), "DMA gap 0");
    if (dimensions > 2) signedAddress(Cmd1::SetDma0Skip1, gap(&DmaEnd::stride1, 3), "DMA gap 1");
  }
  if (u85_ && (dimensions > 1 || indexed)) {
    signedAddress(Cmd1::SetDma0SrcStride0, dma.source.stride0, "DMA source stride 0");
    signedAddress(Cmd1::SetDma0DstStride0, dma.destination.stride0, "DMA destination stride 0");
    if (dimensions > 2) {
      signedAddress(Cmd1::SetDma0SrcStride1, dma.source.stride1, "DMA source stride 1");
      signedAddress(Cmd1::SetDma0DstStride1, dma.destination.stride1, "DMA destination stride 1");
    }
  }
  if (indexed) {
    out_.set(Cmd0::SetDma0IdxRegion, fit(dma.indexRegion, 0, 7, "DMA index region"));
    address(Cmd1::SetDma0Idx, dma.indexAddress, "DMA index address");
    if (dma.indexMax < 0 || dma.indexMax >> 31 != 0)
      complain(fmt::format("DMA index bound {} exceeds 31 bits", dma.indexMax));
    out_.set(Cmd1::SetDma0IdxMax, 0, static_cast<uint32_t>(dma.indexMax));
    if (dimensions > 2) signedAddress(Cmd1::SetDma0IdxSkip1, dma.indexSkip1, "DMA index skip");
  }
  out_.emit(Cmd0::OpDmaStart, 0);
}

Status StreamWriter::add(const Operation& operation) {
  const size_t before = words_.size();
  Status status = OperationEncoder(*this).encode(operation);
  if (!status.ok()) {
    words_.resize(before);
    forgetState();  // the shadow state is ahead of the words
  }
  return status;
}

void StreamWriter::forgetState() {
  shadow_.clear();
}

void StreamWriter::patchBranch(uint32_t branch, uint32_t target) {
  const size_t word = branch / 4;
  CARINA_CHECK(word + 1 < words_.size() &&
                   (words_[word] & 0xffffu) == (static_cast<uint32_t>(Cmd1::OpBranch) | 1u << 14),
               "a branch lies at the patched offset");
  words_[word + 1] = target;
}

void StreamWriter::set(isa::Cmd0 command, uint16_t parameter) {
  const size_t slot = RegisterState::slotOf(command);
  const uint64_t value = uint64_t{parameter} << 32;
  if (shadow_.set_[slot] && shadow_.values_[slot] == value) return;
  shadow_.values_[slot] = value;
  shadow_.set_[slot] = true;
  emit(command, parameter);
}

void StreamWriter::set(isa::Cmd1 command, uint16_t parameter, uint32_t payload) {
  const size_t slot = RegisterState::slotOf(command);
  const uint64_t value = uint64_t{parameter} << 32 | payload;
  if (shadow_.set_[slot] && shadow_.values_[slot] == value) return;
  shadow_.values_[slot] = value;
  shadow_.set_[slot] = true;
  words_.push_back(static_cast<uint32_t>(command) | 1u << 14 | uint32_t{parameter} << 16);
  words_.push_back(payload);
}

void StreamWriter::emit(isa::Cmd0 command, uint16_t parameter) {
  words_.push_back(static_cast<uint32_t>(command) | uint32_t{parameter} << 16);
}

}  // namespace carina::npu
