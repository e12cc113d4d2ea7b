// SPDX-License-Identifier: Apache-2.0
// Numbers that stand for "less than everything", such as the least float, where a mask hides values from an
// exp() or a maximum. As numbers they would use up a range, so observers do not see them; they get the
// smallest code.
#pragma once

#include <limits>
#include <span>
#include <unordered_set>
#include <vector>

#include "ir/graph.hpp"
#include "quantize/annotate.hpp"

namespace carina::quantize {

/// Not -inf, which softmax writes where it also writes the result of exp(): any code does.
inline bool isHidden(double x) {
  return x <= -1e30 && x >= static_cast<double>(std::numeric_limits<float>::lowest());
}

class HiddenValues {
 public:
  /// Finds the values that can contain such numbers: constants, and what is computed from them.
  explicit HiddenValues(const ir::Graph& graph);

  bool canBeIn(const Group& group) const;

  /// `values`, or a copy in `memory` with -inf in place of such numbers, which sets `found`.
  static std::span<const float> without(std::span<const float> values, std::vector<float>& memory,
                                        bool& found);

  /// The range of a group in which such numbers were found. If its values reach a function, the smallest code
  /// must be far enough below the others that the function treats it as -inf: exp(-16) = 1e-7.
  static Range withRoom(Range range, const Group& group);

 private:
  std::unordered_set<const ir::Value*> values_;
};

}  // namespace carina::quantize
