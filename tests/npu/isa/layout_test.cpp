// SPDX-License-Identifier: Apache-2.0
// Feature map addresses: the worked example, and that no two elements share an address.
#include "npu/isa/layout.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace carina::npu {
namespace {

TEST(Layout, WorkedExample) {
  // 40x7x28 int8 bricks at 0x1f0: element (2, 3, 20).
  const FeatureMap fm = denseMap(40, 7, 28, ElementType::Int8, Layout::NHCWB16, 1, 0x1f0);
  EXPECT_EQ(fm.strideY, 224);
  EXPECT_EQ(fm.strideC, 112);
  EXPECT_EQ(elementAddress(fm, 2, 3, 20), 0x454u);
  EXPECT_EQ(denseBytes(40, 7, 28, ElementType::Int8, Layout::NHCWB16), 40 * 7 * 32);
  EXPECT_EQ(denseBytes(40, 7, 28, ElementType::Int16, Layout::NHWC), 40 * 7 * 28 * 2);
}

RC_GTEST_PROP(Layout, DenseAddressesAreUniqueAndInBounds, ()) {
  const int h = *rc::gen::inRange(1, 8), w = *rc::gen::inRange(1, 8), c = *rc::gen::inRange(1, 40);
  const auto layout = *rc::gen::element(Layout::NHWC, Layout::NHCWB16);
  const auto type = *rc::gen::element(ElementType::Int8, ElementType::Int16, ElementType::Int32);
  const FeatureMap fm = denseMap(h, w, c, type, layout, 0, 64);
  const auto size = static_cast<uint64_t>(denseBytes(h, w, c, type, layout));
  std::set<uint64_t> seen;
  for (int y = 0; y < h; ++y) {
    for (int x = 0; x < w; ++x) {
      for (int k = 0; k < c; ++k) {
        const uint64_t address = elementAddress(fm, y, x, k);
        RC_ASSERT(address >= 64 && address + static_cast<uint64_t>(elementBytes(type)) <= 64 + size);
        RC_ASSERT((address - 64) % static_cast<uint64_t>(elementBytes(type)) == 0);
        RC_ASSERT(seen.insert(address).second);
      }
    }
  }
}

RC_GTEST_PROP(Layout, RollingBufferHoldsRowsModuloItsSize, ()) {
  const int rows = *rc::gen::inRange(1, 10), used = *rc::gen::inRange(1, rows + 1),
            first = *rc::gen::inRange(0, 50);
  const auto layout = *rc::gen::element(Layout::NHWC, Layout::NHCWB16);
  FeatureMap fm = denseMap(used, 5, 20, ElementType::Int8, layout, 1, 0);
  placeInRollingBuffer(fm, 4096, rows, first);
  const FeatureMap buffer = denseMap(rows, 5, 20, ElementType::Int8, layout, 1, 4096);
  for (int y = 0; y < used; ++y) {
    RC_ASSERT(elementAddress(fm, y, 4, 17) == elementAddress(buffer, (first + y) % rows, 4, 17));
  }
}

TEST(Layout, FourTiles) {
  FeatureMap fm = denseMap(4, 4, 1, ElementType::Int8, Layout::NHWC, 0, 0);
  fm.base = {0, 1000, 2000, 3000};
  fm.height0 = 1;
  fm.height1 = 3;
  fm.width0 = 2;
  EXPECT_EQ(elementAddress(fm, 0, 1, 0), 1u);
  EXPECT_EQ(elementAddress(fm, 0, 3, 0), 1001u);
  EXPECT_EQ(elementAddress(fm, 2, 0, 0), 2004u);
  EXPECT_EQ(elementAddress(fm, 2, 2, 0), 1008u);
  EXPECT_EQ(elementAddress(fm, 3, 2, 0), 3000u);
}

}  // namespace
}  // namespace carina::npu
