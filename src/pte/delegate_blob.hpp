// SPDX-License-Identifier: Apache-2.0
// The Ethos-U delegate blob: command stream payload, constants, scratch size, inputs and outputs.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "pte/program.hpp"

namespace carina::pte {

/// One input or output of the command stream in the scratch arena.
struct BlobIo {
  std::array<int32_t, 6> shape{1, 1, 1, 1, 1, 1};  // storage shape, padded with 1 on the left
  int32_t elementBytes = 1;
  int32_t offset = 0;  // in the region, multiple of 16
  int32_t region = 1;
  friend bool operator==(const BlobIo&, const BlobIo&) = default;

  /// Rank at most 6 (CHECKed).
  static BlobIo of(const Shape& shape, int32_t elementBytes, int64_t offset);
  int64_t bytes() const;
};

struct DelegateBlob {
  ByteVector payload;         // driver payload, "COP1" first
  ByteVector constants;       // region 0
  uint32_t scratchBytes = 0;  // region 1
  std::vector<BlobIo> inputs, outputs;
  /// Keys of named data that hold payload or constants instead (empty: inside the blob).
  std::string payloadKey, constantsKey;
  friend bool operator==(const DelegateBlob&, const DelegateBlob&) = default;
};

/// The size is a multiple of 16; the blob must be at a 16-byte aligned address.
ByteVector buildDelegateBlob(const DelegateBlob& blob);
/// The same with constants that are stored elsewhere, so that those of a network need not be copied.
ByteVector buildDelegateBlob(const DelegateBlob& blob, ByteSpan constants);
/// Reads a blob (untrusted); errors name block and byte offset.
Result<DelegateBlob> parseDelegateBlob(ByteSpan bytes);

/// What compilers for Ethos-U record in a program alongside the blob. Read back by ethosUSettings().
struct EthosUSettings {
  std::string target;        // "ethos-u55-128"
  std::string systemConfig;  // "Ethos_U55_High_End_Embedded"
  std::string memoryMode;    // "Shared_Sram"
  bool quantizedIo = false;  // program inputs and outputs are integers
  /// Carina's own entry: the parts of system configuration and memory mode that are not stock, in the grammar
  /// of vela.ini (npu::describeMemories). Other tools ignore it.
  std::string memories = {};
};
std::vector<CompileSpec> ethosUCompileSpecs(const EthosUSettings& settings);
/// Strings are empty where the specs have no entry.
EthosUSettings ethosUSettings(std::span<const CompileSpec> specs);

}  // namespace carina::pte
