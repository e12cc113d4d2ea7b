// SPDX-License-Identifier: Apache-2.0
// Products of two computed matrices on Ethos-U55 and U65 as convolutions whose weight streams the NPU itself
// writes (coded_weights.hpp). The elementwise unit multiplies about one pair of values per cycle, the MAC
// array as many as it has units: a stream costs a few cycles per weight, once, however many rows there are.
//
// A weight w takes the nine bits 2 |w| + (w < 0), eight of them nine bytes. With m = |w| and s = (w < 0), the
// field of a weight that has its low q bits in one byte, from bit 8 - q on, and the others in the next is
//   h = m >> (q - 1)                 in the next byte, from bit 0 on
//   2 t + s, t = m - (h << (q - 1))  in the first byte
// so that each byte is a sum of at most one h, t and s, times powers of two: a convolution with constants.
#include <algorithm>

#include "compiler/legalize/legalizer.hpp"
#include "npu/isa/blockconfig.hpp"
#include "npu/timing/output_rate.hpp"

namespace carina::compiler {

using npu_ir::CodedOrder;
using npu_ir::kCodeBits;
using npu_ir::kFirstGroupBit;
using npu_ir::kGroupWeights;
using npu_ir::kSecondGroupByte;
using npu_ir::Piece;

namespace {

constexpr int64_t kMaxDepth = 4064;  // one microblock of columns still fits a slice
constexpr int64_t kBlockDepth = 64;
/// Groups that the operations on bytes process side by side, and the resulting channels.
constexpr int64_t kSideBySide = 2, kChannels = kSideBySide * kGroupWeights;

/// The number of low bits of a field that starts at a bit: those up to the end of its byte.
int64_t lowBits(int64_t bit) {
  return 8 - bit % 8;
}

/// Where the fields of two neighbouring groups start: the first two of a stream, or any others relative to
/// their own bytes.
std::array<int64_t, kChannels> fieldBits(bool first) {
  std::array<int64_t, kChannels> bits{};
  for (int64_t i = 0; i < kChannels; ++i) bits[static_cast<size_t>(i)] = i * kCodeBits;
  for (int64_t i = 0; first && i < kChannels; ++i) {
    bits[static_cast<size_t>(i)] = i < kGroupWeights ? kFirstGroupBit + i * kCodeBits
                                                     : kSecondGroupByte * 8 + (i - kGroupWeights) * kCodeBits;
  }
  return bits;
}

}  // namespace

bool Legalizer::prefersCodes(int64_t batch, int64_t rows, int64_t depth, int64_t columns) const {
  if (depth > kMaxDepth || rows > kMaxAxis) return false;
  // Cycles per element of the elementwise unit, of other operations, and of those with a table.
  npu::KernelOperation multiplication, other;
  multiplication.kind = npu::OperationKind::Elementwise;
  multiplication.elementwise.mode = npu::ElementwiseMode::Mul;
  multiplication.ofm.type = npu::ElementType::Int16;
  multiplication.activation.min = integerMin(DType::Int16);
  multiplication.activation.max = integerMax(DType::Int16);
  other.kind = npu::OperationKind::Conv;
  other.ofm.type = npu::ElementType::Int32;
  const double multiply = npu::timing::outputCyclesPerElement(target_, multiplication);
  const double output = npu::timing::outputCyclesPerElement(target_, other);
  other.activation.table = npu::Table::Lut8;
  const double table = npu::timing::outputCyclesPerElement(target_, other);
  // Start and end of an operation, and the constants that it reads. A row operation covers the whole batch.
  constexpr double kRowOperation = 70, kStreamOperation = 220, kOperations = 10;
  const auto products = static_cast<double>(rows) * static_cast<double>(depth) * static_cast<double>(columns);
  const auto matrices = static_cast<double>(batch);
  // A product and its share of the sum, in whole microblocks and bursts.
  const double rowByRow = matrices * products * std::max(1.15, 0.6 * multiply) +
                          2 * kRowOperation * static_cast<double>(std::min(rows, columns));
  const auto copies = static_cast<double>(ceilDiv(columns, kBlockDepth) * ceilDiv(depth, kGroupWeights));
  const double coded =
      matrices * ((multiply + table + 4 * output) * static_cast<double>(depth * columns) +
                  1.5 * products / static_cast<double>(target_.macs) +
                  kStreamOperation * (1 + static_cast<double>(target_.cores) * (kOperations + copies / 2)));
  return coded < rowByRow;
}

Result<ir::Value*> Legalizer::codedProduct(const Operand& x, const RightMatrix& y, int64_t columns,
                                           DType type, std::vector<ir::Node*>& operations) {
  const int64_t rows = x.value->dim(1), depth = x.value->dim(2);
  CodedOrder order;
  order.streams = target_.cores;
  order.ublockDepth = npu::microblocks(target_).front().c;
  order.ifmBlock = dtypeSize(x.value->dtype()) == 2 ? 16 : 32;
  // The number of weights that a slice can count limits the columns of a convolution.
  const int64_t most = npu_ir::kMaxCodedWeights / roundUp(depth, order.ifmBlock) / order.ublockDepth *
                       order.ublockDepth * order.streams;
  const int64_t step = std::min(most, roundUp(ceilDiv(columns, ceilDiv(columns, most)), order.ublockDepth));
  std::vector<Piece> pieces;
  for (int64_t first = 0; first < columns; first += step) {
    const int64_t count = std::min(step, columns - first);
    order.blockDepth = std::min(kBlockDepth, roundUp(count, order.ublockDepth * order.streams));
    CARINA_TRY(ir::Value * codes, codedColumns(y, depth, first, count, order));
    ir::Value* result =
        npu_ir::createCodedConv(builder_, x.value, codes, count, x.zeroPoint, order, {}, type);
    operations.push_back(result->producer());
    pieces.push_back({result, first, {rows * columns, columns, 1}});
  }
  return pieces.size() == 1 ? pieces[0].value
                            : npu_ir::createJoin(builder_, pieces, {type, {1, rows, columns}});
}

Result<ir::Value*> Legalizer::codedColumns(const RightMatrix& y, int64_t depth, int64_t first, int64_t count,
                                           const CodedOrder& order) {
  RightMatrix part = y;
  part.offset += first * y.columnStride;
  std::vector<Piece> streams;
  int64_t start = 0;
  for (int64_t s = 0; s < order.streams; ++s) {
    const int64_t bytes = order.streamBytes(count, depth, s);
    if (bytes == 0) continue;
    ir::Value* groups = groupedWeights(part, depth, count, s, order);
    streams.push_back({codedStream(groups, y.zeroPoint, bytes), start, {1}});
    start += bytes;
  }
  return streams.size() == 1 ? streams[0].value
                             : npu_ir::createJoin(builder_, streams, {DType::UInt8, {start}});
}

const Legalizer::Selector& Legalizer::selectorOf(int64_t unit, int64_t channels, int64_t taps,
                                                 int64_t streams) {
  Selector& selector = selectors_[{unit, channels, taps, streams}];
  if (selector.weight) return selector;
  const int64_t span = (channels - 1) * streams + 1;
  Tensor weight = Tensor::zeros(DType::Int8, {unit * kGroupWeights, taps, 1, span});
  for (int64_t oz = 0; oz < channels; ++oz) {
    for (int64_t tap = 0; tap < taps; ++tap)
      weight.setIntegerAt(((oz * kGroupWeights + tap) * taps + tap) * span + oz * streams, 1);
  }
  selector = {constant(std::move(weight)), constant(Tensor::zeros(DType::Int32, {unit * kGroupWeights}))};
  return selector;
}

ir::Value* Legalizer::groupedWeights(const RightMatrix& y, int64_t depth, int64_t columns, int64_t stream,
                                     const CodedOrder& order) {
  const int64_t rows = order.channels(columns, stream), block = order.blockChannels(stream);
  const int64_t unit = order.ublockDepth, ifmBlock = order.ifmBlock,
                groupsPerBlock = ifmBlock / kGroupWeights;
  const int64_t padded = roundUp(depth, ifmBlock);
  std::vector<Piece> pieces;
  const auto fill = [&](const Shape& shape, int64_t offset, const ir::Ints& strides) {
    if (numElements(shape) > 0) pieces.push_back({filled(DType::Int8, shape, y.zeroPoint), offset, strides});
  };
  for (int64_t begin = 0; begin < rows; begin += block) {
    // Element (row, k) of the block is at row / unit * tile + row % unit * 8 + place(k).
    const int64_t size = std::min(block, rows - begin), tiles = ceilDiv(size, unit), tile = unit * ifmBlock;
    const int64_t start = begin * padded;
    const auto place = [&](int64_t k) {
      return start + k / ifmBlock * tiles * tile + k % ifmBlock / kGroupWeights * unit * kGroupWeights;
    };
    const int64_t origin = y.offset + (begin * order.streams + stream) * y.columnStride;
    if (y.depthStride == 1) {
      const int64_t step = order.streams * y.columnStride, whole = size / unit, rest = size % unit;
      for (int64_t k = 0; k < depth; k += kGroupWeights) {
        const int64_t n = std::min(kGroupWeights, depth - k);
        const auto copy = [&](int64_t firstTile, int64_t count, int64_t height) {
          for (Piece& piece : emitCopies(builder_, {y.value,
                                                    {count, height, n},
                                                    origin + firstTile * unit * step + k,
                                                    {unit * step, step, 1},
                                                    place(k) + firstTile * tile,
                                                    {tile, kGroupWeights, 1}}))
            pieces.push_back(std::move(piece));
        };
        if (whole > 0) copy(0, whole, unit);
        if (rest > 0) copy(whole, 1, rest);
        if (rest > 0) {
          fill({1, unit - rest, n}, place(k) + whole * tile + rest * kGroupWeights, {tile, kGroupWeights, 1});
        }
        fill({tiles, unit, kGroupWeights - n}, place(k) + n, {tile, kGroupWeights, 1});
      }
    } else {
      // A kernel over the positions of a group that selects one of them for each of its weights: for `count`
      // groups, `step` positions apart, whose places are `apart` from each other.
      const auto select = [&](int64_t t, int64_t k, int64_t taps, int64_t count, int64_t step,
                              int64_t apart) {
        const int64_t channels = std::min(unit, size - t * unit), span = (channels - 1) * order.streams + 1;
        const Selector& selector = selectorOf(unit, channels, taps, order.streams);
        ir::Value* ifm = npu_ir::createView(builder_, y.value, DType::Int8, {taps, count, span},
                                            origin + t * unit * order.streams + k * y.depthStride,
                                            {y.depthStride, step * y.depthStride, 1});
        npu_ir::Window window;
        window.kernel = {taps, 1};
        window.ifmZeroPoint = y.zeroPoint;
        npu_ir::OutputStage stage;
        stage.zeroPoint = y.zeroPoint;
        ir::Value* groups = npu_ir::createConv(builder_, ifm, selector.weight, selector.bias, window, {0},
                                               stage, DType::Int8);
        pieces.push_back({groups, place(k) + t * tile, {apart * count, apart, 1}});
      };
      const int64_t blocks = depth / ifmBlock, wholeGroups = depth % ifmBlock / kGroupWeights;
      const int64_t rest = depth % kGroupWeights, group = unit * kGroupWeights;
      for (int64_t t = 0; t < tiles; ++t) {
        for (int64_t i = 0; blocks > groupsPerBlock && i < groupsPerBlock; ++i)
          select(t, i * kGroupWeights, kGroupWeights, blocks, ifmBlock, tiles * tile);
        for (int64_t i = 0; blocks <= groupsPerBlock && i < blocks; ++i)
          select(t, i * ifmBlock, kGroupWeights, groupsPerBlock, kGroupWeights, group);
        if (wholeGroups > 0) select(t, blocks * ifmBlock, kGroupWeights, wholeGroups, kGroupWeights, group);
        if (rest > 0) select(t, depth - rest, rest, 1, rest, group);
      }
    }
    // Whole groups beyond the depth.
    const int64_t used = ceilDiv(depth, kGroupWeights) % groupsPerBlock;
    if (used > 0) {
      fill({tiles, groupsPerBlock - used, unit * kGroupWeights},
           place(padded - ifmBlock) + used * unit * kGroupWeights, {tile, unit * kGroupWeights, 1});
    }
  }
  const int64_t groups = order.groups(columns, depth, stream);
  return npu_ir::createJoin(builder_, pieces, {DType::Int8, {1, groups / kSideBySide, kChannels}});
}

ir::Value* Legalizer::codedStream(ir::Value* groups, int64_t zeroPoint, int64_t bytes) {
  const int64_t positions = groups->dim(1);
  const Shape row{1, positions, kChannels};
  const ir::Ints strides{positions * kChannels, kChannels, 1};
  Tensor magnitudes = Tensor::zeros(DType::Int8, {256});
  for (int64_t i = 0; i < 256; ++i)
    magnitudes.setIntegerAt(i, static_cast<int8_t>(std::abs(i - 128 - zeroPoint)));
  ir::Value* magnitude =
      npu_ir::createCopy(builder_, groups, 0, tableStage(std::move(magnitudes)), DType::Int8);

  const auto depthwise = [&](ir::Value* ifm, Tensor weight, Tensor bias, const npu_ir::OutputStage& stage,
                             int64_t zero) {
    npu_ir::Window window;
    window.kernel = {weight.dim(0), 1};
    window.ifmZeroPoint = zero;
    return npu_ir::createDepthwise(builder_, ifm, constant(std::move(weight)), constant(std::move(bias)),
                                   window, {0}, stage, DType::UInt8);
  };
  const auto perChannel = [](const Shape& shape, auto&& value) {
    Tensor tensor = Tensor::zeros(shape.size() == 1 ? DType::Int32 : DType::Int8, shape);
    for (int64_t i = 0; i < tensor.numElements(); ++i) tensor.setIntegerAt(i, value(i));
    return tensor;
  };
  // The first position holds the two leading groups, whose fields are at other bits.
  struct Part {
    std::array<int64_t, kChannels> bits;
    int64_t from, count;
  };
  const Part parts[] = {{fieldBits(true), 0, 1}, {fieldBits(false), 1, positions - 1}};
  std::vector<Piece> tops{{magnitude, 0, strides}};
  for (const Part& part : parts) {
    npu_ir::OutputStage stage;
    stage.multipliers.assign(kChannels, 1);
    stage.shifts.clear();
    for (const int64_t bit : part.bits) stage.shifts.push_back(lowBits(bit) - 1);
    // Rounded down: half of the last place is subtracted first.
    const auto half = [&](int64_t i) { return -((int64_t{1} << stage.shifts[static_cast<size_t>(i)]) / 2); };
    ir::Value* ifm = npu_ir::createView(builder_, magnitude, DType::UInt8, {1, part.count, kChannels},
                                        part.from * kChannels, strides);
    ir::Value* top = depthwise(ifm, perChannel({1, 1, kChannels}, [](int64_t) { return 1; }),
                               perChannel({kChannels}, half), stage, 0);
    tops.push_back({top, positions * kChannels + part.from * kChannels, strides});
  }
  // Rows: magnitudes, their part in the next byte, their part in the first one, signs.
  ir::Value* pairs = npu_ir::createJoin(builder_, tops, {DType::UInt8, {2, positions, kChannels}});
  std::vector<Piece> rows{{pairs, 0, strides}};
  for (const Part& part : parts) {
    ir::Value* ifm = npu_ir::createSlice(builder_, pairs, {0, part.from, 0}, {2, part.count, kChannels});
    const auto factor = [&](int64_t i) {
      return i < kChannels ? 1
                           : -(int64_t{1} << (lowBits(part.bits[static_cast<size_t>(i - kChannels)]) - 1));
    };
    ir::Value* low = depthwise(ifm, perChannel({2, 1, kChannels}, factor),
                               perChannel({kChannels}, [](int64_t) { return 0; }), {}, 0);
    rows.push_back({low, (2 * positions + part.from) * kChannels, strides});
  }
  npu_ir::OutputStage oneOrZero;
  oneOrZero.clamp = {0, 1};
  rows.push_back({depthwise(groups, perChannel({1, 1, kChannels}, [](int64_t) { return -1; }),
                            perChannel({kChannels}, [](int64_t) { return 0; }), oneOrZero, zeroPoint),
                  3 * positions * kChannels, strides});
  ir::Value* fields = npu_ir::createJoin(builder_, rows, {DType::UInt8, {4, positions, kChannels}});

  // Bytes as sums of fields; those of the first two groups include the headers.
  const auto headers = npu_ir::codedHeaders(positions * kSideBySide);
  std::vector<Piece> pieces;
  int64_t at = 0;
  for (const Part& part : parts) {
    const bool first = part.from == 0;
    const int64_t size = (first ? kSecondGroupByte : kCodeBits) + kCodeBits;
    Tensor weight = Tensor::zeros(DType::UInt8, {size, 3, 1, kChannels});
    Tensor bias = Tensor::zeros(DType::Int32, {size});
    for (size_t i = 0; first && i < headers.size(); ++i)
      bias.setIntegerAt(static_cast<int64_t>(i), headers[i]);
    for (int64_t i = 0; i < kChannels; ++i) {
      const int64_t bit = part.bits[static_cast<size_t>(i)], byte = bit / 8, shift = bit % 8;
      const auto put = [&](int64_t output, int64_t plane, int64_t factor) {
        weight.setIntegerAt((output * 3 + plane) * kChannels + i, factor);
      };
      put(byte + 1, 0, 1);
      // A field with one low bit has only its sign there.
      if (shift < 7) put(byte, 1, int64_t{2} << shift);
      put(byte, 2, int64_t{1} << shift);
    }
    npu_ir::Window window;
    window.kernel = {3, 1};
    ir::Value* ifm = npu_ir::createSlice(builder_, fields, {1, part.from, 0}, {3, part.count, kChannels});
    ir::Value* codes = npu_ir::createConv(builder_, ifm, constant(std::move(weight)),
                                          constant(std::move(bias)), window, {0}, {}, DType::UInt8);
    pieces.push_back({codes, at, {part.count * size, size, 1}});
    at += part.count * size;
  }
  Tensor end = Tensor::zeros(DType::UInt8, {1, 1, bytes - at});
  for (int64_t i = 0; i < end.numElements(); ++i) end.setIntegerAt(i, 0xff);
  pieces.push_back({constant(std::move(end)), at, {1, 1, 1}});
  return npu_ir::createJoin(builder_, pieces, {DType::UInt8, {bytes}});
}

}  // namespace carina::compiler
