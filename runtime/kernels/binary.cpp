// SPDX-License-Identifier: Apache-2.0
// Arithmetic, comparison, logical and bitwise operators of two operands, tensors or numbers:
// (self, other[, alpha or mode], out).
#include <math.h>

#include "carina/kernels.hpp"
#include "functions.hpp"
#include "mathematics.hpp"

namespace carina::rt::kernels {
namespace {

Status pairOf(Call& call, uint32_t out, const Functions& functions, Result result,
              const Parameter* parameters = nullptr) {
  Operand operands[2] = {call.operand(0), call.operand(1)};
  Tensor* output = call.output(out);
  call.require(operands[0].tensor != nullptr || operands[1].tensor != nullptr, typesDiffer());
  if (!call.ok()) return call.status();
  // As in PyTorch, a number is converted to the type of an integer tensor that precedes it.
  const Tensor* self = operands[0].tensor;
  if (self != nullptr && operands[1].tensor == nullptr && self->type != ScalarType::Bool)
    operands[1].integer = wrapTo(self->type, operands[1].integer);
  return map(operands, 2, *output, functions, result, parameters);
}

bool addReals(const float* const* in, float* out, size_t count, const Parameter* alpha) {
  for (size_t i = 0; i < count; ++i) out[i] = in[0][i] + alpha->real * in[1][i];
  return true;
}
bool addIntegers(const int64_t* const* in, int64_t* out, size_t count, const Parameter* alpha) {
  for (size_t i = 0; i < count; ++i) out[i] = wrapAdd(in[0][i], wrapMul(alpha->integer, in[1][i]));
  return true;
}
bool rsubReals(const float* const* in, float* out, size_t count, const Parameter* alpha) {
  for (size_t i = 0; i < count; ++i) out[i] = in[1][i] - alpha->real * in[0][i];
  return true;
}
bool rsubIntegers(const int64_t* const* in, int64_t* out, size_t count, const Parameter* alpha) {
  for (size_t i = 0; i < count; ++i) out[i] = wrapSub(in[1][i], wrapMul(alpha->integer, in[0][i]));
  return true;
}

/// (self, other, alpha, out); `sign` -1 subtracts.
Status scaledSum(KernelContext& context, const Functions& functions, int sign) {
  Call call(context, 4);
  const Operand alpha = call.operand(2);
  call.require(alpha.tensor == nullptr, typesDiffer());
  const Parameter factor{static_cast<float>(sign) * alpha.real,
                         sign < 0 ? wrapSub(0, alpha.integer) : alpha.integer};
  return pairOf(call, 3, functions, Result::Same, &factor);
}

float product(float a, float b) {
  return a * b;
}
float quotient(float a, float b) {
  return a / b;
}
float truncatedQuotient(float a, float b) {
  return truncf(a / b);
}
/// Computed from the exact remainder, as in PyTorch.
float floorQuotient(float a, float b) {
  if (b == 0.0f) return a / b;
  const float rest = mathematics::fmod(a, b);
  float q = (a - rest) / b;
  if (rest != 0.0f && (rest < 0.0f) != (b < 0.0f)) q -= 1.0f;
  if (q == 0.0f) return copysignf(0.0f, a / b);
  const float f = floorf(q);
  return q - f > 0.5f ? f + 1.0f : f;
}
float floorRemainder(float a, float b) {
  const float rest = mathematics::fmod(a, b);
  return rest != 0.0f && (rest < 0.0f) != (b < 0.0f) ? rest + b : rest;
}
float power(float base, float exponent) {
  if (exponent == 2.0f) return base * base;
  if (exponent == 0.5f) return sqrtf(base);
  if (exponent == -0.5f) return 1.0f / sqrtf(base);
  return powf(base, exponent);
}
int64_t integerPower(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base != -1 ? 0 : exponent % 2 == 0 ? 1 : -1;
  int64_t result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result = wrapMul(result, base);
    base = wrapMul(base, base);
  }
  return result;
}

int64_t integerQuotient(int64_t a, int64_t b) {
  return b == -1 ? wrapSub(0, a) : a / b;
}
int64_t integerRemainder(int64_t a, int64_t b) {
  return b == -1 ? 0 : a % b;
}
int64_t integerFloorRemainder(int64_t a, int64_t b) {
  const int64_t rest = integerRemainder(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
int64_t integerFloorQuotient(int64_t a, int64_t b) {
  return integerQuotient(a, b) - (integerRemainder(a, b) != 0 && (a < 0) != (b < 0) ? 1 : 0);
}
/// Rejects a zero divisor.
template <int64_t (*F)(int64_t, int64_t)>
bool divideIntegers(const int64_t* const* in, int64_t* out, size_t count, const Parameter*) {
  for (size_t i = 0; i < count; ++i) {
    if (in[1][i] == 0) return false;
    out[i] = F(in[0][i], in[1][i]);
  }
  return true;
}

// NaN propagates.
float larger(float a, float b) {
  return a > b || a != a ? a : b;
}
float smaller(float a, float b) {
  return a < b || a != a ? a : b;
}
int64_t integerLarger(int64_t a, int64_t b) {
  return a > b ? a : b;
}
int64_t integerSmaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}
int64_t shiftedLeft(int64_t a, int64_t by) {
  return by < 0 || by > 63 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << by);
}
int64_t shiftedRight(int64_t a, int64_t by) {
  return a >> (by < 0 || by > 63 ? 63 : by);
}

/// Float and integer variants of a comparison or logical operator.
#define CARINA_RT_PREDICATE(name, expression)    \
  float name##Reals(float a, float b) {          \
    return (expression) ? 1.0f : 0.0f;           \
  }                                              \
  int64_t name##Integers(int64_t a, int64_t b) { \
    return (expression) ? 1 : 0;                 \
  }
CARINA_RT_PREDICATE(equal, a == b)
CARINA_RT_PREDICATE(notEqual, a != b)
CARINA_RT_PREDICATE(less, a < b)
CARINA_RT_PREDICATE(lessOrEqual, a <= b)
CARINA_RT_PREDICATE(greater, a > b)
CARINA_RT_PREDICATE(greaterOrEqual, a >= b)
CARINA_RT_PREDICATE(both, a != 0 && b != 0)
CARINA_RT_PREDICATE(either, a != 0 || b != 0)
CARINA_RT_PREDICATE(oneOf, (a != 0) != (b != 0))

int64_t bitsAnd(int64_t a, int64_t b) {
  return a & b;
}
int64_t bitsOr(int64_t a, int64_t b) {
  return a | b;
}
int64_t bitsXor(int64_t a, int64_t b) {
  return a ^ b;
}

constexpr Functions kQuotient = {pairReal<quotient>, nullptr};
constexpr Functions kTruncatedQuotient = {pairReal<truncatedQuotient>, divideIntegers<integerQuotient>};
constexpr Functions kFloorQuotient = {pairReal<floorQuotient>, divideIntegers<integerFloorQuotient>};

bool chooseReals(const float* const* in, float* out, size_t count, const Parameter*) {
  for (size_t i = 0; i < count; ++i) out[i] = in[0][i] != 0.0f ? in[1][i] : in[2][i];
  return true;
}
bool chooseIntegers(const int64_t* const* in, int64_t* out, size_t count, const Parameter*) {
  for (size_t i = 0; i < count; ++i) out[i] = in[0][i] != 0 ? in[1][i] : in[2][i];
  return true;
}

Status choose(Call& call, const Operand& condition, const Operand& then, const Operand& otherwise,
              uint32_t out) {
  const Operand operands[3] = {condition, then, otherwise};
  Tensor* output = call.output(out);
  call.require(condition.tensor != nullptr && !condition.isReal, typesDiffer());
  if (!call.ok()) return call.status();
  return map(operands, 3, *output, {chooseReals, chooseIntegers}, Result::Same);
}

}  // namespace

Status binary(KernelContext& context, const Functions& functions, Result result) {
  Call call(context, 3);
  return pairOf(call, 2, functions, result);
}

Status add(KernelContext& context) {
  return scaledSum(context, {addReals, addIntegers}, 1);
}
Status sub(KernelContext& context) {
  return scaledSum(context, {addReals, addIntegers}, -1);
}
Status rsub(KernelContext& context) {
  return scaledSum(context, {rsubReals, rsubIntegers}, 1);
}
Status div(KernelContext& context) {
  return binary(context, kQuotient, Result::Real);
}
Status divMode(KernelContext& context) {
  Call call(context, 4);
  if (call.ok() && call.isNull(2)) return pairOf(call, 3, kQuotient, Result::Real);
  const bool floors = call.isText(2, "floor");
  call.require(floors || call.isText(2, "trunc"), outOfRange(2));
  return pairOf(call, 3, floors ? kFloorQuotient : kTruncatedQuotient, Result::Same);
}

Status whereSelf(KernelContext& context) {
  Call call(context, 4);
  const Operand condition = call.operand(0), then = call.operand(1), otherwise = call.operand(2);
  return choose(call, condition, then, otherwise, 3);
}
Status maskedFill(KernelContext& context) {
  Call call(context, 4);
  const Operand self = call.operand(0), mask = call.operand(1), value = call.operand(2);
  return choose(call, mask, value, self, 3);
}

#define CARINA_RT_BINARY(name, real, integer, result)        \
  Status name(KernelContext& context) {                      \
    return binary(context, {real, integer}, Result::result); \
  }
#define CARINA_RT_COMPARE(name, function) \
  CARINA_RT_BINARY(name, pairReal<function##Reals>, pairInteger<function##Integers>, Test)

CARINA_RT_BINARY(atan2, pairReal<mathematics::atan2>, nullptr, Real)
CARINA_RT_BINARY(floorDivide, kFloorQuotient.real, kFloorQuotient.integer, Same)
CARINA_RT_BINARY(fmod, pairReal<mathematics::fmod>, divideIntegers<integerRemainder>, Same)
CARINA_RT_BINARY(maximum, pairReal<larger>, pairInteger<integerLarger>, Same)
CARINA_RT_BINARY(minimum, pairReal<smaller>, pairInteger<integerSmaller>, Same)
CARINA_RT_BINARY(mul, pairReal<product>, pairInteger<wrapMul>, Same)
CARINA_RT_BINARY(pow, pairReal<power>, pairInteger<integerPower>, Same)
CARINA_RT_BINARY(remainder, pairReal<floorRemainder>, divideIntegers<integerFloorRemainder>, Same)

CARINA_RT_BINARY(bitwiseAnd, nullptr, pairInteger<bitsAnd>, Same)
CARINA_RT_BINARY(bitwiseOr, nullptr, pairInteger<bitsOr>, Same)
CARINA_RT_BINARY(bitwiseXor, nullptr, pairInteger<bitsXor>, Same)
CARINA_RT_BINARY(shiftLeft, nullptr, pairInteger<shiftedLeft>, Same)
CARINA_RT_BINARY(shiftRight, nullptr, pairInteger<shiftedRight>, Same)

CARINA_RT_COMPARE(eq, equal)
CARINA_RT_COMPARE(ne, notEqual)
CARINA_RT_COMPARE(lt, less)
CARINA_RT_COMPARE(le, lessOrEqual)
CARINA_RT_COMPARE(gt, greater)
CARINA_RT_COMPARE(ge, greaterOrEqual)
CARINA_RT_COMPARE(logicalAnd, both)
CARINA_RT_COMPARE(logicalOr, either)
CARINA_RT_COMPARE(logicalXor, oneOf)

}  // namespace carina::rt::kernels
