// SPDX-License-Identifier: Apache-2.0
// Concatenations give what they join one range. That is right where the parts are alike; a part of [0, 1]
// beside one of [0, 500] is left with one code.
//
// Where computations read the same values too (YOLO: boxes and classes are parts of one sigmoid), they need
// codes of their own: the concatenation then reads the part in a form of its own. Where the result only
// leaves the program as float, the parts are joined as codes of 32 bits, and each keeps its range.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "aten/executor.hpp"
#include "base/result.hpp"
#include "quantize/annotate.hpp"

namespace carina::quantize {

struct Joins {
  /// Operands that are to be read in a form of their own: those that share their range with values which
  /// computations read, and have less than 1/8 of the range of the whole (int8 only).
  Reads apart;
  /// Concatenations of unlike parts, and what moves their elements on to the program's float results: they
  /// get wide codes. In int8 a part is unlike with less than 1/8 of the range of the whole, in int16 with
  /// less than 1/64.
  std::vector<const ir::Node*> widely;
  /// What the parts of concatenations, choices by element and scattered slices hold in the sample.
  std::unordered_map<const ir::Value*, Range> ranges;
  std::optional<std::vector<Tensor>> outputs;  // of the network, where it ran
};

/// Looks at the concatenations of the graph, and at what else puts elements of several values into one. The
/// network runs only if there are any, and `show` sees its values then.
Result<Joins> joinsOf(const ir::Graph& graph, const Assignment& assignment, const Annotation& annotation,
                      const Options& options, const Sample& sample, const aten::Observer& show = nullptr);

/// A warning for each of them that leaves some part fewer than 16 codes, with the part and their number.
std::vector<Diagnostic> scarceParts(const ir::Graph& graph, const Annotation& annotation,
                                    const std::vector<QParams>& params, const Joins& joins);

}  // namespace carina::quantize
