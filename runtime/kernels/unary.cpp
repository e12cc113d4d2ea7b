// SPDX-License-Identifier: Apache-2.0
// Operators of one operand: (self, out).
#include <math.h>

#include "carina/kernels.hpp"
#include "functions.hpp"
#include "mathematics.hpp"

namespace carina::rt::kernels {

Status unary(KernelContext& context, const Functions& functions, Result result) {
  Call call(context, 2);
  const Operand self{call.tensor(0), 0, 0, false};
  Tensor* output = call.output(1);
  if (!call.ok()) return call.status();
  const Operand operand{self.tensor, 0, 0, isReal(self.tensor->type)};
  return map(&operand, 1, *output, functions, result);
}

namespace {

float rsqrtOf(float x) {
  return 1.0f / sqrtf(x);
}
float reciprocalOf(float x) {
  return 1.0f / x;
}
float negated(float x) {
  return -x;
}
int64_t integerNegated(int64_t x) {
  return wrapSub(0, x);
}
int64_t integerAbs(int64_t x) {
  return x < 0 ? wrapSub(0, x) : x;
}
float signOf(float x) {
  return static_cast<float>((x > 0.0f) - (x < 0.0f));
}
int64_t integerSign(int64_t x) {
  return (x > 0) - (x < 0);
}
int64_t itself(int64_t x) {
  return x;
}
float isNanOf(float x) {
  return x != x ? 1.0f : 0.0f;
}
float isInfOf(float x) {
  return x - x != 0.0f && x == x ? 1.0f : 0.0f;
}
int64_t never(int64_t) {
  return 0;
}
float isZero(float x) {
  return x == 0.0f ? 1.0f : 0.0f;
}
int64_t integerIsZero(int64_t x) {
  return x == 0;
}
int64_t inverted(int64_t x) {
  return ~x;
}

}  // namespace

// Results are float32 whatever the operand.
#define CARINA_RT_REAL(name, function)                                  \
  Status name(KernelContext& context) {                                 \
    return unary(context, {eachReal<function>, nullptr}, Result::Real); \
  }
// The result has the operand's type.
#define CARINA_RT_SAME(name, function, integerFunction)                                      \
  Status name(KernelContext& context) {                                                      \
    return unary(context, {eachReal<function>, eachInteger<integerFunction>}, Result::Same); \
  }
// The result is Bool.
#define CARINA_RT_TEST(name, function, integerFunction)                                      \
  Status name(KernelContext& context) {                                                      \
    return unary(context, {eachReal<function>, eachInteger<integerFunction>}, Result::Test); \
  }

CARINA_RT_REAL(acos, mathematics::acos)
CARINA_RT_REAL(acosh, mathematics::acosh)
CARINA_RT_REAL(asin, mathematics::asin)
CARINA_RT_REAL(asinh, mathematics::asinh)
CARINA_RT_REAL(atan, mathematics::atan)
CARINA_RT_REAL(atanh, mathematics::atanh)
CARINA_RT_REAL(cos, mathematics::cos)
CARINA_RT_REAL(cosh, mathematics::cosh)
CARINA_RT_REAL(erf, mathematics::erf)
CARINA_RT_REAL(exp, mathematics::exp)
CARINA_RT_REAL(expm1, mathematics::expm1)
CARINA_RT_REAL(log, mathematics::log)
CARINA_RT_REAL(log10, log10f)
CARINA_RT_REAL(log1p, mathematics::log1p)
CARINA_RT_REAL(log2, log2f)
CARINA_RT_REAL(reciprocal, reciprocalOf)
CARINA_RT_REAL(rsqrt, rsqrtOf)
CARINA_RT_REAL(sigmoid, mathematics::sigmoid)
CARINA_RT_REAL(sin, mathematics::sin)
CARINA_RT_REAL(sinh, mathematics::sinh)
CARINA_RT_REAL(sqrt, sqrtf)
CARINA_RT_REAL(tan, mathematics::tan)
CARINA_RT_REAL(tanh, mathematics::tanh)

CARINA_RT_SAME(abs, fabsf, integerAbs)
CARINA_RT_SAME(ceil, ceilf, itself)
CARINA_RT_SAME(floor, floorf, itself)
CARINA_RT_SAME(neg, negated, integerNegated)
CARINA_RT_SAME(round, rintf, itself)  // ties to even
CARINA_RT_SAME(sign, signOf, integerSign)
CARINA_RT_SAME(trunc, truncf, itself)

CARINA_RT_TEST(isInf, isInfOf, never)
CARINA_RT_TEST(isNan, isNanOf, never)
CARINA_RT_TEST(logicalNot, isZero, integerIsZero)

Status bitwiseNot(KernelContext& context) {
  const bool ofBools = context.count() > 0 && context.argument(0).kind == ValueKind::Tensor &&
                       context.argument(0).tensor.type == ScalarType::Bool;
  return unary(context, {nullptr, ofBools ? eachInteger<integerIsZero> : eachInteger<inverted>},
               Result::Same);
}

}  // namespace carina::rt::kernels
