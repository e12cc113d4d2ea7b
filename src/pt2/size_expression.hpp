// SPDX-License-Identifier: Apache-2.0
// Expressions over symbols that archives contain in place of sizes, in all forms that torch writes:
// "Mul(Integer(2), Symbol('s77', positive=True, integer=True))" (srepr of sympy), "2*s0 + 1", and the
// conditions of an export, "L['x'].size()[1] == 4*(L['x'].size()[1] // 4)".
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "pt2/size_number.hpp"

namespace carina::pt2 {

/// The symbols in an expression, each once, in order: "s77".
std::vector<std::string> symbolsIn(std::string_view expression);

/// Readable text: "2*s77 + 1"; expressions of unknown form are returned unchanged.
std::string sizeText(std::string_view expression);

struct SizeLookup {
  std::function<std::optional<SizeNumber>(std::string_view symbol)> symbol;
  /// L['x'].size()[1]; without it, conditions cannot be evaluated.
  std::function<std::optional<SizeNumber>(std::string_view input, int64_t dimension)> size;
};

/// Errors: malformed expressions, symbols without a value, unknown functions, results that do not exist
/// (division by zero) or do not fit in 64 bits.
Result<SizeNumber> evaluate(std::string_view expression, const SizeLookup& lookup);

}  // namespace carina::pt2
