// SPDX-License-Identifier: Apache-2.0
// The variants of Ethos-N78 and the constants derived from them. One row per variant (variant.cpp); all
// hardware constants are defined here.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace carina::ethosn {

/// Engine configurations for which PLE kernels exist, in the order of the kernel ids (99 kernels each:
/// stream/ple_kernels.hpp).
enum class PleFamily : uint8_t { V2442, V4442, V8222, V8422 };

struct Variant {
  std::string_view name;             // "ethos-n78-4tops-4ple"
  std::string_view fullName;         // "Ethos-N78_4TOPS_4PLE_RATIO"
  int32_t engines;                   // compute engines (CEs): each with one MCE and one PLE
  int32_t igsPerEngine;              // input generators: IFM channels that an engine reads at once
  int32_t ogsPerEngine;              // output generators: OFMs that an engine produces at once
  int32_t banksPerEngine;            // SRAM banks (EMCs)
  int32_t pleLanes;                  // 16-byte lanes of the PLE's vector unit
  int64_t defaultSramBytes;          // all banks together
  std::optional<PleFamily> kernels;  // none: the firmware has no PLE kernels for this configuration

  constexpr int32_t igs() const { return engines * igsPerEngine; }
  constexpr int32_t ogs() const { return engines * ogsPerEngine; }
  constexpr int32_t banks() const { return engines * banksPerEngine; }
};

/// A variant, and the SRAM size for which a network is compiled.
struct Target {
  const Variant* variant = nullptr;
  int64_t sramBytes = 0;  // all banks together

  int64_t bankBytes() const { return sramBytes / variant->banks(); }
};

// Common to all variants.
inline constexpr int64_t kPleKernelMaxBytes = 4096;  // PLE code RAM; a kernel's space in each bank
inline constexpr int32_t kMaxTileSlots = 16;         // slots of a tile: the slot number has four bits
inline constexpr int32_t kBrickEdge = 8;             // a brick group is 8x8 elements of 16 channels
inline constexpr int32_t kBrickDepth = 16;
inline constexpr int32_t kPatchEdge = 4;  // a patch is 4x4 elements of one channel: 16 bytes
inline constexpr int32_t kMacUnitsPerOg = 8;
inline constexpr int32_t kAccumulatorsPerOg = 512;
inline constexpr int32_t kMaxEngines = 8;
inline constexpr int32_t kMaxBanks = 16;

/// All seven, including those without PLE kernels.
std::span<const Variant> allVariants();

/// By name; case does not matter, and '_' is equivalent to '-'. Names of the retired generations (N37, N57,
/// N77) fail with the reason, other unknown names with the list of known names.
Result<const Variant*> findVariant(std::string_view name);

/// Whether a target name denotes this family ("ethos-n..."), even if there is no such variant.
bool isEthosNName(std::string_view name);

/// Fails for a variant for which nothing can be compiled, because the firmware has no PLE kernels for it.
Status requireKernels(const Variant& variant);

/// `sramBytes` 0: the variant's default. Fails if the hardware cannot be built with that size: each input
/// generator has 32 to 128 KiB in multiples of 16 KiB, 56 KiB, or 256 KiB.
Result<Target> makeTarget(const Variant& variant, int64_t sramBytes = 0);

/// A variant by name, optionally followed by ':' and the SRAM size in bytes, K or M if it is not the default:
/// "ethos-n78-4tops-4ple:512K". Errors are those of findVariant and makeTarget.
Result<Target> findTarget(std::string_view name);

/// The name that findTarget accepts.
std::string nameOf(const Target& target);

/// The 30 words that describe the hardware to a compiler (capabilities version 7).
std::array<uint32_t, 30> capabilities(const Target& target);

}  // namespace carina::ethosn
