// SPDX-License-Identifier: Apache-2.0
// The NPU computes int64 in 32 bits: which nodes of a network need more.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>

#include "quantize/quantize.hpp"

namespace carina::quantize {

/// One of the values beyond int32 that a node reads or computes, by Node::where().
using WideIntegers = std::map<std::string, int64_t, std::less<>>;

/// The nodes of a graph and of its regions that read or compute int64 values beyond int32 in some sample.
/// Constants are not values in this sense: they are known without samples. What follows from the samples of
/// the inputs and from the codes of a quantized graph is not executed. `loops`: the executor's budget.
Result<WideIntegers> wideIntegers(const ir::Graph& graph, std::span<const Sample> samples, WorkBudget* loops);

}  // namespace carina::quantize
