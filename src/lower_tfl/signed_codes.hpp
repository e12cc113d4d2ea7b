// SPDX-License-Identifier: Apache-2.0
// Networks of uint8 as networks of int8. The kernels of TensorFlow Lite compute with code - zero point, so
// codes and zero points that are both 128 lower give the same numbers.
#pragma once

#include <optional>
#include <unordered_set>

#include "ir/graph.hpp"

namespace carina::lower_tfl {

/// Of codes: uint8 less int8.
constexpr int64_t kSignedOffset = 128;

struct SignedNetwork {
  ir::Graph graph;
  /// Values of `graph` that are uint8 in the network.
  std::unordered_set<const ir::Value*> bytes;
};

/// A copy of the network (tfl dialect) in which quantized values of uint8 are int8, constants included; what
/// is uint8 without a quantization stays. None when there is nothing to change.
std::optional<SignedNetwork> signedCodes(const ir::Graph& network);

/// Whether the operator's kernel computes uint8 as it computes int8, or its rule knows the difference.
bool takesUnsigned(const ir::OpDef& def);

}  // namespace carina::lower_tfl
