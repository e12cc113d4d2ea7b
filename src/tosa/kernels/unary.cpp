// SPDX-License-Identifier: Apache-2.0
// Elementwise operators with one operand, and the lookup table.
#include <bit>
#include <cmath>
#include <limits>

#include "tosa/kernels/kernel.hpp"

namespace carina::tosa::kernels {
namespace {

template <typename T, typename R, typename F>
Tensor map1(DType dtype, const Tensor& input, F f) {
  Tensor out = Tensor::uninitialized(dtype, input.shape());
  const T* x = input.as<T>().data();
  R* y = out.mutableAs<R>().data();
  for (int64_t i = 0; i < out.numElements(); ++i) y[i] = f(x[i]);
  return out;
}

/// Computes in double precision, rounded once to float32 (and once more to a 16-bit type).
template <typename F>
Results mapFloat(const ir::Node& node, const Tensor& input, F f) {
  Tensor out = map1<float, float>(DType::Float32, asFloat32(input),
                                  [f](float x) { return static_cast<float>(f(double{x})); });
  return one(roundedTo(node.result()->dtype(), out));
}

Results unaryFloat(const ir::Node& node, const Tensor& input) {
  switch (opId(&node)) {
    case OpId::Abs:
      return mapFloat(node, input, [](double x) { return std::fabs(x); });
    case OpId::Ceil:
      return mapFloat(node, input, [](double x) { return std::ceil(x); });
    case OpId::Floor:
      return mapFloat(node, input, [](double x) { return std::floor(x); });
    case OpId::Exp:
      return mapFloat(node, input, [](double x) { return std::exp(x); });
    case OpId::Log:
      return mapFloat(node, input, [](double x) { return std::log(x); });
    case OpId::Sin:
      return mapFloat(node, input, [](double x) { return std::sin(x); });
    case OpId::Cos:
      return mapFloat(node, input, [](double x) { return std::cos(x); });
    case OpId::Erf:
      return mapFloat(node, input, [](double x) { return std::erf(x); });
    case OpId::Tanh:
      return mapFloat(node, input, [](double x) { return std::tanh(x); });
    case OpId::Sigmoid:
      return mapFloat(node, input, [](double x) { return 1.0 / (1.0 + std::exp(-x)); });
    case OpId::Reciprocal:
      return mapFloat(node, input, [](double x) { return 1.0 / x; });
    case OpId::Rsqrt:
      return mapFloat(node, input, [](double x) { return 1.0 / std::sqrt(x); });
    default:
      CARINA_UNREACHABLE("operator without float meaning");
  }
}

}  // namespace

Results unary(const ir::Node& node, Operands operands) {
  const Tensor& input = operands[0];
  const DType dtype = input.dtype();
  if (isFloat(dtype)) return unaryFloat(node, input);
  switch (opId(&node)) {
    case OpId::BitwiseNot:
      return one(withIntegerType(dtype, [&](auto zero) {
        using T = decltype(zero);
        return map1<T, T>(dtype, input, [](T x) { return static_cast<T>(~x); });
      }));
    case OpId::Clz:
      return one(map1<int32_t, int32_t>(
          dtype, input, [](int32_t x) { return std::countl_zero(static_cast<uint32_t>(x)); }));
    case OpId::Abs: {
      bool bad = false;
      Tensor out = map1<int32_t, int32_t>(dtype, input, [&](int32_t x) {
        bad |= x == INT32_MIN;
        return x == INT32_MIN ? x : std::abs(x);
      });
      if (bad) return unpredictable("the absolute value of -2^31 does not fit int32");
      return one(std::move(out));
    }
    default:
      CARINA_UNREACHABLE("operator without integer meaning");
  }
}

Results clamp(const ir::Node& node, Operands operands) {
  const auto op = ir::cast<Clamp>(&node);
  const DType dtype = operands[0].dtype();
  if (isFloat(dtype)) {
    const double low = ir::scalarReal(op.minVal()), high = ir::scalarReal(op.maxVal());
    const bool ignore = op.nanMode() == NanMode::IGNORE;
    return mapFloat(node, operands[0], [=](double x) {
      if (std::isnan(x)) return ignore ? low : x;
      return std::min(std::max(x, low), high);
    });
  }
  const int64_t low = ir::scalarInt(op.minVal()), high = ir::scalarInt(op.maxVal());
  return one(withIntegerType(dtype, [&](auto zero) {
    using T = decltype(zero);
    return map1<T, T>(dtype, operands[0],
                      [=](int64_t x) { return static_cast<T>(std::min(std::max(x, low), high)); });
  }));
}

Results negate(const ir::Node& node, Operands operands) {
  const DType dtype = operands[0].dtype();
  if (isFloat(dtype)) return mapFloat(node, operands[0], [](double x) { return -x; });
  const int64_t inputZero = operands[1].integerAt(0), outputZero = operands[2].integerAt(0);
  const int64_t low = integerMin(dtype), high = integerMax(dtype);
  return one(withIntegerType(dtype, [&](auto zero) {
    using T = decltype(zero);
    return map1<T, T>(dtype, operands[0], [=](int64_t x) {
      return static_cast<T>(std::min(std::max(-(x - inputZero) + outputZero, low), high));
    });
  }));
}

Results table(const ir::Node&, Operands operands) {
  if (operands[0].dtype() == DType::Int8) {
    const auto entries = operands[1].as<int8_t>();
    return one(map1<int8_t, int8_t>(DType::Int8, operands[0],
                                    [=](int8_t x) { return entries[static_cast<size_t>(x + 128)]; }));
  }
  // 16 bits: the upper 9 select a segment, the lower 7 interpolate; the result has 7 fractional bits.
  const auto entries = operands[1].as<int16_t>();
  bool bad = false;
  Tensor out = map1<int16_t, int32_t>(DType::Int32, operands[0], [&](int16_t x) {
    const auto index = static_cast<size_t>((x + 32768) >> 7);
    const int32_t fraction = x & 127, base = entries[index], slope = entries[index + 1] - base;
    bad |= slope < INT16_MIN || slope > INT16_MAX;
    return base * 128 + slope * fraction;
  });
  if (bad) return unpredictable("neighbouring table entries differ by more than 16 bits hold");
  return one(std::move(out));
}

}  // namespace carina::tosa::kernels
