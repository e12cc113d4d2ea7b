// SPDX-License-Identifier: Apache-2.0
// The vectorized loops that choose codes, compared with their definitions on every instruction set of the
// processor.
#include "npu/weights/swd_kernels.hpp"

#include <gtest/gtest.h>
#include <hwy/targets.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

namespace carina::npu::swd {
namespace {

using Counts = std::array<uint32_t, kFoldedValues>;

/// Counts of which the first `used` may be nonzero; many are equal.
Counts someCounts(size_t used) {
  Counts counts{};
  const auto most = *rc::gen::element(1u, 3u, 40u, 100'000u);
  for (size_t n = 0; n < used; ++n) counts[n] = *rc::gen::inRange(0u, most + 1);
  counts[used - 1] = std::max(counts[used - 1], 1u);
  return counts;
}

template <typename Test>
void onEveryInstructionSet(const Test& test) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    test();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

RC_GTEST_PROP(SwdKernels, RankByFrequencyThenBySmallestValue, ()) {
  const auto used = *rc::gen::inRange<size_t>(1, kFoldedValues + 1);
  const Counts counts = someCounts(used);
  std::vector<uint16_t> expected;
  for (size_t n = 0; n < used; ++n) {
    if (counts[n] > 0) expected.push_back(static_cast<uint16_t>(n));
  }
  const size_t distinct = expected.size();
  std::stable_sort(expected.begin(), expected.end(),
                   [&](uint16_t a, uint16_t b) { return counts[a] > counts[b]; });
  expected.resize(rankedOf(distinct));
  onEveryInstructionSet([&] {
    const Ranking ranking = rank(counts, used, std::accumulate(counts.begin(), counts.end(), uint64_t{0}));
    RC_ASSERT(ranking.distinct == distinct);
    RC_ASSERT(std::vector(ranking.values.begin(), ranking.values.begin() + ranking.count) == expected);
  });
}

RC_GTEST_PROP(SwdKernels, QuotientSumsMatchTheirDefinition, ()) {
  const auto used = *rc::gen::inRange<size_t>(1, kFoldedValues + 1);
  const Counts counts = someCounts(used);
  QuotientSums expected{};
  for (size_t n = 0; n < used; ++n) {
    for (size_t divisor = 0; divisor < expected.size(); ++divisor)
      expected[divisor] += uint64_t{counts[n]} * (n >> divisor);
  }
  onEveryInstructionSet(
      [&] { RC_ASSERT(quotientSums(counts.data(), static_cast<int>(used) - 1) == expected); });
}

}  // namespace
}  // namespace carina::npu::swd
