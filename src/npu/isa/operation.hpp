// SPDX-License-Identifier: Apache-2.0
// npu::Operation: one hardware operation with everything the command stream says about it, in typed fields.
// The compiler produces operations and the stream writer encodes them; the stream decoder rebuilds them from
// register state for the functional model, the timing model, the hazard checker and the disassembler. Field
// meanings: ethosu-command-stream sections 4 to 8. Fields hold actual values (not "minus one", not shifted).
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <variant>
#include <vector>

#include "npu/targets/target.hpp"

namespace carina::npu {

/// Element type of a feature map in memory.
enum class ElementType : uint8_t { Int8, UInt8, Int16, UInt16, Int32, UInt32, Int64 };
constexpr int32_t elementBytes(ElementType type) {
  switch (type) {
    case ElementType::Int8:
    case ElementType::UInt8:
      return 1;
    case ElementType::Int16:
    case ElementType::UInt16:
      return 2;
    case ElementType::Int32:
    case ElementType::UInt32:
      return 4;
    case ElementType::Int64:
      return 8;
  }
  return 0;
}
constexpr bool isSigned(ElementType type) {
  return type == ElementType::Int8 || type == ElementType::Int16 || type == ElementType::Int32 ||
         type == ElementType::Int64;
}

/// The range of an element type; 64-bit types are signed.
constexpr int64_t elementMin(ElementType type) {
  return isSigned(type) ? -(int64_t{1} << (elementBytes(type) * 8 - 2)) * 2 : 0;
}
constexpr int64_t elementMax(ElementType type) {
  const int bits = elementBytes(type) * 8;
  if (bits == 64) return std::numeric_limits<int64_t>::max();
  return isSigned(type) ? (int64_t{1} << (bits - 1)) - 1 : (int64_t{1} << bits) - 1;
}

enum class Layout : uint8_t { NHWC, NHCWB16 };
/// U85 storage field; U55/U65 always use Tiles2x2. None: scalar operand, or no output written.
enum class Storage : uint8_t { Tiles2x2, Tiles3x1, Chained, None };

/// A feature map: shape (height, width, depth; no batch) as the operation sees it, and its location and
/// layout in memory. Only the OFM's height and width have registers; those of IFMs are derived (conv-like
/// operations) or broadcast.
struct FeatureMap {
  int32_t height = 1, width = 1, depth = 1;
  ElementType type = ElementType::Int8;
  Layout layout = Layout::NHWC;
  Storage storage = Storage::Tiles2x2;
  int32_t zeroPoint = 0;
  uint8_t region = 0;              // memory region, or index of the chaining buffer if storage is Chained
  std::array<uint64_t, 4> base{};  // offset in the region of each tile
  int32_t height0 = 1, height1 = 1,
          width0 = 1;  // tile split: rows of tile 0, rows of tile 1, columns of tiles 0 and 2
  int64_t strideX = 0, strideY = 0, strideC = 0;  // bytes; meaning per layout
  friend bool operator==(const FeatureMap&, const FeatureMap&) = default;
};

/// Whether rows contain elements of the rows above them. For maps whose axes are those in memory.
constexpr bool rowsOverlap(const FeatureMap& map) {
  return map.height > 1 && map.strideX > 0 && map.strideX <= map.strideY &&
         map.strideY < map.width * map.strideX && map.strideY % map.strideX == 0;
}

/// Whether the map is accessed by address (chained maps and scalars in registers are not).
constexpr bool inMemory(const FeatureMap& map) {
  return map.storage == Storage::Tiles2x2 || map.storage == Storage::Tiles3x1;
}

enum class Rounding : uint8_t {
  DoubleSymmetric,
  Natural,
  DoubleAsymmetric,
  Symmetric,
  TruncateToZero,
  TruncateToLower
};

/// v = round(x * multiplier / 2^shift). doubleRound: position of the first rounding of DoubleSymmetric (U85
/// dbl_rnd; on U55/U65 implied by the element size). See ethosu-numerics 2.
struct Scale {
  uint32_t multiplier = 1;
  uint8_t shift = 0;
  uint8_t doubleRound = 0;
  Rounding rounding = Rounding::DoubleSymmetric;
  friend bool operator==(const Scale&, const Scale&) = default;
};

/// Kernel as programmed: taps before dilation.
struct Kernel {
  int32_t height = 1, width = 1;
  int32_t strideY = 1, strideX = 1;
  int32_t dilationY = 1, dilationX = 1;
  /// Taps are processed in sub-kernels that span at most this many positions of the dilated kernel per axis:
  /// 8 or 4. Affects the order of the weights and the cycles, not the result.
  int32_t subKernel = 8;
  int32_t dilatedHeight() const { return (height - 1) * dilationY + 1; }
  int32_t dilatedWidth() const { return (width - 1) * dilationX + 1; }
  friend bool operator==(const Kernel&, const Kernel&) = default;
};

struct Padding {
  int32_t top = 0, left = 0, bottom = 0, right = 0;
  bool any() const { return top || left || bottom || right; }
  friend bool operator==(const Padding&, const Padding&) = default;
};

enum class Upscale : uint8_t { None, Nearest, Zeros };  // always 2x2
enum class Traversal : uint8_t {
  DepthFirst,
  PartKernelFirst
};  // of weights and IFM depth; depthwise uses DepthFirst

struct AddressRange {
  uint64_t address = 0;
  uint64_t length = 0;  // bytes; 0 = idle stream
  friend bool operator==(const AddressRange&, const AddressRange&) = default;
};

/// Weight and scale streams of convolutions (scales also of pools with per-channel scaling).
struct WeightStreams {
  uint8_t weightRegion = 0, scaleRegion = 0;
  std::array<AddressRange, 4> weights{};  // U55: [0]; U65: per core; U85: per decoder
  std::array<AddressRange, 2> scales{};   // U55/U85: [0]; U65: per core
  Traversal traversal = Traversal::DepthFirst;
  bool fastFormat = false;  // U85 FWD instead of SWD
  bool sparse = false;      // U85 2:4
  friend bool operator==(const WeightStreams&, const WeightStreams&) = default;
};

enum class AccumulatorFormat : uint8_t { Int32, Int40, Int48 };
enum class AccumulatorInput : uint8_t { Reset, Keep, Ifm2 };  // U85; others Reset

/// Activation after the accumulator: table and clamp. The family-specific function code of the register is
/// decoded into `table` and `slot`.
enum class Table : uint8_t {
  None,       // clamp only
  Lut8,       // 8-bit index, 8-bit entries (signedness of the OFM)
  Lut8To16,   // U85
  Lut8To32,   // 8-bit index, 32-bit entries
  Lut16,      // 16-bit interpolating
  Lut16To32,  // U85
  Tanh,
  Sigmoid,
};
struct Activation {
  Table table = Table::None;
  uint8_t slot = 0;          // in units of 256 bytes of table memory
  bool clamp = true;         // U85 clip_range: false = NONE. U55/U65 always clamp 8/16-bit outputs
  uint8_t clipRange = 0;     // U55/U65 register value (0 OFM type, 2 uint8, 3 int8, 5 int16)
  int32_t min = 0, max = 0;  // quantised units, zero point included
  friend bool operator==(const Activation&, const Activation&) = default;
};

enum class Transpose : uint8_t { HWC = 0, WHC = 1, HCW = 2, WCH = 3, CHW = 6, CWH = 7 };  // U85 OFM
enum class Reverse : uint8_t { None, H, W, C };

enum class PoolMode : uint8_t {
  Max = 0,
  Average = 1,
  ReduceSum = 2,
  Sum = 3,
  None = 4,
  Min = 5,
  ArgMaxX = 6,
  ArgMaxY = 7
};
enum class ElementwiseMode : uint8_t {
  Mul = 0,
  Add = 1,
  Sub = 2,
  Min = 3,
  Max = 4,
  LRelu = 5,
  Abs = 6,
  Clz = 7,
  Shr = 8,
  Shl = 9,
  Lsr = 10,
  Div = 11,
  CmpEq = 16,
  CmpNe = 17,
  CmpGe = 18,
  CmpGt = 19,
  And = 33,
  Or = 34,
  Xor = 35,
  Not = 36,
  AndNot = 42,
};
constexpr bool isUnary(ElementwiseMode mode) {
  return mode == ElementwiseMode::LRelu || mode == ElementwiseMode::Abs || mode == ElementwiseMode::Clz ||
         mode == ElementwiseMode::Not;
}
enum class ResizeMode : uint8_t { Bilinear = 0, Replicate = 1, Nearest = 2 };

/// Axes along which index 0 is read for every position.
struct Broadcast {
  bool h = false, w = false, c = false, scalar = false;
  friend bool operator==(const Broadcast&, const Broadcast&) = default;
};

/// U55/U65 operand scaling of ADD/SUB (register IFM_PRECISION scale mode).
enum class OperandScaling : uint8_t { Both16 = 0, OperandA32 = 1, OperandB32 = 2 };

struct Elementwise {
  ElementwiseMode mode = ElementwiseMode::Add;
  Broadcast ifmBroadcast, ifm2Broadcast;                   // U55/U65: only ifm2's
  bool reverseOperands = false;                            // U55/U65 operand order bit: operand A is IFM2
  int32_t scalar = 0;                                      // raw value if either broadcast is scalar
  OperandScaling operandScaling = OperandScaling::Both16;  // U55/U65
  Scale ifmScale, ifm2Scale;  // U85: both; U55/U65: OPA in ifmScale, OPB in ifm2Scale (multiplier only)
  friend bool operator==(const Elementwise&, const Elementwise&) = default;
};

struct ResizeAxis {
  int32_t numerator = 1, denominator = 1;  // output step = denominator / numerator input elements
  int32_t offset = 0;
  friend bool operator==(const ResizeAxis&, const ResizeAxis&) = default;
};

enum class OperationKind : uint8_t { Conv, Depthwise, Pool, Elementwise, Resize };

/// A kernel operation (NPU_OP_CONV, DEPTHWISE, POOL, ELEMENTWISE, RESIZE).
struct KernelOperation {
  OperationKind kind = OperationKind::Conv;
  FeatureMap ifm, ofm;
  std::optional<FeatureMap> ifm2;  // binary elementwise; U85: weights or initial accumulators from IFM2
  bool weightsFromIfm2 = false;    // U85 CONV
  Kernel kernel;
  Padding padding;
  Upscale upscale = Upscale::None;
  PoolMode pool = PoolMode::Max;
  Elementwise elementwise;
  ResizeMode resize = ResizeMode::Bilinear;
  ResizeAxis resizeX, resizeY;
  std::optional<WeightStreams> weights;  // Conv, Depthwise; Pool with a scale stream (weights idle)

  bool globalScale =
      false;       // OFM scale mode: true = ofmScale, false = per channel from the scale stream (or none)
  Scale ofmScale;  // on U85 its rounding also governs per-channel scales
  Activation activation;
  Transpose transpose = Transpose::HWC;
  Reverse reverse = Reverse::None;

  AccumulatorFormat accumulator = AccumulatorFormat::Int32;
  AccumulatorInput accumulatorInput = AccumulatorInput::Reset;
  bool accumulatorOutput = true;  // U85: false = OFM not written, accumulators stay
  BlockShape block;               // OFM block
  BlockShape microblock;  // U85: h and w encoded in ACC_FORMAT; U55/U65: fixed per variant, not encoded
  int32_t ifmBufferEnd = 0, ifm2BufferStart = 0, accumulatorStart = 0;  // U55/U65 SHRAM banks; 0 when unused
  int32_t blockDependency = 0;                                          // BLOCKDEP
  bool inTwoRows = false;  // one row of positions is computed as two (the compiler's choice, not encoded)

  /// IFM size in upscaled coordinates (ethosu-command-stream 4.1): conv-like kinds.
  int32_t ifmHeight() const {
    return (ofm.height - 1) * kernel.strideY + kernel.dilatedHeight() - padding.top - padding.bottom;
  }
  int32_t ifmWidth() const {
    return (ofm.width - 1) * kernel.strideX + kernel.dilatedWidth() - padding.left - padding.right;
  }
  friend bool operator==(const KernelOperation&, const KernelOperation&) = default;
};

/// One side of a DMA. If internal, `address` is a byte offset in SHRAM or LUT RAM.
struct DmaEnd {
  bool internal = false;
  uint8_t region = 0;  // region, or core mask of an internal destination
  uint64_t address = 0;
  bool indexed = false;              // U85 gather (source) or scatter (destination)
  int64_t stride0 = 0, stride1 = 0;  // U85: start to start; U65: gap after a run (SKIP)
  friend bool operator==(const DmaEnd&, const DmaEnd&) = default;
};

/// NPU_OP_DMA_START: size1 groups of size0 runs of length bytes.
struct DmaOperation {
  DmaEnd source, destination;
  uint64_t length = 0;
  uint8_t dimensions = 1;             // 1, 2 or 3
  uint8_t destinationDimensions = 1;  // U65: per side
  int32_t size0 = 1, size1 = 1;
  uint8_t indexRegion = 0;  // U85 indexed modes
  uint64_t indexAddress = 0;
  int64_t indexMax = 0, indexSkip1 = 0;
  friend bool operator==(const DmaOperation&, const DmaOperation&) = default;
};

struct KernelWait {
  int32_t outstanding = 0;
  friend bool operator==(const KernelWait&, const KernelWait&) = default;
};
struct DmaWait {
  int32_t outstanding = 0;
  friend bool operator==(const DmaWait&, const DmaWait&) = default;
};
struct Stop {
  uint16_t mask = 0xffff;
  friend bool operator==(const Stop&, const Stop&) = default;
};
struct Irq {
  uint16_t mask = 0;
  friend bool operator==(const Irq&, const Irq&) = default;
};
struct PmuMask {
  bool count = true;
  friend bool operator==(const PmuMask&, const PmuMask&) = default;
};
/// U85: branch to a byte offset from QBASE, either always or if the result flag is set.
struct Branch {
  bool ifResult = false;
  uint32_t target = 0;
  friend bool operator==(const Branch&, const Branch&) = default;
};

using Operation =
    std::variant<KernelOperation, DmaOperation, KernelWait, DmaWait, Stop, Irq, PmuMask, Branch>;

}  // namespace carina::npu
