// SPDX-License-Identifier: Apache-2.0
#include "ethosn/targets/variant.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace carina::ethosn {
namespace {

constexpr int64_t kKiB = 1024;

//  name, full name, CEs, IGs/CE, OGs/CE, banks/CE, PLE lanes, SRAM, PLE kernels
constexpr Variant kVariants[] = {
    {"ethos-n78-1tops-2ple", "Ethos-N78_1TOPS_2PLE_RATIO", 2, 4, 4, 4, 1, 448 * kKiB, std::nullopt},
    {"ethos-n78-1tops-4ple", "Ethos-N78_1TOPS_4PLE_RATIO", 2, 4, 4, 4, 2, 448 * kKiB, PleFamily::V2442},
    {"ethos-n78-2tops-2ple", "Ethos-N78_2TOPS_2PLE_RATIO", 4, 2, 4, 2, 1, 768 * kKiB, std::nullopt},
    {"ethos-n78-2tops-4ple", "Ethos-N78_2TOPS_4PLE_RATIO", 4, 2, 4, 2, 2, 768 * kKiB, std::nullopt},
    {"ethos-n78-4tops-2ple", "Ethos-N78_4TOPS_2PLE_RATIO", 4, 4, 4, 4, 2, 1024 * kKiB, PleFamily::V4442},
    {"ethos-n78-4tops-4ple", "Ethos-N78_4TOPS_4PLE_RATIO", 8, 2, 2, 2, 2, 1024 * kKiB, PleFamily::V8222},
    {"ethos-n78-8tops-2ple", "Ethos-N78_8TOPS_2PLE_RATIO", 8, 2, 4, 2, 2, 2048 * kKiB, PleFamily::V8422},
};

/// Lower case, '-' for '_', without the suffix "-ratio" of the full names.
std::string normalized(std::string_view name) {
  std::string out(name);
  for (char& c : out) c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  constexpr std::string_view kEnding = "-ratio";
  if (out.ends_with(kEnding)) out.resize(out.size() - kEnding.size());
  return out;
}

std::string namesWithKernels() {
  std::string names;
  for (const Variant& variant : kVariants) {
    if (!variant.kernels) continue;
    if (!names.empty()) names += ", ";
    names += variant.name;
  }
  return names;
}

}  // namespace

std::span<const Variant> allVariants() {
  return kVariants;
}

bool isEthosNName(std::string_view name) {
  const std::string wanted = normalized(name);
  return wanted.starts_with("ethos-n") || wanted.starts_with("ethosn");
}

Result<const Variant*> findVariant(std::string_view name) {
  const std::string wanted = normalized(name);
  for (const Variant& variant : kVariants) {
    if (variant.name == wanted) return &variant;
  }
  for (std::string_view retired : {"ethos-n37", "ethos-n57", "ethos-n77"}) {
    if (wanted.starts_with(retired)) {
      return fail(Code::MissingCapability,
                  "{} is retired: nothing public describes its command stream, and Arm's stack dropped it in "
                  "21.08",
                  name)
          .withRemedy("compile for an Ethos-N78: " + namesWithKernels());
    }
  }
  return fail(Code::UnknownName, "unknown Ethos-N variant '{}'", name)
      .withRemedy("choose one of: " + namesWithKernels());
}

Status requireKernels(const Variant& variant) {
  if (variant.kernels) return {};
  return fail(Code::MissingCapability,
              "nothing can be compiled for {}: the firmware has no PLE kernels for {} engines with {} lanes",
              variant.name, variant.engines, variant.pleLanes)
      .withRemedy("choose one of: " + namesWithKernels());
}

Result<Target> makeTarget(const Variant& variant, int64_t sramBytes) {
  if (sramBytes == 0) return Target{&variant, variant.defaultSramBytes};
  const std::string remedy = fmt::format(
      "give each of the {} input generators 32 to 128 KiB, or 256 KiB, in steps of 16 KiB", variant.igs());
  const int64_t each = sramBytes / variant.igs();
  if (sramBytes < 0 || each < 32 * kKiB) {
    return fail(Code::BadOption, "{} bytes of SRAM are less than {} can be built with", sramBytes,
                variant.name)
        .withRemedy(remedy);
  }
  if (each > 128 * kKiB && each != 256 * kKiB) {
    return fail(Code::BadOption, "{} bytes of SRAM are more than {} can be built with", sramBytes,
                variant.name)
        .withRemedy(remedy);
  }
  if (each % (16 * kKiB) != 0 && each != 56 * kKiB) {
    return fail(Code::BadOption,
                "{} bytes of SRAM are {} bytes for each input generator, which is not a multiple of 16 KiB",
                sramBytes, each)
        .withRemedy(remedy);
  }
  if (sramBytes % variant.igs() != 0) {
    return fail(Code::BadOption, "{} bytes of SRAM cannot be divided among {} input generators", sramBytes,
                variant.igs())
        .withRemedy(remedy);
  }
  return Target{&variant, sramBytes};
}

Result<Target> findTarget(std::string_view name) {
  const size_t colon = name.find(':');
  CARINA_TRY(const Variant* variant, findVariant(name.substr(0, colon)));
  if (colon == std::string_view::npos) return makeTarget(*variant);
  std::string_view text = name.substr(colon + 1);
  int64_t unit = 1;
  if (text.ends_with('K') || text.ends_with('k')) unit = kKiB;
  if (text.ends_with('M') || text.ends_with('m')) unit = kKiB * kKiB;
  if (unit > 1) text.remove_suffix(1);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  constexpr int64_t kMost = int64_t{1} << 31;
  if (error != std::errc() || end != text.data() + text.size() || number < 1 || number > kMost) {
    return fail(Code::BadOption, "'{}' is not a number of bytes of SRAM", name.substr(colon + 1))
        .withRemedy(
            fmt::format("write, for example, {}:{}K", variant->name, variant->defaultSramBytes / kKiB));
  }
  return makeTarget(*variant, number * unit);
}

std::string nameOf(const Target& target) {
  if (target.sramBytes == target.variant->defaultSramBytes) return std::string(target.variant->name);
  return fmt::format("{}:{}K", target.variant->name, target.sramBytes / kKiB);
}

std::array<uint32_t, 30> capabilities(const Target& target) {
  const Variant& variant = *target.variant;
  const auto word = [](int64_t value) { return static_cast<uint32_t>(value); };
  return {7,  // version, bytes, then the range of command stream versions
          30 * sizeof(uint32_t),
          8,
          0,
          8,
          0,
          word(target.sramBytes),
          word(variant.engines),
          word(variant.ogsPerEngine),
          word(variant.igsPerEngine),
          word(variant.banksPerEngine),
          word(kPleKernelMaxBytes),
          8,  // boundary stripes: height, slots; central slots
          8,
          8,
          1,  // brick group and patch as N, H, W, C
          kBrickEdge,
          kBrickEdge,
          kBrickDepth,
          1,
          kPatchEdge,
          kPatchEdge,
          1,
          kMacUnitsPerOg,
          kAccumulatorsPerOg / kMacUnitsPerOg,
          kAccumulatorsPerOg,
          word(variant.pleLanes),
          1,  // weight compression, activation compression, NCHW
          1,
          1};
}

}  // namespace carina::ethosn
