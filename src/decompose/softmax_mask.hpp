// SPDX-License-Identifier: Apache-2.0
// Masks before a softmax. -inf, -1e9 or -100 in place of a score only indicates that it does not count; as a
// number it would use up the range of 8-bit scores.
#pragma once

#include "ir/op_view.hpp"

namespace carina::decompose {

struct MaskedScores {
  ir::Value* scores = nullptr;  // as if there were no mask, in the input's shape
  ir::Value* hidden = nullptr;  // bool, broadcasts to that shape; null: no mask was found
};

/// Traces `input`, the operand of the softmax, back through where() with hiding numbers, sums with a mask (a
/// constant, a result of where(), a multiple of 0 and 1, or a network input), positive factors, lower bounds
/// that hide, concatenations and changes of shape. Numbers of -100 or less hide: exp(-100) is negligible
/// compared to exp(0).
MaskedScores splitMask(ir::Builder& builder, ir::Value* input);

/// Scores with -inf where `hidden`; splitMask() recognises it.
ir::Value* hide(ir::Builder& builder, ir::Value* scores, ir::Value* hidden);

}  // namespace carina::decompose
