// SPDX-License-Identifier: Apache-2.0
// Logarithms whose arguments differ by more than 16-bit codes can tell apart: of the powers of a spectrum,
// whose quiet bands are a millionth of the loud ones.
#pragma once

#include <vector>

#include "quantize/annotate.hpp"
#include "quantize/observer.hpp"

namespace carina::quantize {

/// Operators that need finer codes than their own.
struct WideLogarithms {
  /// With 32-bit codes: the logarithms, and the sums, products with constants, roots and moves that compute
  /// their arguments, back to the operators that square, or to layers.
  std::vector<const ir::Node*> wide;
  /// With 16-bit codes: the operators in front of these.
  std::vector<const ir::Node*> front;
};

/// `ranges`: of the annotation's groups. Without operators that rules name.
WideLogarithms operatorsOfWideLogarithms(const ir::Graph& graph, const Assignment& assignment,
                                         const Annotation& annotation, const std::vector<Range>& ranges);

}  // namespace carina::quantize
