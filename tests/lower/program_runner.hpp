// SPDX-License-Identifier: Apache-2.0
// Runs a partitioned program on the host: delegate calls in the TOSA interpreter, everything else in the aten
// executor.
#pragma once

#include <span>
#include <vector>

#include "partition/partition.hpp"

namespace carina::lower::test {

Result<std::vector<Tensor>> runProgram(const partition::Partitioned& program, std::span<const Tensor> inputs);

/// Differences of two float tensors in units of `quantum`: the number of elements, and of those that differ
/// by more than one.
struct QuantumDifference {
  int64_t elements = 0, overOne = 0;
  double largest = 0;
};
QuantumDifference compareInQuanta(const Tensor& a, const Tensor& b, double quantum);

/// The scale of the dequantize node that produces an output of the program.
double outputQuantum(const ir::Graph& program, size_t output);

}  // namespace carina::lower::test
