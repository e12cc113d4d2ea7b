// SPDX-License-Identifier: Apache-2.0
// The vectorized loops that round weights give bit-identical results to scalar loops.
#include "quantize/rounding_kernels.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "quantize/weight_codes.hpp"

namespace carina::quantize {
namespace {

TEST(RoundingKernels, FactorsMatchScalarLoops) {
  for (const size_t n : {1, 7, 8, 33}) {
    std::vector<double> h(n * n);
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j)
        h[i * n + j] = std::cos(0.3 * static_cast<double>(i) - 0.3 * static_cast<double>(j));
      h[i * n + i] += 0.1;
    }
    std::vector<double> plain = h;
    std::vector<float> expected(n * n, 0.0f), found(n * n, 0.0f);
    for (size_t k = n; k-- > 0;) {
      for (size_t i = 0; i < k; ++i) {
        const double u = plain[k * n + i] * (1 / plain[k * n + k]);
        expected[k * n + i] = static_cast<float>(u);
        for (size_t j = 0; j <= i; ++j) plain[i * n + j] -= u * plain[k * n + j];
      }
    }
    factorize(h, n, found);
    EXPECT_EQ(found, expected) << n;
  }
}

TEST(RoundingKernels, CodesAndErrorsMatchScalarLoops) {
  constexpr size_t kCount = 71;
  std::vector<float> values, weights, scales, errors(kCount);
  std::vector<int8_t> codes(kCount);
  for (size_t r = 0; r < kCount; ++r) {
    const auto at = static_cast<float>(r);
    values.push_back(0.9f * std::sin(at));
    weights.push_back(0.9f * std::sin(at + 0.01f));
    scales.push_back(0.006f + 0.0001f * at);
  }
  roundColumn(values, weights.data(), scales.data(), 127, codes.data(), errors.data());
  for (size_t r = 0; r < kCount; ++r) {
    const float code = weightCode(values[r] / scales[r], 127);
    EXPECT_EQ(static_cast<float>(codes[r]), code) << r;
    const float product = code * scales[r];
    EXPECT_EQ(errors[r], weights[r] - product) << r;
  }
}

}  // namespace
}  // namespace carina::quantize
