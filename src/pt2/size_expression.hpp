// SPDX-License-Identifier: Apache-2.0
// Expressions of symbols that stand where an archive has sizes, in all forms that torch writes them:
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

/// For people: "2*s77 + 1"; an expression in another form than sympy's as it is.
std::string sizeText(std::string_view expression);

struct SizeLookup {
  std::function<std::optional<SizeNumber>(std::string_view symbol)> symbol;
  /// L['x'].size()[1]; without it, conditions cannot be computed.
  std::function<std::optional<SizeNumber>(std::string_view input, int64_t dimension)> size;
};

/// Errors: text that is no such expression, a symbol without a value, an unknown function, a result that does
/// not exist (division by zero) or that 64 bits do not hold.
Result<SizeNumber> evaluate(std::string_view expression, const SizeLookup& lookup);

}  // namespace carina::pt2
