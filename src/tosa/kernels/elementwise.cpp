// SPDX-License-Identifier: Apache-2.0
// Elementwise operators with two and three operands.
#include <cmath>
#include <limits>

#include "tosa/kernels/kernel.hpp"

namespace carina::tosa::kernels {
namespace {

__extension__ typedef __int128 Int128;

/// out[i] = f(a[i], b[i]) over the broadcast operands.
template <typename T, typename R, typename F>
Tensor map2(DType dtype, const Tensor& left, const Tensor& right, const Shape& shape, F f) {
  const Tensor a = broadcastTo(left, shape);
  Tensor out = Tensor::uninitialized(dtype, shape);
  const int64_t count = out.numElements();
  const T* x = a.as<T>().data();
  R* z = out.mutableAs<R>().data();
  if (right.numElements() == 1) {  // a single value: what depends on it is hoisted out of the loop
    const T y = right.as<T>()[0];
    for (int64_t i = 0; i < count; ++i) z[i] = f(x[i], y);
    return out;
  }
  const Tensor b = broadcastTo(right, shape);
  const T* y = b.as<T>().data();
  for (int64_t i = 0; i < count; ++i) z[i] = f(x[i], y[i]);
  return out;
}

bool fitsInt32(int64_t value) {
  return value >= INT32_MIN && value <= INT32_MAX;
}

Results int32Arithmetic(const ir::Node& node, Operands in) {
  const Shape& shape = node.result()->shape();
  bool bad = false;
  const auto checked = [&bad](int64_t value) {
    bad |= !fitsInt32(value);
    return static_cast<int32_t>(value);
  };
  int32_t overflow = 0;  // the sign is set if a sum has an impossible sign
  const auto wrapped = [](uint32_t value) { return static_cast<int32_t>(value); };
  const auto map = [&](auto f) { return map2<int32_t, int32_t>(DType::Int32, in[0], in[1], shape, f); };
  Tensor out;
  switch (opId(&node)) {
    case OpId::Add:
      out = map([&](int32_t a, int32_t b) {
        const int32_t sum = wrapped(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
        overflow |= (a ^ sum) & (b ^ sum);
        return sum;
      });
      break;
    case OpId::Sub:
      out = map([&](int32_t a, int32_t b) {
        const int32_t difference = wrapped(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
        overflow |= (a ^ b) & (a ^ difference);
        return difference;
      });
      break;
    case OpId::Intdiv:
      out = map([&](int64_t a, int64_t b) {
        bad |= b == 0;
        return checked(b == 0 ? 0 : a / b);
      });
      break;
    case OpId::Maximum:
      out = map([](int32_t a, int32_t b) { return a > b ? a : b; });
      break;
    case OpId::Minimum:
      out = map([](int32_t a, int32_t b) { return a < b ? a : b; });
      break;
    default:
      CARINA_UNREACHABLE("operator without int32 arithmetic");
  }
  if (bad || overflow < 0) return unpredictable("{} overflows int32 or divides by zero", node.opName());
  return one(std::move(out));
}

Results multiplyIntegers(const ir::Node& node, Operands in) {
  const Shape& shape = node.result()->shape();
  const DType dtype = in[0].dtype();
  if (dtype == DType::Int8) {
    return one(
        map2<int8_t, int32_t>(DType::Int32, in[0], in[1], shape, [](int32_t a, int32_t b) { return a * b; }));
  }
  if (dtype == DType::Int16) {
    return one(map2<int16_t, int32_t>(DType::Int32, in[0], in[1], shape,
                                      [](int32_t a, int32_t b) { return a * b; }));
  }
  const auto shift = static_cast<int>(in[2].integerAt(0));
  if (shift == 0) {
    return one(map2<int32_t, int32_t>(DType::Int32, in[0], in[1], shape, [](int32_t a, int32_t b) {
      return static_cast<int32_t>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
    }));
  }
  bool bad = false;
  const Int128 round = Int128{1} << (shift - 1);
  Tensor out = map2<int32_t, int32_t>(DType::Int32, in[0], in[1], shape, [&](int32_t a, int32_t b) {
    const auto value = static_cast<int64_t>((static_cast<Int128>(a) * b + round) >> shift);
    bad |= !fitsInt32(value);
    return static_cast<int32_t>(value);
  });
  if (bad) return unpredictable("a product shifted by {} does not fit int32", shift);
  return one(std::move(out));
}

template <typename T>
Results bitwise(const ir::Node& node, Operands in) {
  using U = std::make_unsigned_t<T>;
  constexpr int kBits = std::numeric_limits<U>::digits;
  const Shape& shape = node.result()->shape();
  const auto map = [&](auto f) { return map2<T, T>(in[0].dtype(), in[0], in[1], shape, f); };
  bool bad = false;
  const auto amount = [&bad](T b) {
    const bool outside = b < 0 || b >= kBits;
    bad |= outside;
    return outside ? 0 : static_cast<int>(b);
  };
  Tensor out;
  switch (opId(&node)) {
    case OpId::BitwiseAnd:
      out = map([](T a, T b) { return static_cast<T>(a & b); });
      break;
    case OpId::BitwiseOr:
      out = map([](T a, T b) { return static_cast<T>(a | b); });
      break;
    case OpId::BitwiseXor:
      out = map([](T a, T b) { return static_cast<T>(a ^ b); });
      break;
    case OpId::LogicalLeftShift:
      out = map(
          [&](T a, T b) { return static_cast<T>(static_cast<uint64_t>(static_cast<U>(a)) << amount(b)); });
      break;
    case OpId::LogicalRightShift:
      out = map([&](T a, T b) { return static_cast<T>(static_cast<U>(a) >> amount(b)); });
      break;
    case OpId::ArithmeticRightShift: {
      const bool round = ir::cast<ArithmeticRightShift>(&node).round();
      out = map([&](T a, T b) {
        const int n = amount(b);
        const int64_t carry = round && n > 0 ? (static_cast<int64_t>(a) >> (n - 1)) & 1 : 0;
        return static_cast<T>((static_cast<int64_t>(a) >> n) + carry);
      });
      break;
    }
    default:
      CARINA_UNREACHABLE("operator without bitwise meaning");
  }
  if (bad) return unpredictable("a shift amount is outside 0..{}", kBits - 1);
  return one(std::move(out));
}

/// Maximum or minimum with the operator's treatment of NaN.
float extremum(float a, float b, bool maximum, NanMode mode) {
  if (std::isnan(a) || std::isnan(b)) {
    if (mode == NanMode::IGNORE) return std::isnan(a) ? b : a;
    return std::numeric_limits<float>::quiet_NaN();
  }
  return maximum ? std::max(a, b) : std::min(a, b);
}

Results floatArithmetic(const ir::Node& node, Operands in) {
  const Tensor a = asFloat32(in[0]), b = asFloat32(in[1]);
  const auto map = [&](auto f) {
    return one(roundedTo(node.result()->dtype(),
                         map2<float, float>(DType::Float32, a, b, node.result()->shape(), f)));
  };
  switch (opId(&node)) {
    case OpId::Add:
      return map([](float x, float y) { return x + y; });
    case OpId::Sub:
      return map([](float x, float y) { return x - y; });
    case OpId::Mul:
      return map([](float x, float y) { return x * y; });
    case OpId::Pow:
      return map([](float x, float y) { return static_cast<float>(std::pow(double{x}, double{y})); });
    case OpId::Maximum: {
      const NanMode mode = ir::cast<Maximum>(&node).nanMode();
      return map([mode](float x, float y) { return extremum(x, y, true, mode); });
    }
    case OpId::Minimum: {
      const NanMode mode = ir::cast<Minimum>(&node).nanMode();
      return map([mode](float x, float y) { return extremum(x, y, false, mode); });
    }
    default:
      CARINA_UNREACHABLE("operator without float arithmetic");
  }
}

template <typename T>
Tensor compareAs(const ir::Node& node, const Tensor& a, const Tensor& b) {
  const Shape& shape = node.result()->shape();
  switch (opId(&node)) {
    case OpId::Equal:
      return map2<T, uint8_t>(DType::Bool, a, b, shape, [](T x, T y) { return x == y; });
    case OpId::Greater:
      return map2<T, uint8_t>(DType::Bool, a, b, shape, [](T x, T y) { return x > y; });
    default:
      return map2<T, uint8_t>(DType::Bool, a, b, shape, [](T x, T y) { return x >= y; });
  }
}

}  // namespace

Results binary(const ir::Node& node, Operands operands) {
  const DType dtype = operands[0].dtype();
  if (isFloat(dtype)) return floatArithmetic(node, operands);
  switch (opId(&node)) {
    case OpId::Mul:
      return multiplyIntegers(node, operands);
    case OpId::BitwiseAnd:
    case OpId::BitwiseOr:
    case OpId::BitwiseXor:
    case OpId::LogicalLeftShift:
    case OpId::LogicalRightShift:
    case OpId::ArithmeticRightShift:
      return withIntegerType(dtype, [&](auto zero) { return bitwise<decltype(zero)>(node, operands); });
    default:
      return int32Arithmetic(node, operands);
  }
}

Results compare(const ir::Node& node, Operands operands) {
  if (isFloat(operands[0].dtype()))
    return one(compareAs<float>(node, asFloat32(operands[0]), asFloat32(operands[1])));
  return one(compareAs<int32_t>(node, operands[0], operands[1]));
}

Results logical(const ir::Node& node, Operands operands) {
  const Shape& shape = node.result()->shape();
  const Tensor& b = operands.size() > 1 ? operands[1] : operands[0];
  const auto map = [&](auto f) { return one(map2<uint8_t, uint8_t>(DType::Bool, operands[0], b, shape, f)); };
  switch (opId(&node)) {
    case OpId::LogicalAnd:
      return map([](uint8_t x, uint8_t y) { return static_cast<uint8_t>(x && y); });
    case OpId::LogicalOr:
      return map([](uint8_t x, uint8_t y) { return static_cast<uint8_t>(x || y); });
    case OpId::LogicalXor:
      return map([](uint8_t x, uint8_t y) { return static_cast<uint8_t>(!x != !y); });
    default:
      return map([](uint8_t x, uint8_t) { return static_cast<uint8_t>(!x); });
  }
}

Results select(const ir::Node& node, Operands operands) {
  const Shape& shape = node.result()->shape();
  const Tensor condition = broadcastTo(operands[0], shape);
  const Tensor a = broadcastTo(operands[1], shape), b = broadcastTo(operands[2], shape);
  Tensor out = resultTensor(node);
  const auto choose = [&](auto zero) {
    using T = decltype(zero);
    const auto c = condition.as<uint8_t>();
    const auto x = a.as<T>(), y = b.as<T>();
    const auto z = out.mutableAs<T>();
    for (size_t i = 0; i < z.size(); ++i) z[i] = c[i] ? x[i] : y[i];
  };
  switch (dtypeSize(out.dtype())) {
    case 1:
      choose(uint8_t{});
      break;
    case 2:
      choose(uint16_t{});
      break;
    case 4:
      choose(uint32_t{});
      break;
    default:
      choose(uint64_t{});
      break;
  }
  return one(std::move(out));
}

}  // namespace carina::tosa::kernels
