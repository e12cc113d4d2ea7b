// SPDX-License-Identifier: Apache-2.0
// Masks in front of a softmax. -inf, -1e9 or -100 in the place of a score only says that the place does not
// count; as a number it would take the range of eight-bit scores away from the real ones.
#pragma once

#include "ir/op_view.hpp"

namespace carina::decompose {

struct MaskedScores {
  ir::Value* scores = nullptr;  // as if there were no mask, in the input's shape
  ir::Value* hidden = nullptr;  // bool, broadcasts to that shape; null: no mask was found
};

/// Looks from `input`, what the softmax reads, back through where() with hiding numbers, sums with a mask
/// (constant, made by where(), a multiple of 0 and 1, or an input of the network) and changes of shape. A
/// number hides from -100 down: exp(-100) is nothing beside exp(0).
MaskedScores splitMask(ir::Builder& builder, ir::Value* input);

/// Scores with -inf where `hidden`; splitMask() finds it again.
ir::Value* hide(ir::Builder& builder, ir::Value* scores, ir::Value* hidden);

}  // namespace carina::decompose
