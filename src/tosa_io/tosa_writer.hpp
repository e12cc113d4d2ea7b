// SPDX-License-Identifier: Apache-2.0
// Writes .tosa files of version 1.0.0.
#pragma once

#include <string>

#include "ir/graph.hpp"

namespace carina::tosa_io {

/// The bytes of the file. Constants become CONST and CONST_SHAPE operators before all others, with exact data
/// sizes, aligned to 8 bytes; regions become separate graphs, region name = block name. Values without a name
/// get one, and names that occur twice are made unique. Fails if a node is not a TOSA operator or a type
/// cannot be represented in the format.
Result<std::string> writeTosa(const ir::Graph& graph);

}  // namespace carina::tosa_io
