// SPDX-License-Identifier: Apache-2.0
// Networks whose inputs have sizes with a range (torch.export's dynamic_shapes), as methods for chosen sizes.
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
/// Errors: text of another form, a value below 1, one that is given twice.
Result<SizeChoice> parseSizeChoice(const std::string& text);

/// One method for every combination of the values whose symbols a network has, the first symbol slowest,
/// named NAME_SYMBOL_VALUE: forward_s77_16. One combination alone keeps the name. Networks without any of the
/// symbols stay as they are. `program`: which one of the archives' programs. Errors: a symbol that no network
/// has, or that is chosen twice, too many methods.
Result<std::vector<MethodSource>> methodsOfSizes(std::span<const MethodSource> sources,
                                                 const std::string& program,
                                                 std::span<const SizeChoice> choices);

}  // namespace carina::pipeline
