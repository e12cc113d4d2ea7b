// SPDX-License-Identifier: Apache-2.0
// Compiled without contraction of products and sums (-ffp-contract=off).
#include "quantize/rounding_kernels.hpp"

#include <algorithm>

#include "quantize/weight_codes.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/rounding_kernels.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace carina::quantize::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void factorKernel(double* h, size_t n, float* factor) {
  const hn::ScalableTag<double> d;
  const size_t lanes = hn::Lanes(d);
  for (size_t k = n; k-- > 0;) {
    const double* row = h + k * n;
    const double inverse = row[k] > 0 ? 1 / row[k] : 0;
    for (size_t i = 0; i < k; ++i) {
      const double u = row[i] * inverse;
      factor[k * n + i] = static_cast<float>(u);
      double* other = h + i * n;
      const auto by = hn::Set(d, u);
      size_t j = 0;
      for (; j + lanes <= i + 1; j += lanes)
        hn::StoreU(hn::Sub(hn::LoadU(d, other + j), hn::Mul(by, hn::LoadU(d, row + j))), d, other + j);
      for (; j <= i; ++j) other[j] -= u * row[j];
    }
  }
}

void roundKernel(const float* values, const float* weights, const float* scales, float most, size_t count,
                 int8_t* codes, float* errors) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<int32_t, decltype(d)> d32;
  const hn::Rebind<int8_t, decltype(d)> d8;
  const size_t lanes = hn::Lanes(d);
  const auto high = hn::Set(d, most), low = hn::Set(d, -most), whole = hn::Set(d, 0x1.8p23f);
  size_t r = 0;
  for (; r + lanes <= count; r += lanes) {
    const auto scale = hn::LoadU(d, scales + r);
    const auto real = hn::Div(hn::LoadU(d, values + r), scale);
    const auto code = hn::Sub(hn::Add(hn::Min(hn::Max(real, low), high), whole), whole);
    hn::StoreU(hn::DemoteTo(d8, hn::ConvertTo(d32, code)), d8, codes + r);
    hn::StoreU(hn::Sub(hn::LoadU(d, weights + r), hn::Mul(code, scale)), d, errors + r);
  }
  for (; r < count; ++r) {
    const float code = weightCode(values[r] / scales[r], most);
    codes[r] = static_cast<int8_t>(code);
    errors[r] = weights[r] - code * scales[r];
  }
}

}  // namespace carina::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace carina::quantize {
namespace {
HWY_EXPORT(factorKernel);
HWY_EXPORT(roundKernel);
}  // namespace

void factorize(std::span<double> h, size_t n, std::span<float> factor) {
  HWY_DYNAMIC_DISPATCH(factorKernel)(h.data(), n, factor.data());
}

void roundColumn(std::span<const float> values, const float* weights, const float* scales, float most,
                 int8_t* codes, float* errors) {
  HWY_DYNAMIC_DISPATCH(roundKernel)(values.data(), weights, scales, most, values.size(), codes, errors);
}

}  // namespace carina::quantize
#endif
