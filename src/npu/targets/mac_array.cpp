// SPDX-License-Identifier: Apache-2.0
#include "npu/targets/mac_array.hpp"

#include "base/check.hpp"

namespace carina::npu {
namespace {

constexpr BlockShape kU55x32[] = {{1, 1, 4}};
constexpr BlockShape kU55x64[] = {{1, 1, 8}};
constexpr BlockShape kU55x128[] = {{1, 2, 8}};
constexpr BlockShape kU55x256[] = {{2, 2, 8}};
constexpr BlockShape kU85x128[] = {{1, 2, 8}, {1, 1, 16}};
constexpr BlockShape kU85x256[] = {{1, 2, 16}, {1, 4, 8}, {2, 2, 8}};
constexpr BlockShape kU85x512[] = {{2, 2, 16}, {1, 4, 16}};
constexpr BlockShape kU85x1024[] = {{2, 2, 32}, {1, 4, 32}, {2, 4, 16}};
constexpr BlockShape kU85x2048[] = {{2, 2, 64}, {1, 4, 64}, {4, 4, 16}};

constexpr AllocationUnits k128{{{1, 2, 1}, {1, 1, 2}, {1, 1, 2}}};
constexpr AllocationUnits k256{{{2, 2, 1}, {1, 2, 2}, {1, 1, 4}}},
    kWide256{{{1, 4, 1}, {1, 2, 2}, {1, 1, 4}}};
constexpr AllocationUnits k1024{{{2, 4, 1}, {2, 2, 2}, {1, 2, 4}}},
    kWide1024{{{2, 4, 1}, {1, 4, 2}, {1, 2, 4}}};
constexpr AllocationUnits k2048{{{4, 4, 1}, {2, 4, 2}, {2, 2, 4}}},
    kWide2048{{{4, 4, 1}, {2, 4, 2}, {1, 4, 4}}};

struct Size {
  Family family;
  int32_t macs, cores;
};
constexpr Size kSizes[] = {
    {Family::U55, 32, 1},  {Family::U55, 64, 1},   {Family::U55, 128, 1},  {Family::U55, 256, 1},
    {Family::U65, 256, 1}, {Family::U65, 512, 2},  {Family::U85, 128, 1},  {Family::U85, 256, 1},
    {Family::U85, 512, 1}, {Family::U85, 1024, 1}, {Family::U85, 2048, 1},
};

constexpr OutputRates kRates256{{0.625, 1.125, 0.5, 0.375, 0.5, 0.75, 0.125, 0.25}, {1, 0.25, 0}};
constexpr Granules kGranules256{8, 16, 16, 20};

/// In the order of kSizes.
constexpr MacArray kArrays[] = {
    {kU55x32, {{2, 3, 3, 3, 4, 6, 1, 2}, {1, 1, 0}}, {2, 4, 4, 4}},
    {kU55x64, {{1, 1.5, 1.5, 1.5, 2, 3, 0.5, 1}, {1, 1, 0}}, {2, 4, 4, 8}},
    {kU55x128, {{0.75, 1.25, 0.75, 0.75, 1, 1.5, 0.25, 0.5}, {1, 0.5, 0}}, {4, 8, 8, 12}},
    {kU55x256, kRates256, kGranules256},
    {kU55x256, kRates256, kGranules256},
    {kU55x256, {{0.3125, 0.5625, 0.25, 0.1875, 0.25, 0.375, 0.0625, 0.125}, {0.5, 0.125, 0}}, kGranules256},
    {kU85x128,
     {{.5, .5, .5, 1, 1, 1}, {.5, 1}},
     {},
     k128,
     k128,
     {8192, 8192, 2048, 768},
     {64, 64, 128, 128, 104, 16}},
    {kU85x256,
     {{.25, .25, .25, .5, .5, .5}, {.25, .5}},
     {},
     k256,
     kWide256,
     {16384, 16384, 2048, 1536},
     {104, 104, 128, 128, 128, 16}},
    {kU85x512,
     {{.125, .125, .25, .5, .25, .25}, {.125, .25}},
     {},
     k256,
     kWide256,
     {16384, 32768, 4096, 3072},
     {128, 128, 256, 256, 128, 16}},
    {kU85x1024,
     {{.0625, .125, .25, .5, .125, .25}, {.0625, .125}},
     {},
     k1024,
     kWide1024,
     {16384, 65536, 4096, 6144},
     {256, 256, 416, 208, 256, 16}},
    {kU85x2048,
     {{.03125, .0625, .125, .25, .0625, .125}, {.03125, .0625}},
     {},
     k2048,
     kWide2048,
     {32768, 131072, 8192, 12288},
     {256, 256, 512, 256, 256, 16}},
};
static_assert(std::size(kSizes) == std::size(kArrays));

}  // namespace

const MacArray& macArrayOf(const Target& target) {
  size_t i = 0;
  while (kSizes[i].family != target.family || kSizes[i].macs != target.macs ||
         kSizes[i].cores != target.cores) {
    ++i;
    CARINA_CHECK(i < std::size(kSizes), "every target's MAC array has a row");
  }
  return kArrays[i];
}

}  // namespace carina::npu
