// SPDX-License-Identifier: Apache-2.0
#include "quantize/fit_kernels.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/fit_kernels.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace carina::quantize::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Products of columns i, i + 1 with columns j .. j + 3: eight sums stay in registers.
template <size_t kFirst, size_t kSecond>
void gramTile(const float* first, const float* second, size_t stride, float* gram, size_t columns) {
  const hn::CappedTag<float, kRowPadding> d;
  decltype(hn::Zero(d)) sums[kFirst][kSecond];
  for (auto& row : sums) {
    for (auto& sum : row) sum = hn::Zero(d);
  }
  for (size_t r = 0; r < stride; r += hn::Lanes(d)) {
    for (size_t a = 0; a < kFirst; ++a) {
      const auto x = hn::Load(d, first + a * stride + r);
      for (size_t b = 0; b < kSecond; ++b)
        sums[a][b] = hn::MulAdd(x, hn::Load(d, second + b * stride + r), sums[a][b]);
    }
  }
  for (size_t a = 0; a < kFirst; ++a) {
    for (size_t b = 0; b < kSecond; ++b) gram[a * columns + b] += hn::GetLane(hn::SumOfLanes(d, sums[a][b]));
  }
}

void gramKernel(const float* a, size_t columns, size_t stride, float* gram) {
  constexpr size_t kFirst = 2, kSecond = 4;
  size_t i = 0;
  for (; i + kFirst <= columns; i += kFirst) {
    size_t j = 0;
    for (; j + kSecond <= i + kFirst; j += kSecond)
      gramTile<kFirst, kSecond>(a + i * stride, a + j * stride, stride, gram + i * columns + j, columns);
    for (; j < i + kFirst; ++j)
      gramTile<kFirst, 1>(a + i * stride, a + j * stride, stride, gram + i * columns + j, columns);
  }
  for (; i < columns; ++i) {
    for (size_t j = 0; j <= i; ++j)
      gramTile<1, 1>(a + i * stride, a + j * stride, stride, gram + i * columns + j, columns);
  }
}

void feedbackKernel(const float* errors, size_t count, size_t stride, const float* factors, float* values,
                    size_t rows) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t r = 0;
  for (; r + 4 * lanes <= rows; r += 4 * lanes) {
    auto s0 = hn::LoadU(d, values + r), s1 = hn::LoadU(d, values + r + lanes),
         s2 = hn::LoadU(d, values + r + 2 * lanes), s3 = hn::LoadU(d, values + r + 3 * lanes);
    for (size_t j = 0; j < count; ++j) {
      const float* row = errors + j * stride + r;
      const auto factor = hn::Set(d, factors[j]);
      s0 = hn::MulAdd(hn::LoadU(d, row), factor, s0);
      s1 = hn::MulAdd(hn::LoadU(d, row + lanes), factor, s1);
      s2 = hn::MulAdd(hn::LoadU(d, row + 2 * lanes), factor, s2);
      s3 = hn::MulAdd(hn::LoadU(d, row + 3 * lanes), factor, s3);
    }
    hn::StoreU(s0, d, values + r);
    hn::StoreU(s1, d, values + r + lanes);
    hn::StoreU(s2, d, values + r + 2 * lanes);
    hn::StoreU(s3, d, values + r + 3 * lanes);
  }
  for (; r < rows; ++r) {
    float sum = values[r];
    for (size_t j = 0; j < count; ++j) sum += errors[j * stride + r] * factors[j];
    values[r] = sum;
  }
}

/// The sums of one plane, at least a vector wide; the last vector may recompute some of the preceding sums.
template <typename D>
void sumPlane(D d, const float* plane, size_t rows, size_t rowStride, size_t width, float* sums) {
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + 2 * lanes <= width; i += 2 * lanes) {
    auto s0 = hn::Zero(d), s1 = s0;
    for (size_t r = 0; r < rows; ++r) {
      const float* row = plane + r * rowStride + i;
      s0 = hn::Add(s0, hn::LoadU(d, row));
      s1 = hn::Add(s1, hn::LoadU(d, row + lanes));
    }
    hn::StoreU(s0, d, sums + i);
    hn::StoreU(s1, d, sums + i + lanes);
  }
  while (i < width) {
    i = std::min(i, width - lanes);
    auto sum = hn::Zero(d);
    for (size_t r = 0; r < rows; ++r) sum = hn::Add(sum, hn::LoadU(d, plane + r * rowStride + i));
    hn::StoreU(sum, d, sums + i);
    i += lanes;
  }
}

void rowsKernel(const float* planes, size_t count, size_t planeStride, size_t rows, size_t rowStride,
                size_t width, float* sums) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 8> d8;
  const hn::CappedTag<float, 4> d4;
  for (size_t p = 0; p < count; ++p, planes += planeStride, sums += width) {
    if (width >= hn::Lanes(d))
      sumPlane(d, planes, rows, rowStride, width, sums);
    else if (width >= hn::Lanes(d8))
      sumPlane(d8, planes, rows, rowStride, width, sums);
    else if (width >= hn::Lanes(d4))
      sumPlane(d4, planes, rows, rowStride, width, sums);
    else
      sumPlane(hn::CappedTag<float, 1>(), planes, rows, rowStride, width, sums);
  }
}

}  // namespace carina::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace carina::quantize {
namespace {
HWY_EXPORT(gramKernel);
HWY_EXPORT(feedbackKernel);
HWY_EXPORT(rowsKernel);
}  // namespace

void addGram(std::span<const float> a, size_t columns, size_t stride, std::span<float> gram) {
  HWY_DYNAMIC_DISPATCH(gramKernel)(a.data(), columns, stride, gram.data());
}

void addFeedback(std::span<const float> errors, size_t count, size_t stride, std::span<const float> factors,
                 std::span<float> values) {
  HWY_DYNAMIC_DISPATCH(feedbackKernel)
  (errors.data(), count, stride, factors.data(), values.data(), values.size());
}

void sumRows(const float* planes, size_t count, size_t planeStride, size_t rows, size_t rowStride,
             size_t width, float* sums) {
  HWY_DYNAMIC_DISPATCH(rowsKernel)(planes, count, planeStride, rows, rowStride, width, sums);
}

}  // namespace carina::quantize
#endif
