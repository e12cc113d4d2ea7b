// SPDX-License-Identifier: Apache-2.0
// Lower bound on the cycles of a program: a roofline for each group of operations.
#pragma once

#include <algorithm>
#include <array>
#include <optional>

#include "compiler/compiler.hpp"

namespace carina::compiler {

/// Cycles that no choice of blocks, orders of weights, placement or transfers can undercut for the operations
/// of a program, according to the cycle model. Another form of the network (other operations, other chains)
/// may.
struct CycleBound {
  /// Of all operations, one after another: the multipliers or the output unit, whichever is busy longer, in
  /// the best blocks.
  npu::Cycles engine = 0;
  /// Of the least traffic through each port: constants and the program's inputs and outputs once, weights at
  /// the rate of one channel (U85).
  std::array<npu::Cycles, 2> ports{};

  npu::Cycles total() const { return std::max({engine, ports[0], ports[1]}); }
};

/// Nothing for programs that branch: what they do depends on data, and loops contain their operations once.
std::optional<CycleBound> cycleBound(const CompiledProgram& program);

}  // namespace carina::compiler
