// SPDX-License-Identifier: Apache-2.0
// Checks a compiled program of any maker against the TOSA graphs, or the .tflite, that it was compiled from:
// runs the NPU model and the TOSA interpreter (TensorFlow Lite's arithmetic) on the same inputs and reports
// where they first diverge.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/npy.hpp"
#include "base/result.hpp"

namespace carina::pipeline {

/// Where the program first diverges from the graph, in the first sample whose results differ.
struct FirstDifference {
  /// The first TOSA operation in graph order whose value neither appears in the program's memory nor leads to
  /// one that does.
  std::string op, value;
  /// Operations after it that, as far as memory shows, were meant to be part of the same NPU operation.
  std::vector<std::string> behind;
  /// The first NPU operation whose result does not occur in the graph and feeds none whose result does.
  uint32_t offset = 0;
  std::string npu;
  /// Its result (or that of the chain that it begins) compared with the closest value of the graph; no
  /// elements if no value has the same number of elements.
  std::string closest;  // "tosa.TABLE %12"
  uint32_t writtenAt = 0;
  int64_t elements = 0, mismatches = 0, firstIndex = 0, expected = 0, actual = 0;
};

/// One NPU part compared with its graph.
struct PartAgainst {
  std::string part, graph;  // "delegate 0 of forward", "delegate0.tosa"
  size_t samples = 0;
  int64_t elements = 0, mismatches = 0;  // of all outputs, all samples
  size_t values = 0, seen = 0;           // graph values, and how many of them the program's memory showed
  std::optional<FirstDifference> first;
  std::vector<std::string> findings;  // from the command stream checker
};

struct Against {
  std::vector<PartAgainst> parts;  // one per graph
  bool ok() const;                 // all results are equal
};

struct AgainstOptions {
  std::filesystem::path program;  // .pte, .bpte, a delegate blob, or a .tflite with ethos-u operators
  /// .tosa files, one per NPU part to compare; for a .tflite, the one that it was compiled from.
  std::vector<std::filesystem::path> graphs;
  size_t samples = 1;    // of noise, if no arrays are given
  bool trusted = false;  // no limits on the work of an execution and on memory
  size_t most = 0;       // for a .tflite: how many samples of the arrays to use; 0: all
};

/// `arrays`: in0, in1, ... of the only graph, or of the program, which is then run to obtain the inputs of
/// its NPU parts; empty: reproducible noise over all codes. Graphs are matched to parts by the sizes of their
/// inputs and outputs, in file order. Errors: files that cannot be read, a graph that matches no part, inputs
/// that fit neither.
Result<Against> verifyAgainst(const AgainstOptions& options, const NamedTensors& arrays);

}  // namespace carina::pipeline
