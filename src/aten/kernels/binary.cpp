// SPDX-License-Identifier: Apache-2.0
// Pointwise operators with two operands, the second of which may be a number: add, mul, div, pow,
// comparisons, bit logic.
#include <concepts>

#include "aten/kernels/broadcast.hpp"
#include "aten/kernels/cast.hpp"
#include "aten/kernels/dispatch.hpp"
#include "aten/kernels/kernel.hpp"
#include "aten/kernels/number.hpp"
#include "aten/kernels/numeric.hpp"
#include "aten/promotion.hpp"

namespace carina::aten {
namespace {

/// out[i] = f(left[i], right[i]) for n contiguous elements of one type; a predicate writes bytes 0 and 1. `f`
/// points to the functor; `out` may be `left`. One loop per functor and type: operands that are not
/// contiguous are copied first.
using RowLoop = void (*)(const void* f, const void* left, const void* right, void* out, int64_t n);

template <typename F, typename T>
void runRow(const void* f, const void* left, const void* right, void* out, int64_t n) {
  using R = std::conditional_t<std::is_same_v<std::invoke_result_t<F, T, T>, bool>, uint8_t, T>;
  const F compute = *static_cast<const F*>(f);
  const T* x = static_cast<const T*>(left);
  const T* y = static_cast<const T*>(right);
  R* r = static_cast<R*>(out);
  for (int64_t i = 0; i < n; ++i) r[i] = static_cast<R>(compute(x[i], y[i]));
}

struct TypedLoop {
  RowLoop run = nullptr;  // null if the functor does not accept the type
  DType result = DType::Bool;
};

template <typename F>
TypedLoop loopOf(DType dtype) {
  TypedLoop loop;
  static_cast<void>(forNumber(
      dtype,
      [&](auto tag) -> Status {
        using T = decltype(tag);
        if constexpr (std::is_invocable_v<F, T, T>)
          loop = {runRow<F, T>, std::is_same_v<std::invoke_result_t<F, T, T>, bool> ? DType::Bool : dtype};
        return {};
      },
      true));
  return loop;
}

/// Copies elements of an operand at a distance of `step` into a contiguous row.
template <typename T>
void gatherRow(const void* first, int64_t step, int64_t n, void* row) {
  const T* from = static_cast<const T*>(first);
  T* to = static_cast<T*>(row);
  if (step == 0) {
    std::fill_n(to, n, *from);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * step];
  }
}

/// Runs the loop over two operands of one type that are broadcast to `shape`.
void applyBroadcast(const Tensor& a, const Tensor& b, const Shape& shape, Tensor& result, RowLoop rowLoop,
                    const void* f) {
  constexpr int64_t kChunk = 512;  // elements; two rows of this length stay in the first-level cache
  const auto size = static_cast<int64_t>(dtypeSize(a.dtype())),
             resultSize = static_cast<int64_t>(dtypeSize(result.dtype()));
  const std::array<const std::byte*, 2> base{a.bytes().data(), b.bytes().data()};
  std::byte* out = result.mutableBytes().data();
  alignas(64) std::array<std::array<std::byte, kChunk * 8>, 2> gathered;
  const BroadcastLoop<2> loop(shape,
                              {broadcastStrides(a.shape(), shape), broadcastStrides(b.shape(), shape)});
  loop.run(
      [&](int64_t first, int64_t n, const std::array<int64_t, 2>& at, const std::array<int64_t, 2>& step) {
        const int64_t chunk = step[0] == 1 && step[1] == 1 ? n : kChunk;
        for (int64_t begin = 0; begin < n; begin += chunk) {
          const int64_t count = std::min(chunk, n - begin);
          std::array<const std::byte*, 2> rows{};
          for (size_t k = 0; k < 2; ++k) {
            rows[k] = base[k] + (at[k] + begin * step[k]) * size;
            if (step[k] == 1) continue;
            if (step[k] != 0 || begin == 0)  // a single value is spread over the row only once
              static_cast<void>(forSize(a.dtype(), [&](auto tag) -> Status {
                gatherRow<decltype(tag)>(rows[k], step[k], count, gathered[k].data());
                return {};
              }));
            rows[k] = gathered[k].data();
          }
          rowLoop(f, rows[0], rows[1], out + (first + begin) * resultSize, count);
        }
      });
}

/// The two operands in the common type. Numbers become zero-dimensional tensors.
struct Pair {
  Tensor left, right;
  DType dtype = DType::Float32;
};

/// Promotion uses the types of the call, so that half-precision nodes promote as float32.
Result<Pair> commonOperands(const Call& call, const ir::Attribute& number, bool numberFirst, bool floatOnly) {
  Promotion promotion;
  for (size_t i = 0; i < call.numOperands(); ++i)
    promotion.add(ir::Type{call.operand(i).dtype(), call.operand(i).shape()});
  promotion.add(number);
  CARINA_TRY(DType dtype, promotion.type());
  if (floatOnly) dtype = floatTypeOf(dtype);
  const bool withNumber = call.numOperands() == 1;
  const Tensor tensor = castTo(call.operand(0), dtype);
  const Tensor other = withNumber ? numberTensor(number, dtype) : castTo(call.operand(1), dtype);
  return Pair{numberFirst ? other : tensor, numberFirst ? tensor : other, dtype};
}

struct BinaryTraits {
  bool floatOnly = false;   // integers are computed as float32
  bool zeroDivides = true;  // false: an integer divisor of 0 is an error
};

bool hasZero(const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.numElements(); ++i) {
    if (tensor.integerAt(i) == 0) return true;
  }
  return false;
}

/// A pointwise operator with two operands: its function, and the types it is defined on.
struct BinaryOperator {
  ir::Attribute number;  // replaces an operand; absent if both are tensors
  bool numberFirst = false;
  BinaryTraits traits;
  TypedLoop (*loopOf)(DType) = nullptr;
  std::shared_ptr<const void> f;
};

/// Float tensors of one type and shape, the performance-critical case: in place if this is the first
/// operand's last use.
bool runSameShape(Call& call, const BinaryOperator& op) {
  const ir::Type& type = call.type();
  if (call.numOperands() != 2 || !isFloat(type.dtype)) return false;
  for (size_t i : {0u, 1u}) {
    if (call.operand(i).dtype() != type.dtype || call.operand(i).shape() != type.shape) return false;
  }
  const TypedLoop loop = op.loopOf(type.dtype);
  if (!loop.run || loop.result != type.dtype) return false;
  const std::byte* x = call.operand(0).bytes().data();
  const std::byte* y = call.operand(1).bytes().data();
  const int64_t n = call.operand(0).numElements();
  Tensor& result = x == y ? call.allocate() : call.reuseOrAllocate(0);
  loop.run(op.f.get(), x, y, result.mutableBytes().data(), n);
  return true;
}

Status runBinary(Call& call, const BinaryOperator& op) {
  if (runSameShape(call, op)) return {};
  CARINA_TRY(Pair pair, commonOperands(call, op.number, op.numberFirst, op.traits.floatOnly));
  if (!op.traits.zeroDivides && isInteger(pair.dtype) && hasZero(pair.right))
    return fail(Code::NoResult, "integer division by zero");
  const TypedLoop loop = op.loopOf(pair.dtype);
  if (!loop.run || loop.result != call.type().dtype) return unsupportedType(pair.dtype);
  Tensor& result = call.allocate();
  applyBroadcast(pair.left, pair.right, call.type().shape, result, loop.run, op.f.get());
  if (pair.dtype == DType::Bool) {
    for (uint8_t& truth : result.mutableAs<uint8_t>()) truth = static_cast<uint8_t>(truth != 0);
  }
  return {};
}

template <typename F>
Kernel binaryKernel(ir::Attribute number, bool numberFirst, BinaryTraits traits, F f) {
  return [op = BinaryOperator{std::move(number), numberFirst, traits, loopOf<F>,
                              std::make_shared<const F>(std::move(f))}](Call& call) {
    return runBinary(call, op);
  };
}

/// The number in the second (or, for pow.Scalar, first) position; absent if both are tensors.
ir::Attribute otherNumber(const ir::Node& node) {
  const Arguments a(node);
  for (std::string_view name : {"other", "exponent", "self"}) {
    if (a.given(name)) return a.at(name);
  }
  return {};
}

/// a + alpha * b with alpha in the computation type; sign -1 subtracts, reversed swaps a and b.
template <int kSign, bool kReversed>
Result<Kernel> prepareAdd(const ir::Node& node) {
  const ir::Attribute alpha = Arguments(node).at("alpha");
  const double realAlpha = std::holds_alternative<std::monostate>(alpha) ? 1.0 : ir::scalarReal(alpha);
  const int64_t intAlpha = std::holds_alternative<std::monostate>(alpha) ? 1 : ir::scalarInt(alpha);
  const bool unit = realAlpha == 1.0;
  const auto compute = [=](auto a, auto b) {
    using T = decltype(a);
    T scale;
    if constexpr (std::is_floating_point_v<T>) {
      scale = static_cast<T>(realAlpha);
    } else {
      scale = static_cast<T>(intAlpha);
    }
    const T x = kReversed ? b : a, y = kReversed ? a : b;
    const T scaled = wrapMul(scale, y);
    return static_cast<T>(kSign > 0 ? wrapAdd(x, scaled) : wrapSub(x, scaled));
  };
  if (unit) {
    return binaryKernel(otherNumber(node), false, {}, [](auto a, auto b) {
      using T = decltype(a);
      const T x = kReversed ? b : a, y = kReversed ? a : b;
      return static_cast<T>(kSign > 0 ? wrapAdd(x, y) : wrapSub(x, y));
    });
  }
  return binaryKernel(otherNumber(node), false, {}, compute);
}

using Multiply = decltype([]<typename T>(T a, T b) -> T { return wrapMul(a, b); });
using Divide = decltype([]<std::floating_point T>(T a, T b) -> T { return a / b; });
using DivideTruncated = decltype([]<typename T>(T a, T b) -> T { return truncatedQuotient(a, b); });
using DivideFloored = decltype([]<typename T>(T a, T b) -> T { return floorQuotient(a, b); });
using Maximum = decltype([]<typename T>(T a, T b) -> T { return maximumOf(a, b); });
using Minimum = decltype([]<typename T>(T a, T b) -> T { return minimumOf(a, b); });
using FMax = decltype([]<typename T>(T a, T b) -> T { return isNan(a) || (!isNan(b) && b > a) ? b : a; });
using FMin = decltype([]<typename T>(T a, T b) -> T { return isNan(a) || (!isNan(b) && b < a) ? b : a; });
using Remainder = decltype([]<typename T>(T a, T b) -> T { return floorRemainder(a, b); });
using FMod = decltype([]<typename T>(T a, T b) -> T { return truncatedRemainder(a, b); });
using Power = decltype([]<typename T>(T a, T b) -> T { return power(a, b); });
using BitAnd = decltype([]<std::integral T>(T a, T b) -> T { return static_cast<T>(a & b); });
using BitOr = decltype([]<std::integral T>(T a, T b) -> T { return static_cast<T>(a | b); });
using BitXor = decltype([]<std::integral T>(T a, T b) -> T { return static_cast<T>(a ^ b); });
using ShiftLeft = decltype([]<std::integral T>(T a, T b) -> T {
  if (b < T{0} || static_cast<uint64_t>(b) >= sizeof(T) * 8) return T{0};
  return static_cast<T>(static_cast<uint64_t>(static_cast<std::make_unsigned_t<T>>(a)) << b);
});
using ShiftRight = decltype([]<std::integral T>(T a, T b) -> T {
  if (b < T{0} || static_cast<uint64_t>(b) >= sizeof(T) * 8) return a < T{0} ? static_cast<T>(-1) : T{0};
  return static_cast<T>(a >> b);
});

using Equal = decltype([]<typename T>(T a, T b) -> bool { return a == b; });
using NotEqual = decltype([]<typename T>(T a, T b) -> bool { return a != b; });
using Less = decltype([]<typename T>(T a, T b) -> bool { return a < b; });
using LessEqual = decltype([]<typename T>(T a, T b) -> bool { return a <= b; });
using Greater = decltype([]<typename T>(T a, T b) -> bool { return a > b; });
using GreaterEqual = decltype([]<typename T>(T a, T b) -> bool { return a >= b; });

using LogicalAndOf = decltype([]<typename T>(T a, T b) -> bool { return a != T{0} && b != T{0}; });
using LogicalOrOf = decltype([]<typename T>(T a, T b) -> bool { return a != T{0} || b != T{0}; });
using LogicalXorOf = decltype([]<typename T>(T a, T b) -> bool { return (a != T{0}) != (b != T{0}); });

template <typename F>
Result<Kernel> prepare(const ir::Node& node) {
  return binaryKernel(otherNumber(node), node.opName() == "aten.pow.Scalar", {}, F{});
}
template <typename F>
Result<Kernel> prepareFloat(const ir::Node& node) {
  BinaryTraits traits;
  traits.floatOnly = true;
  return binaryKernel(otherNumber(node), false, traits, F{});
}
template <typename F>
Result<Kernel> prepareDivision(const ir::Node& node) {
  BinaryTraits traits;
  traits.zeroDivides = false;
  return binaryKernel(otherNumber(node), false, traits, F{});
}
Result<Kernel> prepareDivMode(const ir::Node& node) {
  const Arguments a(node);
  if (!a.given("rounding_mode")) return prepareFloat<Divide>(node);
  if (a.text("rounding_mode") == "trunc") return prepareDivision<DivideTruncated>(node);
  if (a.text("rounding_mode") == "floor") return prepareDivision<DivideFloored>(node);
  return fail(Code::UnsupportedForm, "rounding mode '{}' is not known", a.text("rounding_mode"));
}
using Atan2Of = decltype([]<std::floating_point T>(T a, T b) -> T { return std::atan2(a, b); });
using HypotOf = decltype([]<std::floating_point T>(T a, T b) -> T { return std::hypot(a, b); });
using CopysignOf = decltype([]<std::floating_point T>(T a, T b) -> T { return std::copysign(a, b); });
using XlogyOf = decltype([]<std::floating_point T>(T a, T b) -> T {
  return isNan(b) ? b : a == T{0} ? T{0} : a * std::log(b);
});
using LogaddexpOf = decltype([]<std::floating_point T>(T a, T b) -> T {
  const T high = maximumOf(a, b);
  if (std::isinf(high) && a == b) return high;
  return high + std::log1p(std::exp(-std::abs(a - b)));
});

using Logaddexp2Of = decltype([]<std::floating_point T>(T a, T b) -> T {
  const T high = maximumOf(a, b);
  if (std::isinf(high) && a == b) return high;
  return high + std::log1p(std::exp2(-std::abs(a - b))) * static_cast<T>(1.4426950408889634074);
});
using NextafterOf = decltype([]<std::floating_point T>(T a, T b) -> T { return std::nextafter(a, b); });
using HeavisideOf = decltype([]<typename T>(T a, T b) -> T {
  return a == T{0} ? b : isNan(a) ? a : a > T{0} ? T{1} : T{0};
});

/// |a - b| <= atol + rtol * |b| for finite values, equality for others.
Result<Kernel> prepareIsclose(const ir::Node& node) {
  const Arguments arguments(node);
  const double rtol = arguments.real("rtol", 1e-5), atol = arguments.real("atol", 1e-8);
  const bool equalNan = arguments.boolean("equal_nan");
  return binaryKernel({}, false, {}, [=](auto a, auto b) {
    const auto x = static_cast<double>(a), y = static_cast<double>(b);
    if (a == b || (equalNan && isNan(a) && isNan(b))) return true;
    return std::isfinite(x) && std::isfinite(y) && std::abs(x - y) <= atol + rtol * std::abs(y);
  });
}

constexpr KernelEntry kBinaryKernels[] = {
    {"aten.add.Tensor", prepareAdd<1, false>},
    {"aten.add.Scalar", prepareAdd<1, false>},
    {"aten.sub.Tensor", prepareAdd<-1, false>},
    {"aten.sub.Scalar", prepareAdd<-1, false>},
    {"aten.rsub.Tensor", prepareAdd<-1, true>},
    {"aten.rsub.Scalar", prepareAdd<-1, true>},
    {"aten.mul.Tensor", prepare<Multiply>},
    {"aten.mul.Scalar", prepare<Multiply>},
    {"aten.div.Tensor", prepareFloat<Divide>},
    {"aten.div.Scalar", prepareFloat<Divide>},
    {"aten.div.Tensor_mode", prepareDivMode},
    {"aten.div.Scalar_mode", prepareDivMode},
    {"aten.floor_divide.default", prepareDivision<DivideFloored>},
    {"aten.floor_divide.Scalar", prepareDivision<DivideFloored>},
    {"aten.remainder.Tensor", prepareDivision<Remainder>},
    {"aten.remainder.Scalar", prepareDivision<Remainder>},
    {"aten.fmod.Tensor", prepareDivision<FMod>},
    {"aten.fmod.Scalar", prepareDivision<FMod>},
    {"aten.pow.Tensor_Tensor", prepare<Power>},
    {"aten.pow.Tensor_Scalar", prepare<Power>},
    {"aten.pow.Scalar", prepare<Power>},
    {"aten.maximum.default", prepare<Maximum>},
    {"aten.minimum.default", prepare<Minimum>},
    {"aten.fmax.default", prepare<FMax>},
    {"aten.fmin.default", prepare<FMin>},
    {"aten.atan2.default", prepareFloat<Atan2Of>},
    {"aten.hypot.default", prepareFloat<HypotOf>},
    {"aten.copysign.Tensor", prepareFloat<CopysignOf>},
    {"aten.copysign.Scalar", prepareFloat<CopysignOf>},
    {"aten.xlogy.Tensor", prepareFloat<XlogyOf>},
    {"aten.logaddexp2.default", prepareFloat<Logaddexp2Of>},
    {"aten.nextafter.default", prepareFloat<NextafterOf>},
    {"aten.heaviside.default", prepare<HeavisideOf>},
    {"aten.isclose.default", prepareIsclose},
    {"aten.logaddexp.default", prepareFloat<LogaddexpOf>},
    {"aten.bitwise_and.Tensor", prepare<BitAnd>},
    {"aten.bitwise_and.Scalar", prepare<BitAnd>},
    {"aten.bitwise_or.Tensor", prepare<BitOr>},
    {"aten.bitwise_or.Scalar", prepare<BitOr>},
    {"aten.bitwise_xor.Tensor", prepare<BitXor>},
    {"aten.bitwise_xor.Scalar", prepare<BitXor>},
    {"aten.bitwise_left_shift.Tensor", prepare<ShiftLeft>},
    {"aten.bitwise_left_shift.Tensor_Scalar", prepare<ShiftLeft>},
    {"aten.bitwise_right_shift.Tensor", prepare<ShiftRight>},
    {"aten.bitwise_right_shift.Tensor_Scalar", prepare<ShiftRight>},
    {"aten.eq.Tensor", prepare<Equal>},
    {"aten.eq.Scalar", prepare<Equal>},
    {"aten.ne.Tensor", prepare<NotEqual>},
    {"aten.ne.Scalar", prepare<NotEqual>},
    {"aten.lt.Tensor", prepare<Less>},
    {"aten.lt.Scalar", prepare<Less>},
    {"aten.le.Tensor", prepare<LessEqual>},
    {"aten.le.Scalar", prepare<LessEqual>},
    {"aten.gt.Tensor", prepare<Greater>},
    {"aten.gt.Scalar", prepare<Greater>},
    {"aten.ge.Tensor", prepare<GreaterEqual>},
    {"aten.ge.Scalar", prepare<GreaterEqual>},
    {"aten.logical_and.default", prepare<LogicalAndOf>},
    {"aten.logical_or.default", prepare<LogicalOrOf>},
    {"aten.logical_xor.default", prepare<LogicalXorOf>},
};

}  // namespace

std::span<const KernelEntry> binaryKernels() {
  return kBinaryKernels;
}

}  // namespace carina::aten
