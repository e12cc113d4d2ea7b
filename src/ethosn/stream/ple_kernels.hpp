// SPDX-License-Identifier: Apache-2.0
// The PLE kernels in the firmware, by the ids that command streams use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ethosn/targets/variant.hpp"

namespace carina::ethosn {

enum class PleOperation : uint8_t {
  Addition,
  AdditionRescale,
  AvgPool3x3,
  Downsample2x2,
  Interleave2x2,
  LeakyRelu,
  MaxPool2x2,
  MaxPool3x3Even,
  MaxPool3x3Odd,
  MeanXy7x7,
  MeanXy8x8,
  Passthrough,
  Sigmoid,
  TransposeXy,
  MaxPool1d,
  Multiplication,
};
const char* pleOperationName(PleOperation operation);  // "MAXPOOL_2X2_2_2"

/// How a kernel interprets its values; kernels that only move bytes exist once for both.
enum class PleSignedness : uint8_t { Any, Unsigned, Signed };
enum class PleAxis : uint8_t { None, X, Y };

struct PleKernel {
  PleOperation operation = PleOperation::Passthrough;
  PleSignedness signedness = PleSignedness::Any;
  uint8_t blockWidth = 0, blockHeight = 0;  // of MCE blocks; 0: not specified by the kernel
  uint8_t blockMultiplier = 1;              // MCE blocks that it processes at once
  PleAxis axis = PleAxis::None;             // MaxPool1d
  friend bool operator==(const PleKernel&, const PleKernel&) = default;
};

inline constexpr uint16_t kPleKernelsPerFamily = 99;

struct KernelId {
  PleFamily family;
  PleKernel kernel;
};

/// Empty for ids other than the 396 known ones.
std::optional<KernelId> pleKernel(uint16_t id);
/// Empty if the family has no such kernel.
std::optional<uint16_t> pleKernelId(PleFamily family, const PleKernel& kernel);
/// "V8222 PASSTHROUGH 8x8 x2"; "unknown kernel 500".
std::string pleKernelName(uint16_t id);

}  // namespace carina::ethosn
