// SPDX-License-Identifier: Apache-2.0
// Networks that come with quantized_decomposed nodes, in the form that the quantizer itself writes.
#pragma once

#include "ir/graph.hpp"

namespace carina::quantize {

/// Rewrites without changing a single code: quantize nodes over constants (unfolded PT2E weights) become
/// integer constants, computed scales and zero points constants, and those that are tensors of one constant
/// numbers.
Status settleParameters(ir::Graph& graph);

/// The same, and:
///  - addmm and mm with a transposed quantized weight, which run_decompositions() makes of linear, become
///  linear
///    again, without the reshapes around them;
///  - uint8 codes become int8 codes of the same reals (zero point and limits less 128). Where the program
///  itself
///    takes or returns uint8, a conversion stays at its boundary.
/// Call it before decompose::forNpu.
Status normalizePrequantized(ir::Graph& graph);

}  // namespace carina::quantize
