// SPDX-License-Identifier: Apache-2.0
// Converts uint8 networks to int8. The kernels of TensorFlow Lite compute with code - zero point, so codes
// and zero points that are both 128 lower give the same values.
#pragma once

#include <optional>
#include <unordered_set>

#include "ir/graph.hpp"

namespace carina::lower_tfl {

/// uint8 code minus int8 code.
constexpr int64_t kSignedOffset = 128;

struct SignedNetwork {
  ir::Graph graph;
  /// Values of `graph` that are uint8 in the network.
  std::unordered_set<const ir::Value*> bytes;
};

/// A copy of the network (tfl dialect) in which quantized values of uint8 are int8, constants included;
/// unquantized uint8 values are kept. Nothing if there is nothing to change.
std::optional<SignedNetwork> signedCodes(const ir::Graph& network);

/// Whether the operator's kernel treats uint8 like int8, or its rule handles the difference.
bool takesUnsigned(const ir::OpDef& def);

}  // namespace carina::lower_tfl
