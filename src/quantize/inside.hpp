// SPDX-License-Identifier: Apache-2.0
// Prequantized networks: operators that their quantizer left whole between dequantize and quantize nodes (a
// recurrent layer, attention, a normalisation) have inner values without codes.
#pragma once

#include <span>
#include <unordered_set>

#include "quantize/quantize.hpp"

namespace carina::quantize {

/// Gives the float values between these nodes int16 codes and their float weights int8 codes. Values that the
/// network itself has quantized keep their codes, which the nodes read as 16-bit codes of the same real
/// values. `nodes` are operators of `graph` that are surrounded by dequantize and quantize nodes. Between
/// int16 codes of the network, 16 bits are not precise enough: there, inner values get int32 codes if the
/// operators have a form for them.
///
/// Ranges are observed on synthetic codes for every dequantize node that feeds the nodes, within the
/// network's code limits. With `samples` of the network's inputs, ranges are observed on these, and synthetic
/// codes extend them at most to twice their magnitude. `loops`: the executor's budget.
Status quantizeInside(ir::Graph& graph, const std::unordered_set<const ir::Node*>& nodes,
                      const Settings& settings, std::span<const Sample> samples,
                      std::shared_ptr<WorkBudget> loops = nullptr);

/// Whether these nodes include a smooth, bounded function of int16 codes of the network. A TABLE, whose
/// entries and results are rounded, differs from PyTorch by one code in every third element, and occasionally
/// by two.
bool hasFunctionOf16Bits(std::span<ir::Node* const> nodes);

/// Whether the operator has a form for 32-bit codes (src/lower/wide_rules.cpp), or only moves or compares
/// codes.
bool takesWideCodes(const ir::Node& node);

}  // namespace carina::quantize
