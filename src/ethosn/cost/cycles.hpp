// SPDX-License-Identifier: Apache-2.0
// Cycles of MCE and PLE by the public formulas of Arm's performance estimate, which have no published error
// bound. The model counts them stripe by stripe, the compiler chooses by them.
#pragma once

#include <cstdint>
#include <span>

#include "ethosn/stream/command_stream.hpp"
#include "ethosn/stream/ple_kernels.hpp"
#include "ethosn/targets/variant.hpp"

namespace carina::ethosn {

/// A filter, or one of the four that a strided filter falls apart into.
struct FilterWork {
  int32_t height = 1, width = 1, channels = 1;  // channels: of the input that it sums over
};

/// What the MCE computes: rows and columns of the output, and its channels.
struct MceWork {
  MceOperation operation = MceOperation::Convolution;
  bool winograd = false;
  int32_t blockWidth = 16,
          blockHeight = 16;  // of the blocks that go to the PLE: Winograd's transform counts them
  int32_t height = 0, width = 0, outputs = 0;
};

/// Fully connected: `filters` is one of 1x1 with all inputs as channels.
uint64_t mceCycles(const Variant& variant, const MceWork& work, std::span<const FilterWork> filters);

/// What a PLE kernel takes and makes: sizes of what it reads, and of its output.
struct PleWork {
  int32_t inputHeight = 0, inputWidth = 0, channels = 0;  // channels: of the input
  int32_t height = 0, width = 0;
};
uint64_t pleCycles(const Variant& variant, const PleKernel& kernel, const PleWork& work);
/// Squares of 4x4 elements that each lane of the PLE goes through.
uint64_t plePatches(const Variant& variant, const PleKernel& kernel, const PleWork& work);

}  // namespace carina::ethosn
