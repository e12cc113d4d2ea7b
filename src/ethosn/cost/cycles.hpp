// SPDX-License-Identifier: Apache-2.0
// MCE and PLE cycles according to the public formulas of Arm's performance estimate, which have no published
// error bound. The model counts them stripe by stripe; the compiler bases its choices on them.
#pragma once

#include <cstdint>
#include <span>

#include "ethosn/stream/command_stream.hpp"
#include "ethosn/stream/ple_kernels.hpp"
#include "ethosn/targets/variant.hpp"

namespace carina::ethosn {

/// A filter, or one of the four into which a strided filter is decomposed.
struct FilterWork {
  int32_t height = 1, width = 1, channels = 1;  // channels: of the input, that it sums over
};

/// What the MCE computes: rows and columns of the output, and its channels.
struct MceWork {
  MceOperation operation = MceOperation::Convolution;
  bool winograd = false;
  int32_t blockWidth = 16,
          blockHeight = 16;  // of the blocks for the PLE, which determine the cost of Winograd transforms
  int32_t height = 0, width = 0, outputs = 0;
};

/// Fully connected: `filters` is one 1x1 filter with all inputs as channels.
uint64_t mceCycles(const Variant& variant, const MceWork& work, std::span<const FilterWork> filters);

/// What a PLE kernel processes: the sizes of its input and of its output.
struct PleWork {
  int32_t inputHeight = 0, inputWidth = 0, channels = 0;  // channels: of the input
  int32_t height = 0, width = 0;
};
uint64_t pleCycles(const Variant& variant, const PleKernel& kernel, const PleWork& work);
/// 4x4 patches that each lane of the PLE processes.
uint64_t plePatches(const Variant& variant, const PleKernel& kernel, const PleWork& work);

}  // namespace carina::ethosn
