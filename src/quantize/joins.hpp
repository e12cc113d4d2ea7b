// SPDX-License-Identifier: Apache-2.0
// Concatenations give their parts a common range. This suits similar parts; but a part in [0, 1] next to one
// in [0, 500] is left with one code.
//
// If computations read the same values as well (YOLO: boxes and classes are parts of one sigmoid), they need
// finer codes: the concatenation then reads the part in a separate form. If the result is only returned by
// the program as float, the parts are joined as 32-bit codes, and each keeps its range.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "aten/executor.hpp"
#include "base/result.hpp"
#include "quantize/annotate.hpp"
#include "quantize/seen.hpp"

namespace carina::quantize {

struct Joins {
  /// Operands to be read in a form of their own: those whose values computations also read, and which span
  /// less than 1/8 of the range of the whole (int8 only).
  Reads apart;
  /// Concatenations of unlike parts, and the operators that move their elements to the program's float
  /// results: they get wide codes. A part is unlike the others if it spans less than 1/8 of the range of the
  /// whole in int8, or less than 1/64 in int16.
  std::vector<const ir::Node*> widely;
  /// Ranges of the parts of concatenations, elementwise selections and slice scatters: of joinsOf(), in its
  /// sample; of a plan, in all samples.
  RangesOf ranges;
  std::optional<std::vector<Tensor>> outputs;  // of the network, if it ran
};

/// Examines concatenations and other operators that combine elements of several values. The network runs only
/// if there are any; `show` then observes its values.
Result<Joins> joinsOf(const ir::Graph& graph, const Assignment& assignment, const Annotation& annotation,
                      const Options& options, const Sample& sample, const aten::Observer& show = nullptr);

/// A warning for each of them that leaves some part fewer than 16 codes; names the part and the number of
/// codes.
std::vector<Diagnostic> scarceParts(const ir::Graph& graph, const Annotation& annotation,
                                    const std::vector<QParams>& params, const Joins& joins);

}  // namespace carina::quantize
