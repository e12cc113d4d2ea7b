// SPDX-License-Identifier: Apache-2.0
// Executables for 32-bit Arm: segments to load, the core they were built for, and function names for
// messages. The bytes are untrusted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"

namespace carina::platform {

/// Bytes of the image for a (physical) load address.
struct ElfSegment {
  uint32_t address = 0;
  ByteSpan bytes;
  uint32_t offset = 0;  // in the file
};

/// The contents of .ARM.attributes; empty if not specified.
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

  /// "main+0x12", or empty.
  std::string nameOf(uint32_t address) const;
  /// Offset of the bytes of an object in the file; its address must be its load address. nullopt if there is
  /// none of that name, or its bytes are not in the file.
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

/// Fails if the image is built for an architecture that no Cortex-M implements; the message says how to build
/// it.
Status checkForCortexM(const ArmAttributes& attributes);

}  // namespace carina::platform
