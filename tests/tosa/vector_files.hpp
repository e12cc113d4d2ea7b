// SPDX-License-Identifier: Apache-2.0
// Test vectors: a .tosa graph and an .npz with in0, in1, ... and out0, out1, ...
#pragma once

#include <gtest/gtest.h>

#include <filesystem>

#include "base/npy.hpp"
#include "ir/graph.hpp"

namespace carina::test {

struct Vector {
  ir::Graph graph;
  NamedTensors arrays;
  std::vector<Tensor> inputs;  // in0, in1, ... with the element types of the graph
};

/// Reads both files.
Result<Vector> readVector(const std::filesystem::path& tosa, const std::filesystem::path& npz);

/// An array as the graph's element type (int48 and int4 are stored as wider integers).
Result<Tensor> withType(const Tensor& tensor, const ir::Type& type);

/// Runs the graph; every result must equal its outN.
::testing::AssertionResult reproduces(const std::filesystem::path& tosa, const std::filesystem::path& npz);
/// Writes and reads the graph: it prints the same, and gives the same results.
::testing::AssertionResult survivesRoundTrip(const std::filesystem::path& tosa,
                                             const std::filesystem::path& npz);

}  // namespace carina::test
