// SPDX-License-Identifier: Apache-2.0
// Programs that were exported with symbols in the sizes of their inputs (dynamic_shapes), for chosen values
// of these.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "pt2/document.hpp"
#include "pt2/exported_program.hpp"

namespace carina::pt2 {

/// The symbols in the program's inputs, in the order of the inputs.
std::vector<SizeSymbol> sizeSymbolsOf(const ProgramDocument& program);

/// Puts numbers in the place of the symbols: sizes, strides, arguments, results that are numbers, in regions,
/// too. What computed them is gone. Sizes that depend on the values of tensors stay symbols. `warnings`:
/// conditions of the export that cannot be judged. Errors, each with what to write: a symbol that no input
/// has, one without a value, one without a largest value, a value outside of the range or against a condition
/// of the export, a size that is no whole number or negative.
Status specialize(ProgramDocument& program, const std::map<std::string, int64_t>& values,
                  std::vector<Diagnostic>& warnings);

}  // namespace carina::pt2
