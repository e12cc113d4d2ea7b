// SPDX-License-Identifier: Apache-2.0
// Networks that come with quantized_decomposed nodes, in the form that the quantizer itself writes.
#pragma once

#include "ir/graph.hpp"

namespace carina::quantize {

/// Rewrites that change no code: quantize nodes of constants (unfolded PT2E weights) become integer
/// constants, computed scales and zero points become constants, and single-element constant tensors become
/// numbers.
Status settleParameters(ir::Graph& graph);

/// The same, and:
///  - addmm and mm with a transposed quantized weight, into which run_decompositions() turns linear,
///    become linear again, without the reshapes around them;
///  - uint8 codes become int8 codes of the same real values (zero point and limits less 128). If the program
///    itself takes or returns uint8, a conversion remains at its boundary.
/// Call it before decompose::forNpu.
Status normalizePrequantized(ir::Graph& graph);

}  // namespace carina::quantize
