// SPDX-License-Identifier: Apache-2.0
// Activations with parameters, and clamping: (self, parameters..., out).
#include <math.h>

#include "carina/kernels.hpp"
#include "functions.hpp"
#include "mathematics.hpp"
#include "positions.hpp"
#include "region.hpp"

namespace carina::rt::kernels {
namespace {

Status activate(Call& call, RealFunction function, uint32_t out, const Parameter* parameters) {
  const Operand self = call.operand(0);
  Tensor* output = call.output(out);
  if (!call.ok()) return call.status();
  return map(&self, 1, *output, {function, nullptr}, Result::Real, parameters);
}

bool eluRun(const float* const* in, float* out, size_t count, const Parameter* p) {
  for (size_t i = 0; i < count; ++i) {
    const float x = in[0][i];
    const float below = mathematics::expm1(x * p[2].real) * (p[0].real * p[1].real);
    out[i] = x > 0.0f ? x * p[1].real : below;
  }
  return true;
}
bool leakyReluRun(const float* const* in, float* out, size_t count, const Parameter* p) {
  for (size_t i = 0; i < count; ++i) out[i] = in[0][i] > 0.0f ? in[0][i] : in[0][i] * p[0].real;
  return true;
}
bool logitRun(const float* const* in, float* out, size_t count, const Parameter* p) {
  for (size_t i = 0; i < count; ++i) {
    float x = in[0][i];
    x = x < p[0].real ? p[0].real : x;
    x = x > p[1].real ? p[1].real : x;
    out[i] = mathematics::log(x / (1.0f - x));
  }
  return true;
}

// min(max(self, low), high); a NaN in self or in a bound propagates.
bool clampReals(const float* const* in, float* out, size_t count, const Parameter*) {
  for (size_t i = 0; i < count; ++i) {
    float x = in[0][i];
    const float low = in[1][i], high = in[2][i];
    x = x < low || low != low ? low : x;
    out[i] = x > high || high != high ? high : x;
  }
  return true;
}
bool clampIntegers(const int64_t* const* in, int64_t* out, size_t count, const Parameter*) {
  for (size_t i = 0; i < count; ++i) {
    const int64_t x = in[0][i] < in[1][i] ? in[1][i] : in[0][i];
    out[i] = x > in[2][i] ? in[2][i] : x;
  }
  return true;
}

/// For integer outputs, bounds are converted to integers, whatever their kind.
void boundBy(Operand* bound, const Tensor& output) {
  if (bound->tensor != nullptr || isReal(output.type)) return;
  if (bound->isReal) bound->integer = truncated(bound->real);
  bound->isReal = false;
}

}  // namespace

Status gelu(KernelContext& context) {
  Call call(context, 3);
  const bool byTanh = call.isText(1, "tanh");
  call.require(byTanh || call.isText(1, "none"), outOfRange(1));
  return activate(call, byTanh ? eachReal<mathematics::geluByTanh> : eachReal<mathematics::gelu>, 2, nullptr);
}

Status elu(KernelContext& context) {
  Call call(context, 5);
  Parameter parameters[3];
  for (uint32_t i = 0; i < 3; ++i) parameters[i].real = static_cast<float>(call.real(i + 1));
  return activate(call, eluRun, 4, parameters);
}

Status leakyRelu(KernelContext& context) {
  Call call(context, 3);
  const Parameter slope{static_cast<float>(call.real(1)), 0};
  return activate(call, leakyReluRun, 2, &slope);
}

Status logit(KernelContext& context) {
  Call call(context, 3);
  Parameter bounds[2];
  if (call.ok() && !call.isNull(1)) {
    bounds[0].real = static_cast<float>(call.real(1));
    bounds[1].real = static_cast<float>(1.0 - call.real(1));
  } else {
    bounds[0].real = -__builtin_inff();
    bounds[1].real = __builtin_inff();
  }
  return activate(call, logitRun, 2, bounds);
}

Status clamp(KernelContext& context) {
  Call call(context, 4);
  Operand operands[3] = {call.operand(0), {}, {}};
  operands[1].real = -__builtin_inff();
  operands[1].integer = INT64_MIN;
  operands[2].real = __builtin_inff();
  operands[2].integer = INT64_MAX;
  for (uint32_t i = 1; i < 3; ++i) {
    if (call.ok() && !call.isNull(i)) operands[i] = call.operand(i);
  }
  Tensor* output = call.output(3);
  call.require(operands[0].tensor != nullptr, typesDiffer());
  if (!call.ok()) return call.status();
  boundBy(&operands[1], *output);
  boundBy(&operands[2], *output);
  return map(operands, 3, *output, {clampReals, clampIntegers}, Result::Same);
}

Status relu(KernelContext& context) {
  Call call(context, 2);
  Operand operands[3] = {call.operand(0), {}, {}};
  operands[2].real = __builtin_inff();
  operands[2].integer = INT64_MAX;
  Tensor* output = call.output(1);
  call.require(operands[0].tensor != nullptr, typesDiffer());
  if (!call.ok()) return call.status();
  return map(operands, 3, *output, {clampReals, clampIntegers}, Result::Same);
}

/// The first half of a dimension times the sigmoid of the second.
Status glu(KernelContext& context) {
  Call call(context, 3);
  const Tensor* self = call.tensor(0);
  const uint32_t dim = call.dimension(1, self);
  Tensor* output = call.output(2);
  if (!call.ok()) return call.status();
  if (!isReal(self->type) || !isReal(output->type)) return typesDiffer();
  if (self->rank == 0 || !sameExceptDim(*self, *output, dim) || self->sizes[dim] % 2 != 0 ||
      self->sizes[dim] / 2 != output->sizes[dim])
    return shapesDiffer();
  size_t step[kMaxRank], to[kMaxRank];
  strides(*self, step);
  strides(*output, to);
  Positions positions;
  for (uint32_t d = 0; d < output->rank; ++d) positions.add(output->sizes[d], step[d], to[d]);
  const size_t half = step[dim] * static_cast<size_t>(output->sizes[dim]);
  const float* in = self->as<const float>();
  for (; !positions.done(); positions.next()) {
    const float* value = in + positions.first();
    output->as<float>()[positions.second()] = *value * mathematics::sigmoid(value[half]);
  }
  return Status{};
}

}  // namespace carina::rt::kernels
