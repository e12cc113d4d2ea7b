// SPDX-License-Identifier: Apache-2.0
#include "firmware/platforms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace carina::firmware {
namespace {

constexpr int64_t kKiB = 1024, kMiB = 1024 * kKiB;

// Secure addresses; sizes that every version of the board has.
constexpr MemoryRegion kRegions300[] = {
    {"ITCM", 0x10000000, 512 * kKiB}, {"BRAM", 0x11000000, kMiB},      {"DTCM", 0x30000000, 512 * kKiB},
    {"SRAM", 0x31000000, 2 * kMiB},   {"DDR", 0x70000000, 256 * kMiB},
};
constexpr MemoryRegion kRegions320[] = {
    {"ROM", 0x11000000, 128 * kKiB}, {"BRAM", 0x12000000, 2 * kMiB},  {"DTCM", 0x30000000, 32 * kKiB},
    {"SRAM", 0x31000000, 4 * kMiB},  {"DDR", 0x70000000, 256 * kMiB},
};
constexpr npu::Family kFamilies300[] = {npu::Family::U55, npu::Family::U65};
constexpr npu::Family kFamilies320[] = {npu::Family::U85};

constexpr PlatformInfo kPlatforms[] = {
    {"corstone-300", "kCorstone300", kFamilies300, kRegions300, "ITCM", "ITCM", "DTCM", "DTCM", "SRAM",
     "DDR"},
    {"corstone-320", "kCorstone320", kFamilies320, kRegions320, "ROM", "BRAM", "DTCM", "DTCM", "SRAM", "DDR"},
};

}  // namespace

bool PlatformInfo::carries(npu::Family family) const {
  return std::find(families.begin(), families.end(), family) != families.end();
}

const MemoryRegion& PlatformInfo::region(std::string_view wanted) const {
  const auto found = std::find_if(regions.begin(), regions.end(),
                                  [&](const MemoryRegion& region) { return region.name == wanted; });
  CARINA_CHECK(found != regions.end(), "a platform names a region that it does not have");
  return *found;
}

std::span<const PlatformInfo> platforms() {
  return kPlatforms;
}

Result<const PlatformInfo*> findPlatform(std::string_view name) {
  std::vector<std::string_view> names;
  for (const PlatformInfo& platform : kPlatforms) {
    if (platform.name == name) return &platform;
    names.push_back(platform.name);
  }
  return fail(Code::UnknownName, "unknown platform '{}'", name)
      .at("--platform")
      .withRemedy(fmt::format("platforms: {}", fmt::join(names, ", ")));
}

}  // namespace carina::firmware
