// SPDX-License-Identifier: Apache-2.0
// cortex_m:: elementwise kernels, softmax and padding on int8, with CMSIS-NN's arithmetic.
#include "carina/kernels.hpp"
#include "int8_call.hpp"
#include "region.hpp"
#include "stream.hpp"

namespace carina::rt::kernels {

namespace {

/// Walks two int8 operands that broadcast to the output; `run` gets contiguous chunks of up to kChunk.
template <typename F>
Status pairs(const Tensor& a, const Tensor& b, const Tensor& output, F run) {
  if (!isInt8(a) || !isInt8(b) || !isInt8(output)) return typesDiffer();
  const Tensor* operands[2] = {&a, &b};
  Runs runs;
  CARINA_RT_TRY(runs.open(output, operands, 2));
  for (int8_t* out = output.as<int8_t>(); !runs.done(); runs.next()) {
    for (size_t i = 0; i < runs.length();) {
      const size_t n = runs.length() - i < kChunk ? runs.length() - i : kChunk;
      const int8_t* in[2];
      int8_t buffer[2][kChunk];
      for (uint32_t k = 0; k < 2; ++k) {
        const size_t step = static_cast<size_t>(runs.step(k));
        const int8_t* from = operands[k]->as<const int8_t>() + runs.at(k) + i * step;
        in[k] = from;
        if (step == 1) continue;
        for (size_t e = 0; e < n; ++e) buffer[k][e] = from[e * step];
        in[k] = buffer[k];
      }
      run(in[0], in[1], out, n);
      out += n;
      i += n;
    }
  }
  return Status{};
}

}  // namespace

/// (self, zero, multiplier, shift, other, zero, multiplier, shift, zero, multiplier, shift, min, max, out)
Status quantizedAdd(KernelContext& context) {
  Call call(context, 14);
  const Tensor* a = call.tensor(0);
  const Tensor* b = call.tensor(4);
  const SumOperand first{int8Zero(call, 1), rescaleOf(call, 2)},
      second{int8Zero(call, 5), rescaleOf(call, 6)};
  const Requantize requantize{rescaleOf(call, 9), int8Zero(call, 8), int8Zero(call, 11), int8Zero(call, 12)};
  Tensor* output = call.output(13);
  if (!call.ok()) return call.status();
  return pairs(*a, *b, *output, [&](const int8_t* x, const int8_t* y, int8_t* out, size_t count) {
    addInt8(x, y, out, count, first, second, requantize);
  });
}

/// (self, zero, other, zero, zero, multiplier, shift, out)
Status quantizedMul(KernelContext& context) {
  Call call(context, 8);
  const Tensor* a = call.tensor(0);
  const Tensor* b = call.tensor(2);
  const int32_t first = int8Zero(call, 1), second = int8Zero(call, 3);
  const Requantize requantize{rescaleOf(call, 5), int8Zero(call, 4)};
  Tensor* output = call.output(7);
  if (!call.ok()) return call.status();
  return pairs(*a, *b, *output, [&](const int8_t* x, const int8_t* y, int8_t* out, size_t count) {
    mulInt8(x, y, out, count, first, second, requantize);
  });
}

/// (input, table of 256 for -128 to 127, out)
Status quantizedActivation(KernelContext& context) {
  Call call(context, 3);
  const Tensor* input = call.tensor(0);
  const Tensor* table = call.tensor(1);
  Tensor* output = call.output(2);
  if (!call.ok()) return call.status();
  if (!isInt8(*input) || !isInt8(*table) || !isInt8(*output)) return typesDiffer();
  if (table->bytes != 256 || !sameLayout(*input, *output)) return shapesDiffer();
  lookUpInt8(input->as<const int8_t>(), table->as<const int8_t>(), output->as<int8_t>(), input->bytes);
  return Status{};
}

namespace {

/// value * 2^exponent, saturated.
int32_t timesPower(int32_t value, int exponent) {
  const int64_t wide = int64_t{value} * (int64_t{1} << exponent);
  return wide > INT32_MAX ? INT32_MAX : wide < INT32_MIN ? INT32_MIN : static_cast<int32_t>(wide);
}

/// 1 / (1 + value / 2^31) by three Newton steps, as a fraction of 2^31.
int32_t inverseOfOnePlus(int32_t value) {
  const int64_t sum = int64_t{value} + INT32_MAX;
  const int32_t half = static_cast<int32_t>((sum + (sum >= 0 ? 1 : -1)) / 2);
  int32_t x = 1515870810 + saturatingHighProduct(half, -1010580540);
  for (int step = 0; step < 3; ++step) {
    const int32_t error = (1 << 29) - saturatingHighProduct(half, x);
    x = wrappedSum(x, timesPower(saturatingHighProduct(x, error), 2));
  }
  return timesPower(x, 1);
}

void softmaxLine(const int8_t* in, int8_t* out, size_t count, const Rescale& scale, int32_t least) {
  constexpr int kAccumulatorBits = 12;
  const Powers powers{scale, largestInt8(in, count), least};
  const int32_t sum = sumOfPowers(in, count, powers, kAccumulatorBits);
  const int headroom = sum <= 0 ? 0 : __builtin_clz(static_cast<uint32_t>(sum));
  const int32_t inverse =
      inverseOfOnePlus(static_cast<int32_t>((static_cast<uint32_t>(sum) << headroom) - (uint32_t{1} << 31)));
  const int bits = kAccumulatorBits - headroom + 23;
  if (bits >= 0 && bits <= 31) return scalePowers(in, out, count, powers, inverse, bits);
  for (size_t i = 0; i < count; ++i) out[i] = -128;
}

}  // namespace

/// (input, dim, input zero, output zero, multiplier, shift, least difference, out); the last dimension,
/// output scale 1 / 256 and zero point -128.
Status quantizedSoftmax(KernelContext& context) {
  Call call(context, 8);
  const Tensor* input = call.tensor(0);
  const uint32_t dim = call.dimension(1, input);
  const int64_t zero = call.integer(3), least = call.integer(6);
  const Rescale scale = rescaleOf(call, 4);
  Tensor* output = call.output(7);
  if (!call.ok()) return call.status();
  if (!isInt8(*input) || !isInt8(*output)) return typesDiffer();
  if (!sameLayout(*input, *output) || !isRowMajor(*input)) return shapesDiffer();
  if (input->rank == 0 || dim + 1u != input->rank || zero != -128 || scale.shift < 0 || least > 0 ||
      least < INT32_MIN)
    return outOfRange(1);
  const size_t length = static_cast<size_t>(input->sizes[dim]);
  for (size_t at = 0; at < input->bytes; at += length)
    softmaxLine(input->as<const int8_t>() + at, output->as<int8_t>() + at, length, scale,
                static_cast<int32_t>(least));
  return Status{};
}

/// (input, elements before by dimension, after, value, out)
Status quantizedPad(KernelContext& context) {
  Call call(context, 5);
  const Tensor* input = call.tensor(0);
  const IntegerList before = call.integers(1), after = call.integers(2);
  const int32_t value = int8Zero(call, 3);
  Tensor* output = call.output(4);
  if (!call.ok()) return call.status();
  if (!isInt8(*input) || !isInt8(*output)) return typesDiffer();
  // Lists of four also apply to tensors of lower rank, whose dimensions are then the last ones.
  const uint32_t extra = before.count - input->rank;
  if (before.count < input->rank || after.count != before.count || output->rank != input->rank)
    return shapesDiffer();
  size_t from[kMaxRank], to[kMaxRank];
  strides(*input, from);
  strides(*output, to);
  Region region;
  size_t target = 0;
  for (uint32_t i = 0; i < before.count; ++i) {
    const int64_t first = before.items[i], last = after.items[i];
    if (first < 0 || last < 0 || first > INT32_MAX || last > INT32_MAX) return outOfRange(1);
    if (i < extra && (first != 0 || last != 0)) return shapesDiffer();
    if (i < extra) continue;
    const uint32_t d = i - extra;
    if (output->sizes[d] != first + input->sizes[d] + last) return shapesDiffer();
    region.add(static_cast<size_t>(input->sizes[d]), static_cast<ptrdiff_t>(from[d]),
               static_cast<ptrdiff_t>(to[d]));
    target += static_cast<size_t>(first) * to[d];
  }
  fillWith(*output, Operand{nullptr, 0, value, false});
  region.copy(*input, 0, *output, target);
  return Status{};
}

}  // namespace carina::rt::kernels
