// SPDX-License-Identifier: Apache-2.0
// Concatenations give what they join one range. That is right where the parts are alike; a part of [0, 1]
// beside one of [0, 500] is left with one code. Nothing is lost where only the concatenation reads it, which
// hands on the common codes anyway. But where computations read the same values too (YOLO: boxes and classes
// are parts of one sigmoid), they need its own codes: the concatenation then reads the part in a form of its
// own.
#pragma once

#include "base/result.hpp"
#include "quantize/annotate.hpp"

namespace carina::quantize {

/// The operands of concatenations that are to be read in a form of their own: those that share their range
/// with values which computations read, and have less than 1/8 of the range of the whole in the sample (in
/// int8 only: 16 bits have codes enough). The network runs only if there are operands that could be such.
Result<Reads> narrowOperands(const ir::Graph& graph, const Annotation& annotation, const Sample& sample);

}  // namespace carina::quantize
