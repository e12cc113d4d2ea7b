// SPDX-License-Identifier: Apache-2.0
// Writes .tosa files of version 1.0.0.
#pragma once

#include <string>

#include "ir/graph.hpp"

namespace carina::tosa_io {

/// The bytes of the file. Constants become CONST and CONST_SHAPE operators in front of all others, with exact
/// data sizes on multiples of 8; regions become graphs of their own, region name = block name. Values without
/// a name get one, and names that occur twice are made unique. Fails when a node is no TOSA operator or a
/// type has no place in the format.
Result<std::string> writeTosa(const ir::Graph& graph);

}  // namespace carina::tosa_io
