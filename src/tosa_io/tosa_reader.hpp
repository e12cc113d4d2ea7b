// SPDX-License-Identifier: Apache-2.0
// Reads .tosa files: the flatbuffer of TOSA 1.0 and 1.1 (the operators common to both), and of 0.80.
#pragma once

#include <filesystem>
#include <memory>

#include "ir/graph.hpp"

namespace carina::tosa_io {

/// The main graph, verified (level 8K, all profiles). Operators CONST and CONST_SHAPE become constant values,
/// which borrow the mapped file where aligned; sub-graphs become regions. 0.80 attributes become the
/// corresponding operands of 1.0. Errors name the file and the operator or tensor.
Result<ir::Graph> readTosa(const std::filesystem::path& path);

/// The same from memory; `owner` keeps `bytes` alive.
Result<ir::Graph> readTosa(ByteSpan bytes, std::shared_ptr<const void> owner);

}  // namespace carina::tosa_io
