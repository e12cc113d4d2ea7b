// SPDX-License-Identifier: Apache-2.0
// Writes an annotation into the graph.
#pragma once

#include <utility>

#include "quantize/annotate.hpp"
#include "quantize/quantize.hpp"
#include "quantize/weight_codes.hpp"

namespace carina::quantize {

/// Inserts quantize/dequantize nodes for every form of every value, and integer weights and biases followed
/// by dequantize nodes. `ranges` and `params` are per group, `codes` are the weights. The report contains
/// ranges, parameters, and the SQNR of constants.
Report insertQuantization(ir::Graph& graph, const Annotation& annotation, const Assignment& assignment,
                          const std::vector<Range>& ranges, const std::vector<QParams>& params,
                          LayerCodes codes);

/// Inserts a quantize node for `value` after `after` (null: at the start) and a dequantize node for its
/// codes. Returns the former and the latter's result.
std::pair<ir::Node*, ir::Value*> insertPair(ir::Graph& graph, ir::Value* value, ir::Node* after,
                                            const QParams& q);

/// Module path of a value's producer, "" if there is none.
std::string modulePathOf(const ir::Value& value);

}  // namespace carina::quantize
