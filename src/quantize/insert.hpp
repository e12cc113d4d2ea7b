// SPDX-License-Identifier: Apache-2.0
// Writes an annotation into the graph.
#pragma once

#include <utility>

#include "quantize/annotate.hpp"
#include "quantize/quantize.hpp"
#include "quantize/weight_codes.hpp"

namespace carina::quantize {

/// Quantize/dequantize nodes for every form of every value, integer weights and biases behind dequantize
/// nodes. `ranges` and `params` are per group, `codes` the weights. The report has ranges, parameters, and
/// the SQNR of constants.
Report insertQuantization(ir::Graph& graph, const Annotation& annotation, const Assignment& assignment,
                          const std::vector<Range>& ranges, const std::vector<QParams>& params,
                          LayerCodes codes);

/// A quantize node of `value` behind `after` (null: at the start), and the value that a dequantize node makes
/// of its codes.
std::pair<ir::Node*, ir::Value*> insertPair(ir::Graph& graph, ir::Value* value, ir::Node* after,
                                            const QParams& q);

/// Module path of the node that makes a value, "" when there is none.
std::string modulePathOf(const ir::Value& value);

}  // namespace carina::quantize
