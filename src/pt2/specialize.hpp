// SPDX-License-Identifier: Apache-2.0
// Specializes programs that were exported with symbols in the sizes of their inputs (dynamic_shapes) to
// chosen values.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "pt2/document.hpp"
#include "pt2/exported_program.hpp"

namespace carina::pt2 {

/// The symbols in the program's inputs, in the order of the inputs.
std::vector<SizeSymbol> sizeSymbolsOf(const ProgramDocument& program);

/// Replaces the symbols by numbers: in sizes, strides, arguments and numeric results, also in regions. The
/// nodes that computed them are removed. Sizes that depend on the values of tensors stay symbolic.
/// `warnings`: conditions of the export that cannot be evaluated. Errors, each with a remedy: a symbol that
/// no input has, a symbol without a value or without a largest value, a value outside the range or in
/// violation of a condition of the export, a size that is negative or not an integer.
Status specialize(ProgramDocument& program, const std::map<std::string, int64_t>& values,
                  std::vector<Diagnostic>& warnings);

}  // namespace carina::pt2
