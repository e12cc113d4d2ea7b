// SPDX-License-Identifier: Apache-2.0
// Tracks the registers that determine where operations read and write. An operation touches the hull of its
// tiles or DMA ends (format/ethosu_extents.hpp), as in the host's stream checker. Sizes are derived from
// registers as specified in ethosu-command-stream 4 to 8.
#include "carina/ethosu_validator.hpp"

#include "format/ethosu_commands.hpp"
#include "format/ethosu_extents.hpp"
#include "format/ethosu_registers.hpp"

namespace carina::rt {

namespace op = format::ethosu_op;
namespace set = format::ethosu_set;
namespace config = format::ethosu_config;
using format::EthosUMap;
using format::EthosURange;

namespace {

constexpr uint32_t kMaxTargets = 16;

/// Why a stream is rejected, or null. A Status has five words, which would cost code in each caller.
using Refusal = const char*;
#define CARINA_TRY_WHY(expression)                                    \
  do {                                                                \
    if (const Refusal why = (expression); why != nullptr) return why; \
  } while (false)

class Validator {
 public:
  Validator(uint32_t configWord, Span<const uint32_t> stream, Span<const Region> regions)
      : config_(configWord),
        product_(static_cast<NpuProduct>(config::product(configWord))),
        stream_(stream),
        regions_(regions) {}

  Refusal run() {
    CARINA_TRY_WHY(findTargets());
    // Registers read 0 after the reset that precedes each job.
    for (uint32_t i = 0; i < set::kSlots / 32; ++i) known_[0][i] = known_[1][i] = 0xffffffffu;
    uint32_t reached = 0;
    for (at_ = 0; at_ < stream_.size;) {
      if (isTarget(at_ * 4)) {
        ++reached;
        // Branches may arrive with register values other than those that the preceding commands leave.
        for (uint32_t i = 0; i < set::kSlots / 32; ++i) known_[0][i] = known_[1][i] = 0;
      }
      const uint32_t word = stream_[at_];
      CARINA_TRY_WHY(command(word));
      if (at_ < stream_.size) at_ += words(word);
    }
    return reached == targets_ ? nullptr : "a branch leads into the middle of a command or out of the stream";
  }

  /// Byte offset in the stream of the rejected command.
  uint32_t offset() const { return static_cast<uint32_t>(at_ * 4); }

 private:
  static uint32_t words(uint32_t word) { return format::ethosuControl(word) == 0 ? 1 : 2; }
  bool isU85() const { return product_ == NpuProduct::U85; }

  bool isTarget(size_t offset) const {
    for (uint32_t i = 0; i < targets_; ++i) {
      if (target_[i] == offset) return true;
    }
    return false;
  }

  /// Collects the targets of branches, of which there are few.
  Refusal findTargets() {
    for (at_ = 0; isU85() && at_ < stream_.size; at_ += words(stream_[at_])) {
      const uint32_t word = stream_[at_];
      if (format::ethosuControl(word) == 0 || format::ethosuOpcode(word) != op::kBranch) continue;
      if (stream_.size - at_ < 2) break;  // command() reports it
      const uint32_t target = stream_[at_ + 1];
      if (isTarget(target)) continue;
      if (targets_ == kMaxTargets) return "a command stream with more than 16 targets of branches";
      target_[targets_++] = target;
    }
    return nullptr;
  }

  Refusal command(uint32_t word) {
    const uint32_t control = format::ethosuControl(word), opcode = format::ethosuOpcode(word);
    if (format::ethosuReservedSet(word) || control > 1) return "a word that is no command";
    if (control == 1 && stream_.size - at_ < 2) return "a command lacks its second word";
    const uint32_t number = control == 0 ? opcode - 0x100u : opcode;
    if (set::hasSlot(number)) return store(control, set::slot(number), word >> 16);
    if (control == 1) return opcode == op::kBranch && isU85() ? nullptr : unknown();
    switch (opcode) {
      case op::kStop:
        if (targets_ == 0) at_ = stream_.size;  // nothing after it can be reached
        return nullptr;
      case op::kIrq:
      case op::kDmaWait:
      case op::kKernelWait:
      case op::kPmuMask:
        return nullptr;
      case op::kConv:
      case op::kDepthwise:
      case op::kPool:
      case op::kElementwise:
        return kernel(opcode, word >> 16);
      case op::kResize:
        return isU85() ? kernel(opcode, 0) : unknown();
      case op::kDmaStart:
        return dma();
      default:
        return unknown();
    }
  }
  Refusal unknown() const { return "a command that this NPU does not have"; }

  Refusal store(uint32_t wide, uint32_t slot, uint32_t parameter) {
    const uint32_t bit = 1u << slot % 32;
    if ((set::kExist[static_cast<uint32_t>(product_)][wide][slot / 32] & bit) == 0) return unknown();
    known_[wide][slot / 32] |= bit;
    if (wide == 0) {
      if (product_ == NpuProduct::U55 && (parameter & 0x8000u) != 0 && isRegion(slot))
        return "an access by a custom DMA";
      one_[slot] = static_cast<uint16_t>(parameter);
    } else {
      low_[slot] = stream_[at_ + 1];
      high_[slot] = static_cast<uint8_t>(product_ == NpuProduct::U55 ? 0 : parameter);
    }
    return nullptr;
  }

  static bool isRegion(uint32_t slot) {
    return slot == set::kIfmRegion || slot == set::kOfmRegion || slot == set::kWeightRegion ||
           slot == set::kScaleRegion || slot == set::kDmaSourceRegion || slot == set::kDmaDestinationRegion;
  }

  // Register reads. Unknown registers are noted; operations check complete() after their last read.
  void need(uint32_t wide, uint32_t slot) {
    if ((known_[wide][slot / 32] >> slot % 32 & 1u) == 0) missing_ = true;
  }
  [[gnu::noinline]] uint32_t get(uint32_t number) {
    need(0, set::slot(number));
    return one_[set::slot(number)];
  }
  int32_t plusOne(uint32_t number) { return static_cast<int32_t>(get(number)) + 1; }
  uint32_t low(uint32_t number) {
    need(1, set::slot(number));
    return low_[set::slot(number)];
  }
  [[gnu::noinline]] uint64_t address(uint32_t number) {
    return low(number) | uint64_t{high_[set::slot(number)]} << 32;
  }
  [[gnu::noinline]] int64_t stride(uint32_t number) {
    const uint64_t value = address(number);
    if (product_ == NpuProduct::U55) return static_cast<int32_t>(static_cast<uint32_t>(value));
    return static_cast<int64_t>(value << 24) >> 24;
  }
  Refusal complete() const {
    return missing_ ? "an operation behind a branch uses a register that is not set there" : nullptr;
  }

  Refusal access(uint32_t region, const EthosURange& range, bool write, const char* what) const {
    const bool inside = region < regions_.size && range.inside(regions_[region].bytes);
    if (!inside || (write && regions_[region].access == Access::Read)) return what;
    return nullptr;
  }

  Refusal map(uint32_t region, const EthosUMap& map, bool write, const char* what) const {
    for (size_t t = 0; t < 4; ++t) {
      EthosURange range;
      if (map.tile(t, &range)) CARINA_TRY_WHY(access(region, range, write, what));
    }
    return nullptr;
  }

  /// Sets where a map is, from the registers at offsets `one` and `two` from those of IFM.
  void place(EthosUMap* map, uint32_t one, uint32_t two, uint32_t storage) {
    for (uint32_t t = 0; t < 4; ++t) map->base[t] = address(set::kIfmBase0 + two + t);
    map->width0 = plusOne(set::kIfmWidth0M1 + one);
    map->height0 = plusOne(set::kIfmHeight0M1 + one);
    map->height1 = plusOne(set::kIfmHeight1M1 + one);
    map->strideX = stride(set::kIfmStrideX + two);
    map->strideY = stride(set::kIfmStrideY + two);
    map->strideC = stride(set::kIfmStrideC + two);
    map->stacked = storage == kStacked;
  }

  // The storage field of U85 precisions; other NPUs have 2x2 tiles only.
  static constexpr uint32_t kStacked = 1, kFirstOutsideMemory = 2;
  uint32_t storage(uint32_t precision) const { return isU85() ? precision >> 14 : 0; }
  static int64_t elementBytes(uint32_t log2) { return int64_t{1} << (log2 & 3u); }
  static bool isBrick(uint32_t precision) { return (precision >> 6 & 1u) != 0; }
  static bool knownLayout(uint32_t precision) { return (precision >> 7 & 1u) == 0; }

  static constexpr const char* kNoLayout = "a layout that does not exist";

  struct Shape {
    int32_t height, width, depth;
  };

  /// Checks IFM or IFM2 (`two` = kIfm2) of this shape.
  Refusal input(uint32_t two, const Shape& shape) {
    const uint32_t precision = get(set::kIfmPrecision + two);
    const uint32_t region = get(set::kIfmRegion + two) & 7u;
    if (storage(precision) >= kFirstOutsideMemory) return complete();
    if (shape.height < 1 || shape.width < 1) return "padding leaves nothing of an IFM";
    if (!knownLayout(precision)) return kNoLayout;
    EthosUMap map;
    place(&map, two, two, storage(precision));
    map.height = shape.height;
    map.width = shape.width;
    map.depth = shape.depth;
    map.elementBytes = elementBytes(precision >> 2);
    map.brick = isBrick(precision);
    CARINA_TRY_WHY(complete());
    return this->map(region, map, false,
                     two != 0 ? "an IFM2 outside its region" : "an IFM outside its region");
  }

  Refusal output(const Shape& shape) {
    const uint32_t precision = get(set::kOfmPrecision);
    const bool written = !isU85() || (get(set::kAccFormat) >> 6 & 1u) == 0;
    if (!written || storage(precision) >= kFirstOutsideMemory) return complete();
    if (!knownLayout(precision)) return kNoLayout;
    EthosUMap map;
    constexpr uint32_t kOfm = set::kOfmBase0 - set::kIfmBase0;
    static_assert(kOfm == set::kOfmWidth0M1 - set::kIfmWidth0M1 &&
                  kOfm == set::kOfmStrideC - set::kIfmStrideC);
    place(&map, kOfm, kOfm, storage(precision));
    map.elementBytes = elementBytes(precision >> 1);
    map.brick = isBrick(precision);
    const int32_t h = shape.height, w = shape.width, c = shape.depth;
    // Rows, columns and channels in memory.
    Shape stored = shape;
    switch (isU85() ? precision >> 11 & 7u : 0) {
      case 1:  // WHC
        stored = {w, h, c};
        break;
      case 2:  // HCW
        stored = {h, c, w};
        break;
      case 3:  // WCH
        stored = {w, c, h};
        break;
      case 6:  // CHW
        stored = {c, h, w};
        break;
      case 7:  // CWH
        stored = {c, w, h};
        break;
      case 0:
        break;
      default:
        return "a transposition that does not exist";
    }
    map.height = stored.height;
    map.width = stored.width;
    map.depth = stored.depth;
    const uint32_t region = get(set::kOfmRegion) & 7u;
    CARINA_TRY_WHY(complete());
    return this->map(region, map, true, "an OFM outside its region, or in one that is read only");
  }

  Refusal kernel(uint32_t opcode, uint32_t parameter) {
    missing_ = false;
    const Shape ofm{plusOne(set::kOfmHeightM1), plusOne(set::kOfmWidthM1), plusOne(set::kOfmDepthM1)};
    CARINA_TRY_WHY(output(ofm));
    if (opcode == op::kElementwise) return elementwise(parameter & 0x3fu, ofm);
    if (opcode == op::kResize) {
      const int32_t depth = plusOne(set::kIfmDepthM1);
      return input(0, {plusOne(set::kKernelHeightM1), plusOne(set::kKernelWidthM1),
                       depth > ofm.depth ? depth : ofm.depth});
    }
    constexpr uint32_t kReduceSum = 2, kNone = 4;
    const bool pool = opcode == op::kPool;
    const bool matrix = opcode == op::kConv && isU85() && (parameter & 1u) != 0;  // weights from IFM2
    const bool whole = opcode == op::kConv || (pool && (parameter & 7u) == kReduceSum);
    const int32_t depth = whole ? plusOne(set::kIfmDepthM1) : ofm.depth;
    if (!pool || (parameter & 7u) != kNone) CARINA_TRY_WHY(input(0, window(ofm, depth)));
    if (matrix) CARINA_TRY_WHY(input(set::kIfm2, {1, ofm.depth, depth}));
    constexpr uint32_t kFromIfm2 = 2;
    if (isU85() && (get(set::kAccFormat) >> 4 & 3u) == kFromIfm2) CARINA_TRY_WHY(input(set::kIfm2, ofm));
    return streams(pool, matrix, parameter & 7u);
  }

  /// The IFM that the kernel slides over: (ofm - 1) * stride + kernel - padding, halved if upscaled.
  Shape window(const Shape& ofm, int32_t depth) {
    const uint32_t bits = get(set::kKernelStride);
    const int32_t strideX = static_cast<int32_t>(1 + (bits & 1u) + (bits >> 6 & 1u) * 2);
    const int32_t strideY = static_cast<int32_t>(1 + (bits >> 1 & 1u) + (bits >> 9 & 1u) * 2);
    const int32_t padY =
        static_cast<int32_t>((get(set::kIfmPadTop) & 0x7fu) + (get(set::kIfmPadBottom) & 0xffu));
    const int32_t padX =
        static_cast<int32_t>((get(set::kIfmPadLeft) & 0x7fu) + (get(set::kIfmPadRight) & 0xffu));
    const uint32_t half = (get(set::kIfmUpscale) & 3u) == 0 ? 0 : 1;
    const int32_t height = (ofm.height - 1) * strideY + plusOne(set::kKernelHeightM1) - padY;
    const int32_t width = (ofm.width - 1) * strideX + plusOne(set::kKernelWidthM1) - padX;
    return {(height + static_cast<int32_t>(half)) >> half, (width + static_cast<int32_t>(half)) >> half,
            depth};
  }

  Refusal elementwise(uint32_t mode, const Shape& ofm) {
    const uint32_t scalarBit = isU85() ? 0x08u : 0x80u;  // the operand is in a register
    const uint32_t first = isU85() ? get(set::kIfmBroadcast) : 0;
    if ((first & scalarBit) == 0) CARINA_TRY_WHY(input(0, spread(ofm, first)));
    constexpr uint64_t kUnary =
        uint64_t{1} << 5 | uint64_t{1} << 6 | uint64_t{1} << 7 | uint64_t{1} << 36;  // LRELU, ABS, CLZ, NOT
    if ((kUnary >> mode & 1u) != 0) return complete();
    const uint32_t second = get(set::kIfm2Broadcast);
    return (second & scalarBit) != 0 ? complete() : input(set::kIfm2, spread(ofm, second));
  }

  /// Shape of an operand: 1 along broadcast axes.
  static Shape spread(const Shape& ofm, uint32_t broadcast) {
    return {(broadcast & 1u) != 0 ? 1 : ofm.height, (broadcast & 2u) != 0 ? 1 : ofm.width,
            (broadcast & 4u) != 0 ? 1 : ofm.depth};
  }

  Refusal range(uint32_t region, uint32_t base, uint32_t length, uint32_t mask, const char* what) {
    const uint32_t bytes = low(length) & mask;
    if (bytes == 0) return complete();
    const int64_t first = static_cast<int64_t>(address(base));
    CARINA_TRY_WHY(complete());
    return access(region, {first, first + bytes - 1}, false, what);
  }

  Refusal streams(bool pool, bool matrix, uint32_t poolMode) {
    constexpr uint32_t kScaleMask = 0xfffffu;
    const bool global = (get(set::kOfmPrecision) >> 8 & 1u) != 0;
    if (!pool && !matrix) {
      const uint32_t count = isU85()                          ? 1u << config::log2WeightDecoders(config_)
                             : config::log2Macs(config_) >= 9 ? 2
                                                              : 1;
      const uint32_t region = get(set::kWeightRegion) & 7u;
      constexpr const char* kWhat = "weights outside their region";
      for (uint32_t i = 0; i < count; ++i) {
        const uint32_t base = i == 0 ? set::kWeightBase : set::kWeight1Base + 2 * (i - 1);
        CARINA_TRY_WHY(range(region, base, base + 1, 0xffffffffu, kWhat));
      }
    }
    // With global scales no stream is read, except by convolutions with weights, which may have one.
    if (global && (pool || matrix)) return complete();
    if (pool && !isU85() && !(poolMode == kAverage && single())) return complete();
    const uint32_t region = get(set::kScaleRegion) & 7u;
    constexpr const char* kWhat = "scales outside their region";
    CARINA_TRY_WHY(range(region, set::kScaleBase, set::kScaleLength, kScaleMask, kWhat));
    if (product_ != NpuProduct::U65 || config::log2Macs(config_) < 9) return nullptr;
    return range(region, set::kScale1Base, set::kScale1Base + 1, kScaleMask, kWhat);
  }

  static constexpr uint32_t kAverage = 1;
  /// Whether the pool window is a single element: on U55 and U65, only averages of these read scales.
  bool single() {
    return (get(set::kKernelHeightM1) | get(set::kKernelWidthM1) | get(set::kIfmPadTop) |
            get(set::kIfmPadLeft) | get(set::kIfmPadBottom) | get(set::kIfmPadRight)) == 0;
  }

  Refusal dma() {
    missing_ = false;
    const uint32_t source = get(set::kDmaSourceRegion), destination = get(set::kDmaDestinationRegion);
    const uint64_t length = address(set::kDmaLength);
    CARINA_TRY_WHY(complete());
    if (length == 0) return nullptr;
    const bool u55 = product_ == NpuProduct::U55, u65 = product_ == NpuProduct::U65;
    const uint32_t sourceDimensions = u55 ? 1 : (source >> 9 & 3u) + 1;
    const uint32_t destinationDimensions = u65 ? (destination >> 9 & 3u) + 1 : sourceDimensions;
    if (sourceDimensions > 3 || destinationDimensions > 3) return "a DMA of 4 dimensions";
    const uint32_t dimensions =
        sourceDimensions > destinationDimensions ? sourceDimensions : destinationDimensions;
    const bool gather = isU85() && (source >> 11 & 1u) != 0,
               scatter = isU85() && (destination >> 11 & 1u) != 0;
    if (gather && scatter) return "a DMA that is indexed on both sides";
    const bool several = dimensions > 1 || gather || scatter;
    const int64_t inner = several ? get(set::kDmaSize0) : 1;
    const int64_t outer = dimensions > 2 ? get(set::kDmaSize1) : 1;
    if (inner == 0 || outer == 0) return "a DMA of size 0";
    // The DMA of the U55 transfers units of 16 bytes.
    const uint64_t moved = u55 ? (length + 15) & ~uint64_t{15} : length;
    const Runs runs{
        static_cast<int64_t>(length < kFar ? length : kFar), moved, inner, outer, dimensions, several};
    CARINA_TRY_WHY(
        dmaEnd(source, set::kDmaSource, set::kDmaSourceStride0, runs, sourceDimensions, gather, false));
    CARINA_TRY_WHY(dmaEnd(destination, set::kDmaDestination,
                          u65 ? set::kDmaSkip0 : set::kDmaDestinationStride0, runs, destinationDimensions,
                          scatter, true));
    if (!gather && !scatter) return nullptr;
    const uint32_t region = get(set::kDmaIndexRegion) & 7u;
    const uint64_t index = address(set::kDmaIndex);
    const int64_t skip = dimensions > 2 ? stride(set::kDmaIndexSkip1) : 0;
    CARINA_TRY_WHY(complete());
    return access(region, format::ethosuDmaRange(index, 4, inner, outer, 4, inner * 4 + skip), false,
                  "DMA indices outside their region");
  }

  static constexpr uint64_t kFar = uint64_t{1} << 41;
  struct Runs {
    int64_t length;
    uint64_t moved;
    int64_t inner, outer;
    uint32_t dimensions;
    bool several;  // more than one run, so that strides apply
  };

  Refusal dmaEnd(uint32_t end, uint32_t base, uint32_t stride0, const Runs& runs, uint32_t ownDimensions,
                 bool indexed, bool write) {
    if ((end >> 8 & 1u) != 0) return complete();  // SHRAM or table memory
    int64_t step = 0, group = 0, steps = runs.inner;
    if (product_ == NpuProduct::U65) {
      // SKIP is the gap after a run; a side without one is contiguous.
      step = runs.length + (ownDimensions > 1 ? stride(stride0) : 0);
      group = runs.inner * step + (ownDimensions > 2 ? stride(stride0 + 1) : 0);
    } else if (runs.several) {
      step = stride(stride0);
      group = runs.dimensions > 2 ? stride(stride0 + 1) : 0;
      if (indexed) steps = int64_t{low(set::kDmaIndexMax) & 0x7fffffffu} + 1;
    }
    const uint64_t start = address(base);
    CARINA_TRY_WHY(complete());
    return access(
        end & 7u, format::ethosuDmaRange(start, runs.moved, steps, runs.outer, step, group), write,
        write ? "a DMA to outside its region, or to one that is read only" : "a DMA from outside its region");
  }

  const uint32_t config_;
  const NpuProduct product_;
  const Span<const uint32_t> stream_;
  const Span<const Region> regions_;
  size_t at_ = 0;  // word
  bool missing_ = false;
  uint32_t targets_ = 0;
  uint32_t target_[kMaxTargets];
  uint32_t known_[2][set::kSlots / 32];
  uint16_t one_[set::kSlots] = {};
  uint32_t low_[set::kSlots] = {};
  uint8_t high_[set::kSlots] = {};
};

}  // namespace

Status validateStream(uint32_t configWord, Span<const uint32_t> stream, Span<const Region> regions) {
  Validator validator(configWord, stream, regions);
  const Refusal why = validator.run();
  return why == nullptr ? Status{} : failure(Code::CorruptDelegate, why, validator.offset());
}

}  // namespace carina::rt
