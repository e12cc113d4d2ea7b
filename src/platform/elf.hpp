// SPDX-License-Identifier: Apache-2.0
// Executables for 32-bit Arm: what to load where, for which core they were built, and function names for
// messages. The bytes are not trusted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"

namespace carina::platform {

/// Bytes that the image brings to a (physical) load address.
struct ElfSegment {
  uint32_t address = 0;
  ByteSpan bytes;
  uint32_t offset = 0;  // in the file
};

/// What .ARM.attributes says; nothing where it says nothing.
struct ArmAttributes {
  std::string cpuName;
  std::optional<uint32_t> cpuArch;    // Tag_CPU_arch
  std::optional<uint32_t> profile;    // 'M', 'A', 'R'
  std::optional<uint32_t> fpArch;     // Tag_FP_arch
  std::optional<uint32_t> hardFpUse;  // Tag_ABI_HardFP_use: 1 = single precision only
  std::optional<uint32_t> mveArch;    // Tag_MVE_arch
};

struct ElfImage {
  uint32_t entry = 0;
  std::vector<ElfSegment> segments;  // those with bytes in the file
  ArmAttributes attributes;
  struct Symbol {
    uint32_t address, size;
    std::string_view name;
  };
  std::vector<Symbol> functions;  // by address
  std::vector<Symbol> objects;    // in the order of the file

  /// "main+0x12", or an empty text.
  std::string nameOf(uint32_t address) const;
  /// Where in the file the bytes of an object lie: its address has to be its load address. Nothing where
  /// there is none of that name, or its bytes are not in the file.
  std::optional<uint32_t> fileOffsetOf(std::string_view object) const;
  /// Load address of the section `name`, if there is one.
  std::optional<uint32_t> loadAddressOf(std::string_view name) const;
  struct Section {
    std::string_view name;
    uint32_t address, offset, size;
  };
  std::vector<Section> sections;
};

/// The result borrows `bytes`.
Result<ElfImage> readElf(ByteSpan bytes);

/// Fails when the image is built for an architecture that no Cortex-M has; the message says how to build
/// instead.
Status checkForCortexM(const ArmAttributes& attributes);

}  // namespace carina::platform
