// SPDX-License-Identifier: Apache-2.0
// Networks that come quantized: what their quantizer left between a dequantize and a quantize node as one
// operator (a recurrent layer, attention, a normalisation) computes with values that have no codes.
#pragma once

#include <span>
#include <unordered_set>

#include "quantize/quantize.hpp"

namespace carina::quantize {

/// Gives the float values between these nodes int16 codes and their float weights int8 codes; what the
/// network itself has quantized keeps its codes, and is read by the nodes as 16-bit codes of the same
/// numbers. `nodes` are operators of `graph` that dequantize and quantize nodes surround on all sides.
/// Between int16 codes of the network 16 bits would not do: there inner values get int32 codes, where the
/// operators have a form for these.
///
/// The ranges of the codes are observed: over `samples` of the network's inputs; where there are none, by
/// codes that are made up for every dequantize node in front of the nodes, as far as those of the network
/// reach. `loops`: of the executor.
Status quantizeInside(ir::Graph& graph, const std::unordered_set<const ir::Node*>& nodes,
                      const Settings& settings, std::span<const Sample> samples,
                      std::shared_ptr<WorkBudget> loops = nullptr);

/// Whether there is a smooth, bounded function of int16 codes of the network among these nodes. A TABLE,
/// whose entries and results are rounded, gives a code more or less than PyTorch in every third place, and
/// here and there two.
bool hasFunctionOf16Bits(std::span<ir::Node* const> nodes);

}  // namespace carina::quantize
