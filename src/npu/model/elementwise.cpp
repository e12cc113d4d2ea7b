// SPDX-License-Identifier: Apache-2.0
// ELEMENTWISE: operand fetch with broadcast, operand scaling, and every binary and unary mode
// (ethosu-numerics 5).
#include <algorithm>
#include <bit>
#include <cstring>

#include "npu/model/executor.hpp"

namespace carina::npu::model {
namespace {

/// One operand with its broadcast applied: a feature map in memory, a chaining buffer or a scalar.
class Operand {
 public:
  Outcome bind(const FeatureMap& map, const Broadcast& broadcast, int32_t scalar, const KernelOperation& op,
               AddressMap& memory, const std::array<ChainBuffer, 8>& chains, const char* name) {
    height_ = op.ofm.height;
    width_ = op.ofm.width;
    depth_ = op.ofm.depth;
    broadcast_ = broadcast;
    zeroPoint_ = map.zeroPoint;
    type_ = map.type;
    if (broadcast.scalar || map.storage == Storage::None) {
      scalar_ = true;
      value_ = (type_ == ElementType::Int64 ? int64_t{scalar} : wrapTo(scalar, type_)) - zeroPoint_;
      return std::nullopt;
    }
    if (map.storage == Storage::Chained) {
      if (map.region >= chains.size() || !chains[map.region].valid) {
        return makeFault(FaultKind::Parse, "{} reads chaining buffer {}, which nothing has written", name,
                         map.region);
      }
      chain_ = &chains[map.region];
      const int64_t have = chain_->height * chain_->width * chain_->depth;
      flat_ = have == height_ * width_ * depth_;
      const auto fits = [](int64_t own, int64_t wanted, bool spread) {
        return own == wanted || spread || own == 1;
      };
      if (!flat_ && !(fits(chain_->height, height_, broadcast.h) &&
                      fits(chain_->width, width_, broadcast.w) && fits(chain_->depth, depth_, broadcast.c))) {
        return makeFault(FaultKind::Parse, "{} is {}x{}x{} in chaining buffer {}, the OFM {}x{}x{}", name,
                         chain_->height, chain_->width, chain_->depth, map.region, height_, width_, depth_);
      }
      return std::nullopt;
    }
    return map_.bind(map, broadcast.h ? 1 : height_, broadcast.w ? 1 : width_, broadcast.c ? 1 : depth_,
                     memory, Access::Read, Channel::Ifm, name);
  }

  /// Values of OFM row y, columns [x0, x1), minus the zero point.
  void read(int64_t y, int64_t x0, int64_t x1, std::vector<int64_t>& scratch, int64_t* to) const {
    const int64_t n = (x1 - x0) * depth_;
    if (scalar_) {
      std::fill_n(to, n, value_);
      return;
    }
    if (chain_ != nullptr) {
      if (flat_) {
        const int64_t* from = chain_->values.data() + (y * width_ + x0) * depth_;
        for (int64_t i = 0; i < n; ++i) to[i] = from[i] - zeroPoint_;
        return;
      }
      const int64_t yy = chain_->height == 1 || broadcast_.h ? 0 : y;
      for (int64_t x = x0; x < x1; ++x) {
        const int64_t xx = chain_->width == 1 || broadcast_.w ? 0 : x;
        for (int64_t c = 0; c < depth_; ++c) {
          const int64_t cc = chain_->depth == 1 || broadcast_.c ? 0 : c;
          *to++ = chain_->values[static_cast<size_t>((yy * chain_->width + xx) * chain_->depth + cc)] -
                  zeroPoint_;
        }
      }
      return;
    }
    const int64_t yy = broadcast_.h ? 0 : y;
    if (!broadcast_.w && !broadcast_.c) {
      map_.readRow(yy, x0, x1, zeroPoint_, to);
      return;
    }
    const int64_t first = broadcast_.w ? 0 : x0, last = broadcast_.w ? 1 : x1, channels = map_.depth();
    scratch.resize(static_cast<size_t>((last - first) * channels));
    map_.readRow(yy, first, last, zeroPoint_, scratch.data());
    for (int64_t x = 0; x < x1 - x0; ++x) {
      const int64_t* from = scratch.data() + (broadcast_.w ? 0 : x) * channels;
      if (broadcast_.c) {
        std::fill_n(to + x * depth_, depth_, from[0]);
      } else {
        std::copy_n(from, depth_, to + x * depth_);
      }
    }
  }

 private:
  BoundMap map_;
  const ChainBuffer* chain_ = nullptr;
  Broadcast broadcast_;
  ElementType type_ = ElementType::Int8;
  bool scalar_ = false, flat_ = false;
  int64_t value_ = 0, zeroPoint_ = 0;
  int64_t height_ = 0, width_ = 0, depth_ = 0;
};

int64_t wrapAdd(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrapSub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
int64_t wrapMul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

/// Applies a scale to every element of a row; does nothing for unit scales.
void scaleRow(const Scale& scale, int64_t count, int64_t* values) {
  if (scale.multiplier == 1 && scale.shift == 0) return;
  const int shift = scale.shift & 63;
  const RoundingTerms terms = roundingTerms(scale.rounding, shift, scale.doubleRound);
  constexpr int64_t kNear = int64_t{1} << 29;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t v = values[i];
    if (v < kNear && v > -kNear) {
      values[i] = (v * int64_t{scale.multiplier} + (v >= 0 ? terms.positive : terms.negative)) >> shift;
    } else {
      values[i] = scaleExact(v, scale.multiplier, shift, terms);
    }
  }
}

/// a shifted right by b with the rounding of the OFM scale. Assumption shift-range: amounts outside 0..63
/// saturate.
int64_t shiftRight(int64_t a, int64_t b, Rounding rounding) {
  const int shift = static_cast<int>(std::clamp<int64_t>(b, 0, 63));
  // The amount is not a scale: the double roundings have no first rounding here.
  const Rounding mode = rounding == Rounding::DoubleSymmetric || rounding == Rounding::DoubleAsymmetric
                            ? Rounding::Natural
                            : rounding;
  return scaleExact(a, 1, shift, roundingTerms(mode, shift, 0));
}

int64_t countLeadingZeros(int64_t a) {
  return std::countl_zero(static_cast<uint32_t>(a));
}

/// Bits of a value as an unsigned integer of its element width.
uint64_t bitsOf(int64_t v, int bits) {
  return bits >= 64 ? static_cast<uint64_t>(v) : static_cast<uint64_t>(v) & ((uint64_t{1} << bits) - 1);
}

struct Binary {
  ElementwiseMode mode;
  Rounding rounding;  // SHR
  ElementType type;   // of the operands
  int64_t truth;      // comparison result for true

  void apply(const int64_t* a, const int64_t* b, int64_t n, int64_t* to) const {
    const int bits = elementBytes(type) * 8;
    const auto each = [&](auto f) {
      for (int64_t i = 0; i < n; ++i) to[i] = f(a[i], b[i]);
    };
    const auto compare = [&](auto f) {
      const int64_t yes = truth;
      for (int64_t i = 0; i < n; ++i) to[i] = f(a[i], b[i]) ? yes : 0;
    };
    switch (mode) {
      case ElementwiseMode::Mul:
        each(wrapMul);
        break;
      case ElementwiseMode::Add:
        each(wrapAdd);
        break;
      case ElementwiseMode::Sub:
        each(wrapSub);
        break;
      case ElementwiseMode::Min:
        each([](int64_t x, int64_t y) { return x < y ? x : y; });
        break;
      case ElementwiseMode::Max:
        each([](int64_t x, int64_t y) { return x > y ? x : y; });
        break;
      case ElementwiseMode::Shr:
        each([this](int64_t x, int64_t y) { return shiftRight(x, y, rounding); });
        break;
      case ElementwiseMode::Shl:
        // Assumption shl-low-bits: 32-bit result, low bits kept; amounts of 32 and more give 0.
        each([](int64_t x, int64_t y) {
          return y < 0 || y > 31 ? (y < 0 ? x : int64_t{0})
                                 : static_cast<int64_t>(static_cast<int32_t>(static_cast<uint32_t>(x) << y));
        });
        break;
      case ElementwiseMode::Lsr:
        // Assumption lsr-width: zeros are shifted in at the top of the element's own width.
        each([&](int64_t x, int64_t y) {
          const uint64_t shifted = y < 0 ? bitsOf(x, bits) : y >= bits ? 0 : bitsOf(x, bits) >> y;
          return wrapTo(static_cast<int64_t>(shifted), type);
        });
        break;
      case ElementwiseMode::Div:
        // Assumption div-corner-cases: x / 0 = 0; the most negative value / -1 saturates.
        each([](int64_t x, int64_t y) {
          if (y == 0) return int64_t{0};
          if (y == -1) return saturate64(-static_cast<Int128>(x));
          return x / y;
        });
        break;
      case ElementwiseMode::CmpEq:
        compare([](int64_t x, int64_t y) { return x == y; });
        break;
      case ElementwiseMode::CmpNe:
        compare([](int64_t x, int64_t y) { return x != y; });
        break;
      case ElementwiseMode::CmpGe:
        compare([](int64_t x, int64_t y) { return x >= y; });
        break;
      case ElementwiseMode::CmpGt:
        compare([](int64_t x, int64_t y) { return x > y; });
        break;
      case ElementwiseMode::And:
        each([](int64_t x, int64_t y) { return x & y; });
        break;
      case ElementwiseMode::Or:
        each([](int64_t x, int64_t y) { return x | y; });
        break;
      case ElementwiseMode::Xor:
        each([](int64_t x, int64_t y) { return x ^ y; });
        break;
      case ElementwiseMode::AndNot:
        each([](int64_t x, int64_t y) { return x & ~y; });
        break;
      default:
        std::copy_n(a, n, to);
        break;  // unary modes are handled elsewhere
    }
  }
};

bool scalesOperandsU85(ElementwiseMode mode) {
  switch (mode) {
    case ElementwiseMode::Add:
    case ElementwiseMode::Sub:
    case ElementwiseMode::Mul:
    case ElementwiseMode::Min:
    case ElementwiseMode::Max:
    case ElementwiseMode::Abs:
    case ElementwiseMode::CmpEq:
    case ElementwiseMode::CmpNe:
    case ElementwiseMode::CmpGe:
    case ElementwiseMode::CmpGt:
      return true;
    default:
      return false;
  }
}

bool knownMode(ElementwiseMode mode, const Architecture& npu) {
  const auto code = static_cast<int>(mode);
  if (code <= static_cast<int>(ElementwiseMode::Shl)) return true;
  if (!npu.bitwise) return false;
  switch (mode) {
    case ElementwiseMode::Lsr:
    case ElementwiseMode::Div:
    case ElementwiseMode::CmpEq:
    case ElementwiseMode::CmpNe:
    case ElementwiseMode::CmpGe:
    case ElementwiseMode::CmpGt:
    case ElementwiseMode::And:
    case ElementwiseMode::Or:
    case ElementwiseMode::Xor:
    case ElementwiseMode::Not:
    case ElementwiseMode::AndNot:
      return true;
    default:
      return false;
  }
}

}  // namespace

Outcome Executor::elementwise(const KernelOperation& op, AddressMap& memory) {
  const Elementwise& e = op.elementwise;
  const Architecture& npu = target_.architecture();
  if (!knownMode(e.mode, npu)) {
    return makeFault(FaultKind::Parse, "elementwise mode {} on {}", static_cast<int>(e.mode),
                     familyName(target_.family));
  }
  const bool binary = !isUnary(e.mode);
  if (binary && !op.ifm2) return makeFault(FaultKind::Parse, "binary elementwise operation without IFM2");
  const int bits = elementBytes(op.ifm.type) * 8;
  if (!npu.wideElements && (bits == 64 || (binary && elementBytes(op.ifm2->type) == 8)))
    return makeFault(FaultKind::Parse, "64-bit elementwise operation on {}", familyName(target_.family));
  const int64_t width = op.ofm.width, depth = op.ofm.depth;
  if (Outcome failed = checkLimits(width * depth * op.ofm.height, 0)) return failed;

  Operand first, second;
  if (Outcome failed = first.bind(op.ifm, e.ifmBroadcast, e.scalar, op, memory, chains_, "IFM"))
    return failed;
  if (binary) {
    if (Outcome failed = second.bind(*op.ifm2, e.ifm2Broadcast, e.scalar, op, memory, chains_, "IFM2"))
      return failed;
  }
  const bool swap = npu.reversesOperands && binary && e.reverseOperands;

  // Double rounding of U55/U65 operand scales: implied by the element size.
  const int preShift = bits == 16 ? 15 : 20;
  Scale scaleA = e.ifmScale, scaleB = e.ifm2Scale;
  const bool addSub = e.mode == ElementwiseMode::Add || e.mode == ElementwiseMode::Sub;
  const bool scaledU55 = !npu.operandScales && addSub && bits <= 16;
  scaleA.doubleRound = static_cast<uint8_t>(npu.operandScales ? scaleA.doubleRound : preShift);
  // Assumption compare-all-ones: true has all bits of the output type set.
  const int64_t truth = isSigned(op.ofm.type) ? -1 : elementMax(op.ofm.type);
  const Binary kernel{e.mode, op.ofmScale.rounding, op.ifm.type, truth};

  // Processes rows in pieces that stay in the cache, in per-thread buffers: rows may be as large as the map.
  constexpr int64_t kPiece = 32768;
  const int64_t columns = std::clamp<int64_t>(kPiece / depth, 1, width);
  const int64_t pieces = (width + columns - 1) / columns;
  const int64_t grain = std::max<int64_t>(1, kPiece / (columns * depth));
  forRange(op.ofm.height * pieces, grain, [&](int64_t begin, int64_t end) {
    thread_local std::vector<int64_t> a, b, acc, scratch;
    thread_local std::vector<std::byte> out;
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t y = piece / pieces, x0 = piece % pieces * columns, x1 = std::min(x0 + columns, width);
      const int64_t n = (x1 - x0) * depth;
      for (std::vector<int64_t>* values : {&a, &b, &acc}) values->resize(static_cast<size_t>(n));
      (swap ? second : first).read(y, x0, x1, scratch, a.data());
      if (binary) (swap ? first : second).read(y, x0, x1, scratch, b.data());
      if (scaledU55) {
        switch (e.operandScaling) {
          case OperandScaling::Both16:
            for (int64_t i = 0; i < n; ++i) {
              const auto k = static_cast<size_t>(i);
              a[k] *= e.ifmScale.multiplier & 0xffff;
              b[k] *= e.ifm2Scale.multiplier & 0xffff;
            }
            break;
          case OperandScaling::OperandA32:
            scaleRow(scaleA, n, a.data());
            for (int64_t& v : b) v *= int64_t{1} << (preShift - 1);
            break;
          case OperandScaling::OperandB32:
            scaleRow(scaleA, n, b.data());
            for (int64_t& v : a) v *= int64_t{1} << (preShift - 1);
            break;
        }
      } else if (npu.operandScales && scalesOperandsU85(e.mode)) {
        scaleRow(scaleA, n, a.data());
        if (binary) scaleRow(scaleB, n, b.data());
      }
      if (binary) {
        kernel.apply(a.data(), b.data(), n, acc.data());
      } else {
        switch (e.mode) {
          case ElementwiseMode::LRelu:
            for (int64_t i = 0; i < n; ++i) {
              const int64_t v = a[static_cast<size_t>(i)];
              if (npu.operandScales) {
                acc[static_cast<size_t>(i)] = scaleExact(v, v >= 0 ? scaleA : scaleB);
              } else {
                acc[static_cast<size_t>(i)] =
                    v >= 0 || !op.globalScale
                        ? v
                        : scaleExact(v, op.ofmScale.multiplier, op.ofmScale.shift & 63,
                                     roundingTerms(op.ofmScale.rounding, op.ofmScale.shift & 63, 0));
              }
            }
            break;
          case ElementwiseMode::Abs:
            for (int64_t i = 0; i < n; ++i) {
              const int64_t v = a[static_cast<size_t>(i)];
              acc[static_cast<size_t>(i)] = v < 0 ? wrapSub(0, v) : v;
            }
            break;
          case ElementwiseMode::Clz:
            for (int64_t i = 0; i < n; ++i)
              acc[static_cast<size_t>(i)] = countLeadingZeros(a[static_cast<size_t>(i)]);
            break;
          default:  // Not
            for (int64_t i = 0; i < n; ++i)
              acc[static_cast<size_t>(i)] = wrapTo(~a[static_cast<size_t>(i)], op.ifm.type);
            break;
        }
      }
      emit(op, y * width + x0, x1 - x0, acc.data(), out);
    }
  });
  return std::nullopt;
}

}  // namespace carina::npu::model
