// SPDX-License-Identifier: Apache-2.0
// A compiled program of any maker against the TOSA graphs, or the .tflite, that it was compiled from: the NPU
// model and the TOSA interpreter (TensorFlow Lite's arithmetic) on the same inputs, and where they first
// part.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/npy.hpp"
#include "base/result.hpp"

namespace carina::pipeline {

/// Where the program first leaves the graph, in the first sample whose results differ.
struct FirstDifference {
  /// The first TOSA operation in graph order whose value neither appears in the program's memory nor leads to
  /// one that does.
  std::string op, value;
  /// Operations behind it that were to follow within the same NPU operation, for all that memory shows.
  std::vector<std::string> behind;
  /// The first NPU operation whose result is no part of the graph and leads to nothing that is.
  uint32_t offset = 0;
  std::string npu;
  /// What it writes (or the chain that it begins) beside the value of the graph that comes closest; no
  /// elements when none has as many.
  std::string closest;  // "tosa.TABLE %12"
  uint32_t writtenAt = 0;
  int64_t elements = 0, mismatches = 0, firstIndex = 0, expected = 0, actual = 0;
};

/// One NPU part beside its graph.
struct PartAgainst {
  std::string part, graph;  // "delegate 0 of forward", "delegate0.tosa"
  size_t samples = 0;
  int64_t elements = 0, mismatches = 0;  // of all outputs, all samples
  size_t values = 0, seen = 0;           // of the graph, and how many of them the program's memory showed
  std::optional<FirstDifference> first;
  std::vector<std::string> findings;  // of the checker of command streams
};

struct Against {
  std::vector<PartAgainst> parts;  // one per graph
  bool ok() const;                 // every result equal
};

struct AgainstOptions {
  std::filesystem::path program;  // .pte, .bpte, a delegate blob, or a .tflite with ethos-u operators
  /// .tosa, one per NPU part that is to be compared; of a .tflite, the one that it was made from.
  std::vector<std::filesystem::path> graphs;
  size_t samples = 1;    // of noise, where no arrays are given
  bool trusted = false;  // no limits on the work of an execution and on memory
  size_t most = 0;       // of a .tflite: samples of the arrays that are taken; 0: all
};

/// `arrays`: in0, in1, ... of the one graph; or of the program, which then runs to get at the inputs of its
/// NPU parts; empty: reproducible noise over all codes. Graphs are matched to parts by the sizes of their
/// inputs and outputs, in file order. Errors: files that cannot be read, a graph that no part fits, inputs
/// that fit neither.
Result<Against> verifyAgainst(const AgainstOptions& options, const NamedTensors& arrays);

}  // namespace carina::pipeline
