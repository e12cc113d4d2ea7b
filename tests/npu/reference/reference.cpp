// SPDX-License-Identifier: Apache-2.0
// The simple interpreter (reference.hpp). Computes everything with 128-bit integers, one output element at a
// time.
#include "npu/reference/reference.hpp"

#include <cstdlib>

namespace carina::test::reference {
namespace {

using npu::ElementType;
__extension__ using Wide = __int128;

bool isSignedType(ElementType t) {
  return t == ElementType::Int8 || t == ElementType::Int16 || t == ElementType::Int32 ||
         t == ElementType::Int64;
}
int bitsOf(ElementType t) {
  if (t == ElementType::Int8 || t == ElementType::UInt8) return 8;
  if (t == ElementType::Int16 || t == ElementType::UInt16) return 16;
  return t == ElementType::Int64 ? 64 : 32;
}
Wide power(int n) {
  return Wide{1} << n;
}
Wide lowest(ElementType t) {
  return isSignedType(t) ? -power(bitsOf(t) - 1) : Wide{0};
}
Wide highest(ElementType t) {
  return isSignedType(t) ? power(bitsOf(t) - 1) - 1 : power(bitsOf(t)) - 1;
}
Wide limit(Wide v, Wide low, Wide high) {
  if (v > high) return high;
  if (v < low) return low;
  return v;
}
/// Quotient rounded down.
Wide floorDivide(Wide a, Wide b) {
  Wide q = a / b;
  if (q * b > a) --q;
  return q;
}

/// round(v * multiplier / 2^shift) as the register description defines each mode.
Wide rescale(Wide v, Wide multiplier, int shift, npu::Rounding mode, int doubleRound) {
  const Wide product = v * multiplier, divisor = power(shift);
  Wide half = shift > 0 ? divisor / 2 : Wide{0};
  const bool twice = shift > 31 - doubleRound;
  const Wide nudge = twice ? power(30 - doubleRound) : Wide{0};
  switch (mode) {
    case npu::Rounding::DoubleSymmetric:
      half += v < 0 ? -nudge : nudge;
      break;
    case npu::Rounding::Natural:
      break;
    case npu::Rounding::DoubleAsymmetric:
      half += nudge;
      break;
    case npu::Rounding::Symmetric:
      if (v < 0 && shift > 0) half -= 1;
      break;
    case npu::Rounding::TruncateToZero:
      half = v < 0 ? divisor - 1 : Wide{0};
      break;
    case npu::Rounding::TruncateToLower:
      half = 0;
      break;
  }
  return floorDivide(product + half, divisor);
}

struct Place {
  size_t region;
  uint64_t offset;
};

Place placeOf(const npu::FeatureMap& map, int y, int x, int c) {
  int tile;
  if (x < map.width0) {
    tile = y < map.height0 ? 0 : 2;
    if (tile == 2) y -= map.height0;
  } else {
    x -= map.width0;
    tile = y < map.height1 ? 1 : 3;
    if (tile == 3) y -= map.height1;
  }
  const int size = bitsOf(map.type) / 8;
  int64_t offset =
      static_cast<int64_t>(map.base[static_cast<size_t>(tile)]) + y * map.strideY + x * map.strideX;
  if (map.layout == npu::Layout::NHCWB16) {
    offset += (c / 16) * map.strideC + (c % 16) * size;
  } else {
    offset += c * size;
  }
  return {map.region, static_cast<uint64_t>(offset)};
}

Wide load(const Machine& machine, const npu::FeatureMap& map, int y, int x, int c) {
  const Place place = placeOf(map, y, x, c);
  uint64_t raw = 0;
  for (int i = bitsOf(map.type) / 8 - 1; i >= 0; --i) {
    raw = raw << 8 | machine.regions.at(place.region).at(place.offset + static_cast<uint64_t>(i));
  }
  Wide v = raw;
  if (isSignedType(map.type) && v >= power(bitsOf(map.type) - 1)) v -= power(bitsOf(map.type));
  return v;
}

void store(Machine& machine, const npu::FeatureMap& map, int y, int x, int c, Wide v) {
  const Place place = placeOf(map, y, x, c);
  auto raw = static_cast<uint64_t>(v);
  for (int i = 0; i < bitsOf(map.type) / 8; ++i, raw >>= 8) {
    machine.regions.at(place.region).at(place.offset + static_cast<uint64_t>(i)) = static_cast<uint8_t>(raw);
  }
}

class Interpreter {
 public:
  Interpreter(Machine& machine, const npu::KernelOperation& op, const Constants& constants)
      : machine_(machine), op_(op), constants_(constants), u85_(machine.target->family == npu::Family::U85) {}

  void run() {
    // Computes all results before storing any: an operation may overwrite its own input.
    const int h = op_.ofm.height, w = op_.ofm.width, d = op_.ofm.depth;
    std::vector<Wide> results;
    for (int y = 0; y < h; ++y) {
      for (int x = 0; x < w; ++x) {
        for (int c = 0; c < d; ++c) results.push_back(finish(accumulate(y, x, c), c));
      }
    }
    size_t i = 0;
    for (int y = 0; y < h; ++y) {
      for (int x = 0; x < w; ++x) {
        for (int c = 0; c < d; ++c) put(y, x, c, results[i++]);
      }
    }
  }

 private:
  /// Input element in upscaled coordinates, zero point subtracted; `inside` is false for padding.
  Wide input(int y, int x, int c, bool& inside) const {
    inside = y >= 0 && x >= 0 && y < op_.ifmHeight() && x < op_.ifmWidth();
    if (!inside) return 0;
    if (op_.upscale == npu::Upscale::None) return load(machine_, op_.ifm, y, x, c) - op_.ifm.zeroPoint;
    if (op_.upscale == npu::Upscale::Zeros && (y % 2 != 0 || x % 2 != 0)) return 0;
    return load(machine_, op_.ifm, y / 2, x / 2, c) - op_.ifm.zeroPoint;
  }

  Wide accumulate(int y, int x, int c) {
    switch (op_.kind) {
      case npu::OperationKind::Conv:
        return convolve(y, x, c);
      case npu::OperationKind::Depthwise:
        return depthwise(y, x, c);
      case npu::OperationKind::Pool:
        return pool(y, x, c);
      case npu::OperationKind::Elementwise:
        return elementwise(y, x, c);
      case npu::OperationKind::Resize:
        return resize(y, x, c);
    }
    return 0;
  }

  Wide convolve(int y, int x, int o) const {
    const npu::Kernel& k = op_.kernel;
    Wide sum = 0;
    for (int ky = 0; ky < k.height; ++ky) {
      for (int kx = 0; kx < k.width; ++kx) {
        for (int i = 0; i < op_.ifm.depth; ++i) {
          bool inside;
          const Wide v = input(y * k.strideY - op_.padding.top + ky * k.dilationY,
                               x * k.strideX - op_.padding.left + kx * k.dilationX, i, inside);
          Wide weight;
          if (op_.weightsFromIfm2) {
            weight = load(machine_, *op_.ifm2, 0, o, i) - op_.ifm2->zeroPoint;
          } else {
            weight =
                constants_
                    .weights[static_cast<size_t>(((o * k.height + ky) * k.width + kx) * op_.ifm.depth + i)];
          }
          sum += v * weight;
        }
      }
    }
    return sum;
  }

  Wide depthwise(int y, int x, int c) const {
    const npu::Kernel& k = op_.kernel;
    Wide sum = 0;
    for (int ky = 0; ky < k.height; ++ky) {
      for (int kx = 0; kx < k.width; ++kx) {
        bool inside;
        const Wide v = input(y * k.strideY - op_.padding.top + ky * k.dilationY,
                             x * k.strideX - op_.padding.left + kx * k.dilationX, c, inside);
        sum += v * constants_.weights[static_cast<size_t>((ky * k.width + kx) * op_.ofm.depth + c)];
      }
    }
    return sum;
  }

  Wide pool(int y, int x, int c) const {
    const npu::Kernel& k = op_.kernel;
    if (op_.pool == npu::PoolMode::ReduceSum) {
      Wide sum = 0;
      for (int i = 0; i < op_.ifm.depth; ++i) sum += load(machine_, op_.ifm, y, x, i) - op_.ifm.zeroPoint;
      return sum;
    }
    Wide sum = 0, largest = 0, smallest = 0, valid = 0;
    int best = 0;
    for (int ky = 0; ky < k.height; ++ky) {
      for (int kx = 0; kx < k.width; ++kx) {
        bool inside;
        const Wide v = input(y * k.strideY - op_.padding.top + ky * k.dilationY,
                             x * k.strideX - op_.padding.left + kx * k.dilationX, c, inside);
        if (!inside) continue;
        if (valid == 0 || v > largest) {
          largest = v;
          best = op_.pool == npu::PoolMode::ArgMaxX ? kx : ky;
        }
        if (valid == 0 || v < smallest) smallest = v;
        sum += v;
        ++valid;
      }
    }
    switch (op_.pool) {
      case npu::PoolMode::Max:
        return largest;
      case npu::PoolMode::Min:
        return smallest;
      case npu::PoolMode::ArgMaxX:
      case npu::PoolMode::ArgMaxY:
        return Wide{best} * 65536 + (largest < 0 ? largest + 65536 : largest);
      case npu::PoolMode::Average:
        if (valid == 0 || (!u85_ && op_.globalScale && !op_.padding.any())) return sum;
        return divide(sum, valid);
      default:
        return sum;
    }
  }

  /// Division by n, rounding half away from zero.
  static Wide divide(Wide sum, Wide n) {
    const Wide magnitude = sum < 0 ? -sum : sum;
    const Wide q = (2 * magnitude + n) / (2 * n);
    return sum < 0 ? -q : q;
  }

  Wide operand(const npu::FeatureMap& map, const npu::Broadcast& b, int y, int x, int c) const {
    Wide raw;
    if (b.scalar) {
      raw = op_.elementwise.scalar;
      if (bitsOf(map.type) < 32) {
        raw &= power(bitsOf(map.type)) - 1;
        if (isSignedType(map.type) && raw >= power(bitsOf(map.type) - 1)) raw -= power(bitsOf(map.type));
      }
    } else {
      raw = load(machine_, map, b.h ? 0 : y, b.w ? 0 : x, b.c ? 0 : c);
    }
    return raw - map.zeroPoint;
  }

  Wide elementwise(int y, int x, int c) const {
    const npu::Elementwise& e = op_.elementwise;
    using Mode = npu::ElementwiseMode;
    const bool unary = npu::isUnary(e.mode);
    Wide a = operand(op_.ifm, e.ifmBroadcast, y, x, c);
    Wide b = unary ? Wide{0} : operand(*op_.ifm2, e.ifm2Broadcast, y, x, c);
    if (!u85_ && !unary && e.reverseOperands) std::swap(a, b);
    const int bits = bitsOf(op_.ifm.type);
    const bool additive = e.mode == Mode::Add || e.mode == Mode::Sub;
    if (u85_) {
      const auto scaled = [](Wide v, const npu::Scale& s) {
        return rescale(v, s.multiplier, s.shift, s.rounding, s.doubleRound);
      };
      if (e.mode == Mode::LRelu) return a >= 0 ? scaled(a, e.ifmScale) : scaled(a, e.ifm2Scale);
      const bool arithmetic = additive || e.mode == Mode::Mul || e.mode == Mode::Min || e.mode == Mode::Max ||
                              e.mode == Mode::Abs || e.mode == Mode::CmpEq || e.mode == Mode::CmpNe ||
                              e.mode == Mode::CmpGe || e.mode == Mode::CmpGt;
      if (arithmetic) {
        a = scaled(a, e.ifmScale);
        if (!unary) b = scaled(b, e.ifm2Scale);
      }
    } else if (additive && bits < 32) {
      const int left = bits == 8 ? 20 : 15;
      if (e.operandScaling == npu::OperandScaling::Both16) {
        a *= e.ifmScale.multiplier % 65536;
        b *= e.ifm2Scale.multiplier % 65536;
      } else {
        Wide& scaledOne = e.operandScaling == npu::OperandScaling::OperandA32 ? a : b;
        Wide& other = e.operandScaling == npu::OperandScaling::OperandA32 ? b : a;
        scaledOne = rescale(scaledOne, e.ifmScale.multiplier, e.ifmScale.shift, e.ifmScale.rounding, left);
        other *= power(left - 1);
      }
    }
    const Wide yes = isSignedType(op_.ofm.type) ? Wide{-1} : highest(op_.ofm.type);
    switch (e.mode) {
      case Mode::Mul:
        return a * b;
      case Mode::Add:
        return a + b;
      case Mode::Sub:
        return a - b;
      case Mode::Min:
        return a < b ? a : b;
      case Mode::Max:
        return a > b ? a : b;
      case Mode::LRelu: {
        if (a >= 0 || !op_.globalScale) return a;
        return rescale(a, op_.ofmScale.multiplier, op_.ofmScale.shift, op_.ofmScale.rounding, 0);
      }
      case Mode::Abs:
        return a < 0 ? -a : a;
      case Mode::Clz: {
        int zeros = 0;
        while (zeros < 32 && (static_cast<uint32_t>(a) >> (31 - zeros) & 1u) == 0) ++zeros;
        return zeros;
      }
      case Mode::Shr: {
        npu::Rounding mode = op_.ofmScale.rounding;
        if (mode == npu::Rounding::DoubleSymmetric || mode == npu::Rounding::DoubleAsymmetric)
          mode = npu::Rounding::Natural;
        return rescale(a, 1, static_cast<int>(b), mode, 0);
      }
      case Mode::Shl:
        return static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint64_t>(a) << static_cast<int>(b)));
      case Mode::Lsr: {
        const Wide pattern = a < 0 ? a + power(bits) : a;
        Wide v = floorDivide(pattern, power(static_cast<int>(b)));
        if (isSignedType(op_.ifm.type) && v >= power(bits - 1)) v -= power(bits);
        return v;
      }
      case Mode::Div:
        return b == 0 ? Wide{0} : a / b;
      case Mode::CmpEq:
        return a == b ? yes : 0;
      case Mode::CmpNe:
        return a != b ? yes : 0;
      case Mode::CmpGe:
        return a >= b ? yes : 0;
      case Mode::CmpGt:
        return a > b ? yes : 0;
      case Mode::And:
        return a & b;
      case Mode::Or:
        return a | b;
      case Mode::Xor:
        return a ^ b;
      case Mode::Not:
        return isSignedType(op_.ifm.type) ? -a - 1 : highest(op_.ifm.type) - a;
      case Mode::AndNot:
        return a & ~b;
    }
    return 0;
  }

  Wide resize(int y, int x, int c) const {
    const auto tap = [](int index, const npu::ResizeAxis& axis, int size, int& low, int& high) {
      const Wide at = Wide{index} * axis.denominator + axis.offset;
      const Wide whole = floorDivide(at, axis.numerator);
      low = static_cast<int>(limit(whole, 0, size - 1));
      high = static_cast<int>(limit(whole + 1, 0, size - 1));
      return static_cast<int>(at - whole * axis.numerator);
    };
    int y0, y1, x0, x1;
    const int fy = tap(y, op_.resizeY, op_.ifm.height, y0, y1),
              fx = tap(x, op_.resizeX, op_.ifm.width, x0, x1);
    const int ny = op_.resizeY.numerator, nx = op_.resizeX.numerator;
    const auto at = [&](int yy, int xx) { return load(machine_, op_.ifm, yy, xx, c) - op_.ifm.zeroPoint; };
    Wide v;
    if (op_.resize == npu::ResizeMode::Nearest) {
      v = at(2 * fy >= ny ? y1 : y0, 2 * fx >= nx ? x1 : x0);
    } else if (op_.resize == npu::ResizeMode::Replicate) {
      v = at(y0, x0);
    } else {
      v = at(y0, x0) * (ny - fy) * (nx - fx) + at(y0, x1) * (ny - fy) * fx + at(y1, x0) * fy * (nx - fx) +
          at(y1, x1) * fy * fx;
    }
    return v * 65536;
  }

  Wide finish(Wide acc, int c) const {
    using Mode = npu::ElementwiseMode;
    const npu::Scale& s = op_.ofmScale;
    const int doubleRound = u85_ ? s.doubleRound : 0;
    const bool wideInput = bitsOf(op_.ifm.type) == 32;
    Wide v = acc;
    switch (op_.kind) {
      case npu::OperationKind::Conv:
      case npu::OperationKind::Depthwise:
      case npu::OperationKind::Pool:
        if (op_.globalScale) {
          v = rescale(acc, s.multiplier, s.shift, s.rounding, doubleRound);
        } else if (!constants_.records.empty()) {
          const Record& r = constants_.records[static_cast<size_t>(c)];
          v = rescale(acc + r.bias, r.multiplier, r.shift, s.rounding, doubleRound);
        }
        break;
      case npu::OperationKind::Elementwise: {
        const Mode mode = op_.elementwise.mode;
        if (!op_.globalScale) break;
        if (u85_) {
          if (mode == Mode::Shr) break;
          const bool shiftOnly = mode == Mode::Mul && wideInput;
          v = rescale(acc, shiftOnly ? 1 : s.multiplier, s.shift, s.rounding, doubleRound);
        } else if (mode == Mode::Add || mode == Mode::Sub || mode == Mode::Mul || mode == Mode::Abs) {
          v = rescale(acc, wideInput ? 1 : s.multiplier, s.shift, s.rounding, 0);
        }
        break;
      }
      case npu::OperationKind::Resize:
        v = rescale(acc, s.multiplier, s.shift, s.rounding, doubleRound);
        break;
    }
    const npu::Activation& a = op_.activation;
    const ElementType type = op_.ofm.type;
    const bool table = a.table != npu::Table::None;
    const bool unclamped32 = !u85_ && bitsOf(type) == 32 && !table;
    if (!unclamped32) v += op_.ofm.zeroPoint;
    if (unclamped32) {
      v = limit(v, lowest(type), highest(type));
    } else if (u85_ && !a.clamp) {
      if (bitsOf(type) <= 16) {
        v &= power(bitsOf(type)) - 1;
        if (isSignedType(type) && v >= power(bitsOf(type) - 1)) v -= power(bitsOf(type));
      } else {
        v = limit(v, lowest(type), highest(type));
      }
    } else {
      Wide low = lowest(type), high = highest(type);
      if (!u85_ && a.clipRange == 3) low = -128, high = 127;
      if (a.table == npu::Table::Lut8To32 || a.table == npu::Table::Lut8To16) low = -128, high = 127;
      v = limit(limit(v, low, high), a.min, a.max);
    }
    if (table) v = lookUp(v);
    return v;
  }

  Wide entry(size_t at, int bytes, bool isSignedEntry) const {
    Wide v = 0;
    for (int i = bytes - 1; i >= 0; --i) v = v * 256 + machine_.table[at + static_cast<size_t>(i)];
    if (isSignedEntry && v >= power(bytes * 8 - 1)) v -= power(bytes * 8);
    return v;
  }

  Wide lookUp(Wide v) const {
    const size_t start = size_t{op_.activation.slot} * 256;
    const bool sign = isSignedType(op_.ofm.type);
    switch (op_.activation.table) {
      case npu::Table::Lut8:
        return entry(start + static_cast<size_t>(sign ? v + 128 : v), 1, sign);
      case npu::Table::Lut8To16:
        return entry(start + static_cast<size_t>(v + 128) * 2, 2, true);
      case npu::Table::Lut8To32:
        return entry(start + static_cast<size_t>(v + 128) * 4, 4, true);
      case npu::Table::Lut16: {
        const Wide i = floorDivide(v + 32768, 128), f = (v + 32768) - i * 128;
        const Wide base = entry(start + static_cast<size_t>(i) * 4, 2, true),
                   slope = entry(start + static_cast<size_t>(i) * 4 + 2, 2, true);
        return limit(base + floorDivide(slope * f + 64, 128), -32768, 32767);
      }
      default:
        std::abort();
    }
  }

  void put(int y, int x, int c, Wide v) {
    const int h = op_.ofm.height, w = op_.ofm.width, d = op_.ofm.depth;
    switch (op_.reverse) {
      case npu::Reverse::None:
        break;
      case npu::Reverse::H:
        y = h - 1 - y;
        break;
      case npu::Reverse::W:
        x = w - 1 - x;
        break;
      case npu::Reverse::C:
        c = d - 1 - c;
        break;
    }
    switch (op_.transpose) {
      case npu::Transpose::HWC:
        store(machine_, op_.ofm, y, x, c, v);
        break;
      case npu::Transpose::WHC:
        store(machine_, op_.ofm, x, y, c, v);
        break;
      case npu::Transpose::HCW:
        store(machine_, op_.ofm, y, c, x, v);
        break;
      case npu::Transpose::WCH:
        store(machine_, op_.ofm, x, c, y, v);
        break;
      case npu::Transpose::CHW:
        store(machine_, op_.ofm, c, y, x, v);
        break;
      case npu::Transpose::CWH:
        store(machine_, op_.ofm, c, x, y, v);
        break;
    }
  }

  Machine& machine_;
  const npu::KernelOperation& op_;
  const Constants& constants_;
  bool u85_;
};

}  // namespace

void execute(Machine& machine, const npu::KernelOperation& op, const Constants& constants) {
  Interpreter(machine, op, constants).run();
}

}  // namespace carina::test::reference
