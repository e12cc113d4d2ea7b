// SPDX-License-Identifier: Apache-2.0
// The NPU variants. CONFIG and ID words: ethosu-command-stream 11.1; the ID is the oldest architecture
// version that the streams require, so that drivers for older silicon accept them.
#include "npu/targets/target.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/nearest.hpp"
#include "npu/targets/target_name.hpp"

namespace carina::npu {
namespace {

constexpr uint32_t kIdU55U65 = 0x10060000;  // 1.0.6
constexpr uint32_t kIdU85 = 0x20007000;     // 2.0.0

constexpr std::string_view kU55System = "Ethos_U55_High_End_Embedded", kU65System = "Ethos_U65_High_End",
                           kU85System = "Ethos_U85_SYS_DRAM_Mid";

constexpr Target u55(std::string_view name, int32_t macs, int32_t shram, int32_t lutBanks, uint32_t config) {
  return {name, Family::U55, macs, 1, 1, shram, lutBanks, config, kIdU55U65, kU55System, "Shared_Sram"};
}
constexpr Target u65(std::string_view name, int32_t macs, int32_t cores, uint32_t config) {
  return {name,       Family::U65,           macs, cores, cores, 48, 2, config, kIdU55U65,
          kU65System, "Dedicated_Sram_384KB"};
}
constexpr Target u85(std::string_view name, int32_t macs, int32_t decoders, uint32_t config) {
  return {name, Family::U85, macs, 1, decoders, 0, 0, config, kIdU85, kU85System, "Sram_Only"};
}

constexpr std::array<Target, 11> kTargets{
    u55("ethos-u55-32", 32, 16, 0, 0x00001005),   u55("ethos-u55-64", 64, 16, 0, 0x00001006),
    u55("ethos-u55-128", 128, 24, 2, 0x00001807), u55("ethos-u55-256", 256, 48, 2, 0x00003008),
    u65("ethos-u65-256", 256, 1, 0x10003008),     u65("ethos-u65-512", 512, 2, 0x10006009),
    u85("ethos-u85-128", 128, 1, 0x20000117),     u85("ethos-u85-256", 256, 1, 0x20000118),
    u85("ethos-u85-512", 512, 2, 0x20001119),     u85("ethos-u85-1024", 1024, 4, 0x2000251a),
    u85("ethos-u85-2048", 2048, 4, 0x2000261b),
};

}  // namespace

std::string_view familyName(Family family) {
  switch (family) {
    case Family::U55:
      return "Ethos-U55";
    case Family::U65:
      return "Ethos-U65";
    case Family::U85:
      return "Ethos-U85";
  }
  return "";
}

std::span<const Target> allTargets() {
  return kTargets;
}

std::string canonicalTargetName(std::string_view name) {
  return folded(name);
}

Result<const Target*> findTarget(std::string_view name) {
  const std::string wanted = canonicalTargetName(name);
  for (const Target& target : kTargets) {
    if (target.name == wanted) return &target;
  }
  std::vector<std::string> names;
  names.reserve(std::size(kTargets) + 1);
  for (const Target& target : kTargets) names.emplace_back(target.name);
  names.emplace_back("cpu");
  const std::string nearest = nearestWord(name, names);
  return fail(Code::UnknownName, "unknown target '{}'", name)
      .at("--target")
      .withRemedy(fmt::format("{}targets: {}; carina targets also lists those of Ethos-N78",
                              nearest.empty() ? "" : fmt::format("did you mean {}? ", nearest),
                              fmt::join(names, ", ")));
}

const Target* targetByConfig(uint32_t configWord) {
  const auto* it = std::find_if(kTargets.begin(), kTargets.end(),
                                [&](const Target& target) { return target.configWord == configWord; });
  return it == kTargets.end() ? nullptr : it;
}

}  // namespace carina::npu
