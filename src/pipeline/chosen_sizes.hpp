// SPDX-License-Identifier: Apache-2.0
// Turns networks whose input sizes have a range (torch.export's dynamic_shapes) into methods for chosen
// sizes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "pipeline/methods.hpp"

namespace carina::pipeline {

/// --specialize s77=16,64
struct SizeChoice {
  std::string symbol;
  std::vector<int64_t> values;
};
/// Errors: malformed text, a value below 1, a duplicate value.
Result<SizeChoice> parseSizeChoice(const std::string& text);

/// One method for every combination of values of the symbols that a network has, the first symbol varying
/// slowest, named NAME_SYMBOL_VALUE: forward_s77_16. If there is only one combination, the name is kept.
/// Networks without any of the symbols are returned unchanged. `program`: which of an archive's programs to
/// use. Errors: a symbol that no network has or that is chosen twice, too many methods.
Result<std::vector<MethodSource>> methodsOfSizes(std::span<const MethodSource> sources,
                                                 const std::string& program,
                                                 std::span<const SizeChoice> choices);

}  // namespace carina::pipeline
