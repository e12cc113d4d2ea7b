// SPDX-License-Identifier: Apache-2.0
// Splits convolutions with many weights over ranges of output channels, so that the weights of each part can
// be fetched into fast memory when they fit.
#pragma once

#include "compiler/dialect/npu_ir.hpp"

namespace carina::compiler {

/// Splits every CONV whose encoded weights take between kPartBytes and kMaxParts times that into parts of at
/// most about kPartBytes, each a multiple of 16 output channels. Larger weights would fill any fast memory:
/// they are read in slices. The graph must be made addressable afterwards.
void splitWeights(ir::Graph& graph);

constexpr int64_t kPartBytes = 256 * 1024;
constexpr int64_t kMaxParts = 16;

}  // namespace carina::compiler
