// SPDX-License-Identifier: Apache-2.0
#include "ethosn/model/mce_sums.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ethosn/model/mce_sums.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace carina::ethosn::model {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

template <int kRows, int kColumns>
void productTile(const int16_t* rows, const int16_t* weights, int64_t terms, int64_t columns, int32_t* sums) {
  for (int r = 0; r < kRows; ++r) {
    for (int o = 0; o < kColumns; ++o) {
      uint32_t sum = static_cast<uint32_t>(sums[r * columns + o]);
      for (int64_t k = 0; k < terms; ++k)
        sum += static_cast<uint32_t>(rows[r * terms + k] * weights[o * terms + k]);
      sums[r * columns + o] = static_cast<int32_t>(sum);
    }
  }
}

#else

template <int kRows, int kColumns>
HWY_INLINE void productTile(const int16_t* HWY_RESTRICT rows, const int16_t* HWY_RESTRICT weights,
                            int64_t terms, int64_t columns, int32_t* HWY_RESTRICT sums) {
  // A vector has at most 32 terms: rows are padded to that.
  const hn::CappedTag<int16_t, kTermUnit> d16;
  const hn::Repartition<int32_t, decltype(d16)> d32;
  using V32 = hn::Vec<decltype(d32)>;
  using V16 = hn::Vec<decltype(d16)>;
  V32 acc[kRows][kColumns];
  for (auto& line : acc) {
    for (V32& sum : line) sum = hn::Zero(d32);
  }
  V32 other = hn::Zero(d32);  // second half, which some targets keep separate
  const auto step = static_cast<int64_t>(hn::Lanes(d16));
  for (int64_t k = 0; k < terms; k += step) {
    V16 w[kColumns];
    for (int o = 0; o < kColumns; ++o) w[o] = hn::LoadU(d16, weights + o * terms + k);
    for (int r = 0; r < kRows; ++r) {
      const V16 x = hn::LoadU(d16, rows + r * terms + k);
      for (int o = 0; o < kColumns; ++o) {
        acc[r][o] = hn::ReorderWidenMulAccumulate(d32, x, w[o], acc[r][o], other);
        if (HWY_TARGET > HWY_SSSE3) {
          acc[r][o] = hn::Add(acc[r][o], other);
          other = hn::Zero(d32);
        }
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int o = 0; o < kColumns; ++o) {
      int32_t& sum = sums[r * columns + o];
      sum = static_cast<int32_t>(static_cast<uint32_t>(sum) +
                                 static_cast<uint32_t>(hn::GetLane(hn::SumOfLanes(d32, acc[r][o]))));
    }
  }
}

#endif

/// All rows with a few columns, whose weights stay in the L1 cache meanwhile.
template <int kColumns>
void productColumns(const int16_t* rows, int64_t rowCount, const int16_t* weights, int64_t columns,
                    int64_t terms, int32_t* sums) {
  int64_t p = 0;
  for (; p + 3 <= rowCount; p += 3) {
    productTile<3, kColumns>(rows + p * terms, weights, terms, columns, sums + p * columns);
  }
  for (; p < rowCount; ++p) {
    productTile<1, kColumns>(rows + p * terms, weights, terms, columns, sums + p * columns);
  }
}

void AddProducts(const int16_t* rows, int64_t rowCount, const int16_t* weights, int64_t columns,
                 int64_t terms, int32_t* sums) {
  int64_t o = 0;
  for (; o + 4 <= columns; o += 4)
    productColumns<4>(rows, rowCount, weights + o * terms, columns, terms, sums + o);
  for (; o < columns; ++o) productColumns<1>(rows, rowCount, weights + o * terms, columns, terms, sums + o);
}

void AddScaledRows(const int16_t* rows, int64_t rowCount, int64_t step, const int16_t* weights,
                   int64_t channels, int32_t* sums) {
  const hn::ScalableTag<int32_t> d32;
  const hn::Rebind<int16_t, decltype(d32)> d16;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d32));
  for (int64_t p = 0; p < rowCount; ++p) {
    const int16_t* row = rows + p * step;
    int32_t* sum = sums + p * channels;
    int64_t c = 0;
    for (; c + lanes <= channels; c += lanes) {
      const auto x = hn::PromoteTo(d32, hn::LoadU(d16, row + c));
      const auto w = hn::PromoteTo(d32, hn::LoadU(d16, weights + c));
      hn::StoreU(hn::Add(hn::LoadU(d32, sum + c), hn::Mul(x, w)), d32, sum + c);
    }
    for (; c < channels; ++c)
      sum[c] =
          static_cast<int32_t>(static_cast<uint32_t>(sum[c]) + static_cast<uint32_t>(row[c] * weights[c]));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace carina::ethosn::model
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace carina::ethosn::model {

HWY_EXPORT(AddProducts);
HWY_EXPORT(AddScaledRows);

void addProducts(const int16_t* rows, int64_t rowCount, const int16_t* weights, int64_t columns,
                 int64_t terms, int32_t* sums) {
  HWY_DYNAMIC_DISPATCH(AddProducts)(rows, rowCount, weights, columns, terms, sums);
}

void addScaledRows(const int16_t* rows, int64_t rowCount, int64_t step, const int16_t* weights,
                   int64_t channels, int32_t* sums) {
  HWY_DYNAMIC_DISPATCH(AddScaledRows)(rows, rowCount, step, weights, channels, sums);
}

}  // namespace carina::ethosn::model
#endif
