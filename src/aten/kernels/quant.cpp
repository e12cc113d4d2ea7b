// SPDX-License-Identifier: Apache-2.0
// quantized_decomposed: quantize and dequantize per tensor and per channel, bit-exact with PyTorch.
#include <algorithm>
#include <cmath>

#include "aten/kernels/cast.hpp"
#include "aten/kernels/dispatch.hpp"
#include "aten/kernels/kernel.hpp"

namespace carina::aten {
namespace {

struct Limits {
  int64_t low = 0, high = 0;
};

/// rint for |x| < 2^22 without a library call: adding 1.5 * 2^23 rounds away the fraction bits.
float roundEven(float x) {
  constexpr float kMagic = 12582912.0f;
  return (x + kMagic) - kMagic;
}

/// q = clamp(rint(x * inverse) + zp, low, high), and the code of 0 for NaN, as in the runtime's kernels
/// (PyTorch leaves it to the processor). The limits are integers that floats represent exactly, so clamping
/// before rounding yields the same result; it keeps the values small enough for roundEven.
template <typename Q>
void quantizeNarrow(const float* in, Q* out, int64_t n, float inverse, int64_t zeroPoint, Limits limits) {
  const auto low = static_cast<float>(limits.low - zeroPoint),
             high = static_cast<float>(limits.high - zeroPoint);
  const float zero = std::clamp(0.0f, low, high);
  const auto zp = static_cast<int32_t>(zeroPoint);
  for (int64_t i = 0; i < n; ++i) {
    float value = in[i] * inverse;
    value = value < low ? low : value;
    value = value > high ? high : value;
    value = value == value ? value : zero;
    out[i] = static_cast<Q>(static_cast<int32_t>(roundEven(value)) + zp);
  }
}

/// The general form, for 32-bit integers and float64 scales; clamps before the conversion, so that it
/// saturates.
template <typename F, typename Q>
void quantizeWide(const float* in, Q* out, int64_t n, F inverse, int64_t zeroPoint, Limits limits) {
  for (int64_t i = 0; i < n; ++i) {
    const F value = std::nearbyint(static_cast<F>(in[i]) * inverse) + static_cast<F>(zeroPoint);
    if (std::isnan(value)) {
      out[i] = static_cast<Q>(std::clamp(zeroPoint, limits.low, limits.high));
    } else if (value <= static_cast<F>(limits.low)) {
      out[i] = static_cast<Q>(limits.low);
    } else if (value >= static_cast<F>(limits.high)) {
      out[i] = static_cast<Q>(limits.high);
    } else {
      out[i] = static_cast<Q>(value);
    }
  }
}

/// Whether the narrow form is exact: zero point and limits relative to it are below 2^21.
bool fitsNarrow(int64_t zeroPoint, Limits limits) {
  constexpr int64_t kBound = 1 << 21;
  return limits.low - zeroPoint > -kBound && limits.high - zeroPoint < kBound && std::abs(zeroPoint) < kBound;
}

template <typename F>
Status quantizeRun(const float* in, Tensor& result, int64_t first, int64_t n, F inverse, int64_t zeroPoint,
                   Limits limits) {
  return forNumber(result.dtype(), [&](auto tag) -> Status {
    using Q = decltype(tag);
    if constexpr (std::is_integral_v<Q>) {
      Q* out = result.mutableAs<Q>().data() + first;
      if (std::is_same_v<F, float> && fitsNarrow(zeroPoint, limits)) {
        quantizeNarrow(in, out, n, static_cast<float>(inverse), zeroPoint, limits);
      } else {
        quantizeWide(in, out, n, inverse, zeroPoint, limits);
      }
      return {};
    } else {
      return fail(Code::UnusableQuantization, "values are quantized to integers, not to {}",
                  dtypeName(result.dtype()));
    }
  });
}

Status checkLimits(Limits limits, DType dtype) {
  if (limits.low > limits.high || !isInteger(dtype) || limits.low < integerMin(dtype) ||
      limits.high > integerMax(dtype)) {
    return fail(Code::UnusableQuantization, "quantization range {}..{} does not fit {}", limits.low,
                limits.high, dtypeName(dtype));
  }
  return {};
}

/// Scalars are attributes or (".tensor" forms) one-element tensors.
struct Scalars {
  double scale = 1;
  int64_t zeroPoint = 0;
  Limits limits;
};

Result<Scalars> scalarsOf(const Call& call) {
  const ir::Node& node = call.node();
  const Arguments a(node);
  Scalars s;
  for (size_t i = 1; i < call.numOperands(); ++i) {
    if (call.operand(i).numElements() != 1)
      return fail(Code::UnusableQuantization, "scale and zero point must have one element");
  }
  s.scale = a.has("scale") ? a.real("scale") : call.operand(1).realAt(0);
  s.zeroPoint = a.has("zero_point") ? a.integer("zero_point") : call.operand(2).integerAt(0);
  s.limits.low = a.has("quant_min") ? a.integer("quant_min") : call.operand(3).integerAt(0);
  s.limits.high = a.has("quant_max") ? a.integer("quant_max") : call.operand(4).integerAt(0);
  return s;
}

/// inverse = float32(1 / scale), with the division in double.
Result<Kernel> prepareQuantizeTensor(const ir::Node&) {
  return Kernel([](Call& call) -> Status {
    CARINA_TRY(const Scalars s, scalarsOf(call));
    CARINA_RETURN_IF_ERROR(checkLimits(s.limits, call.type().dtype));
    const Tensor input = castTo(call.operand(0), DType::Float32);
    Tensor& result = call.allocate();
    return quantizeRun(input.as<float>().data(), result, 0, input.numElements(),
                       static_cast<float>(1.0 / s.scale), s.zeroPoint, s.limits);
  });
}

/// (float32(q) - zp) * float32(scale)
Result<Kernel> prepareDequantizeTensor(const ir::Node&) {
  return Kernel([](Call& call) -> Status {
    CARINA_TRY(const Scalars s, scalarsOf(call));
    const Tensor& input = call.operand(0);
    return forNumber(input.dtype(), [&](auto tag) -> Status {
      using Q = decltype(tag);
      const Q* in = input.as<Q>().data();
      return forFloat(call.type().dtype, [&](auto real) -> Status {
        using T = decltype(real);
        T* out = call.allocate().mutableAs<T>().data();
        const T scale = static_cast<T>(static_cast<float>(s.scale)), zeroPoint = static_cast<T>(s.zeroPoint);
        for (int64_t i = 0; i < input.numElements(); ++i)
          out[i] = (static_cast<T>(in[i]) - zeroPoint) * scale;
        return {};
      });
    });
  });
}

/// A tensor as outer x channels x inner around `axis`.
struct Channels {
  int64_t outer = 1, count = 1, inner = 1;
};
Result<Channels> channelsOf(const Tensor& tensor, int64_t axis, const Tensor& scales,
                            const Tensor* zeroPoints) {
  CARINA_TRY(const int64_t dim, wrapDim(axis, tensor.rank()));
  Channels c;
  for (int64_t d = 0; d < tensor.rank(); ++d)
    (d < dim ? c.outer : d == dim ? c.count : c.inner) *= tensor.dim(d);
  if (scales.numElements() != c.count || (zeroPoints && zeroPoints->numElements() != c.count)) {
    return fail(Code::UnusableQuantization, "{} scales for {} channels", scales.numElements(), c.count);
  }
  return c;
}

/// inverse_c = 1 / scale_c computed in the type of the scales.
Result<Kernel> prepareQuantizeChannel(const ir::Node& node) {
  const Arguments a(node);
  const int64_t axis = a.integer("axis");
  const Limits limits{a.integer("quant_min"), a.integer("quant_max")};
  return Kernel([=](Call& call) -> Status {
    CARINA_RETURN_IF_ERROR(checkLimits(limits, call.type().dtype));
    const Tensor input = castTo(call.operand(0), DType::Float32);
    const Tensor &scales = call.operand(1), &zeroPoints = call.operand(2);
    CARINA_TRY(const Channels c, channelsOf(input, axis, scales, &zeroPoints));
    Tensor& result = call.allocate();
    const float* in = input.as<float>().data();
    for (int64_t o = 0; o < c.outer; ++o) {
      for (int64_t k = 0; k < c.count; ++k) {
        const int64_t at = (o * c.count + k) * c.inner, zeroPoint = zeroPoints.integerAt(k);
        if (scales.dtype() == DType::Float64) {
          CARINA_RETURN_IF_ERROR(
              quantizeRun(in + at, result, at, c.inner, 1.0 / scales.realAt(k), zeroPoint, limits));
        } else {
          CARINA_RETURN_IF_ERROR(quantizeRun(in + at, result, at, c.inner,
                                             1.0f / static_cast<float>(scales.realAt(k)), zeroPoint, limits));
        }
      }
    }
    return {};
  });
}

/// (q - zero point) in integers, times the scale in its type.
template <typename Q, typename Scale, typename T>
void dequantizeRun(std::span<const Q> codes, int64_t zeroPoint, Scale scale, T* out) {
  const auto run = [&](auto zero) {
    for (size_t i = 0; i < codes.size(); ++i)
      out[i] = static_cast<T>(static_cast<Scale>(static_cast<decltype(zero)>(codes[i]) - zero) * scale);
  };
  // 32-bit differences can be vectorised.
  constexpr int64_t kSmall = 1 << 30;
  if (sizeof(Q) <= 2 && zeroPoint >= -kSmall && zeroPoint <= kSmall) {
    run(static_cast<int32_t>(zeroPoint));
  } else {
    run(zeroPoint);
  }
}

/// (q - zp_c) in integers, times scale_c in the type of the scales.
Result<Kernel> prepareDequantizeChannel(const ir::Node& node) {
  const int64_t axis = Arguments(node).integer("axis");
  return Kernel([axis](Call& call) -> Status {
    const Tensor &input = call.operand(0), &scales = call.operand(1);
    const Tensor* zeroPoints = call.named(2);
    CARINA_TRY(const Channels c, channelsOf(input, axis, scales, zeroPoints));
    return forNumber(input.dtype(), [&](auto tag) -> Status {
      using Q = decltype(tag);
      const Q* in = input.as<Q>().data();
      return forFloat(call.type().dtype, [&](auto real) -> Status {
        using T = decltype(real);
        T* out = call.allocate().mutableAs<T>().data();
        for (int64_t o = 0; o < c.outer; ++o) {
          for (int64_t k = 0; k < c.count; ++k) {
            const int64_t at = (o * c.count + k) * c.inner,
                          zeroPoint = zeroPoints ? zeroPoints->integerAt(k) : 0;
            const double scale = scales.realAt(k);
            const std::span row(in + at, static_cast<size_t>(c.inner));
            if (scales.dtype() == DType::Float64) {
              dequantizeRun(row, zeroPoint, scale, out + at);
            } else {
              dequantizeRun(row, zeroPoint, static_cast<float>(scale), out + at);
            }
          }
        }
        return {};
      });
    });
  });
}

/// Chooses scale and zero point for a tensor's range, which always includes 0.
template <bool kSymmetric>
Result<Kernel> prepareChoose(const ir::Node& node) {
  const Arguments a(node);
  const Limits limits{a.integer("quant_min"), a.integer("quant_max")};
  const double eps = a.real("eps");
  const std::optional<DType> dtype = a.dtype();
  if (limits.high <= limits.low)
    return fail(Code::UnusableQuantization, "quantization range {}..{} is empty", limits.low, limits.high);
  return Kernel([=](Call& call) -> Status {
    const Tensor input = castTo(call.operand(0), DType::Float32);
    double low = 0, high = 0;
    for (float value : input.as<float>()) {
      low = std::min(low, static_cast<double>(value));
      high = std::max(high, static_cast<double>(value));
    }
    const auto span = static_cast<double>(limits.high - limits.low);
    double scale = 0;
    int64_t zeroPoint = 0;
    if (kSymmetric) {
      scale = std::max(std::max(-low, high) / (span / 2), eps);
      if (dtype == DType::UInt8) zeroPoint = (limits.low + limits.high + 1) / 2;
    } else {
      scale = std::max((high - low) / span, eps);
      zeroPoint =
          std::clamp(limits.low - static_cast<int64_t>(std::nearbyint(low / scale)), limits.low, limits.high);
    }
    call.result(0) = Tensor::from<double>({1}, {scale});
    call.result(1) = Tensor::from<int64_t>({1}, {zeroPoint});
    return {};
  });
}

constexpr KernelEntry kQuantKernels[] = {
    {"quantized_decomposed.quantize_per_tensor.default", prepareQuantizeTensor},
    {"quantized_decomposed.quantize_per_tensor.tensor", prepareQuantizeTensor},
    {"quantized_decomposed.quantize_per_tensor.tensor2", prepareQuantizeTensor},
    {"quantized_decomposed.dequantize_per_tensor.default", prepareDequantizeTensor},
    {"quantized_decomposed.dequantize_per_tensor.tensor", prepareDequantizeTensor},
    {"quantized_decomposed.dequantize_per_tensor.tensor2", prepareDequantizeTensor},
    {"quantized_decomposed.quantize_per_channel.default", prepareQuantizeChannel},
    {"quantized_decomposed.dequantize_per_channel.default", prepareDequantizeChannel},
    {"quantized_decomposed.choose_qparams.tensor", prepareChoose<false>},
    {"quantized_decomposed.choose_qparams_symmetric.tensor", prepareChoose<true>},
};

}  // namespace

std::span<const KernelEntry> quantKernels() {
  return kQuantKernels;
}

}  // namespace carina::aten
