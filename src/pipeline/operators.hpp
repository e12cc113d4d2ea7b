// SPDX-License-Identifier: Apache-2.0
// Where every operator of a network runs, why not on the NPU, its cost on the CPU, and what would change
// that.
#pragma once

#include <string>
#include <vector>

#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

enum class Place : uint8_t {
  Npu,
  Cpu,
  Both,     // decomposed into several operators, on both sides
  Nowhere,  // nothing left to compute: folded into a neighbour or a constant
  Refused,  // the network is refused because of it
  Unknown,  // the network is refused because of other operators
};

/// One operator of the network as exported.
struct OperatorPlace {
  std::string op;                        // "aten.softmax.int"
  std::string node, modulePath, source;  // "softmax_1", "encoder.attention", "model.py:42"
  Place place = Place::Nowhere;
  std::vector<partition::Refusal> refusals;  // of its resulting operators on the CPU; empty for target cpu
  std::vector<std::string> kernels;          // CPU kernels called for it, in order
  std::vector<std::string> missing;  // why the CPU cannot run it either; the network then does not compile
  int64_t cpuCycles = 0;             // estimate of its CPU kernels
};

struct OperatorList {
  std::string target;
  Quantization quantization = Quantization::Int8;
  std::vector<OperatorPlace> operators;  // in the order of the network
  size_t parts = 0;                      // NPU parts
  bool wholly = false;                   // see partition::Partitioned
  size_t conversions = 0;        // quantize, dequantize and integer conversions outside of the NPU parts
  int64_t conversionCycles = 0;  // estimate, CPU
  std::vector<Diagnostic> warnings;
  std::vector<StageTime> times;
  size_t layoutChanges = 0;  // transpositions at the boundaries of NPU parts, done on the NPU
  /// Why the network does not compile, if that is known without compiling; else empty.
  std::vector<Diagnostic> problems;

  size_t count(Place place) const;
  int64_t cpuCycles() const;  // conversions included
};

/// Reads, quantizes and partitions like build(), without compiling. Without calibration data the network is
/// quantized with synthetic samples, which does not affect placement. A network that is refused because of
/// some of its operators is listed with `problems`; other errors (no such file, no such target) are returned.
Result<OperatorList> listOperators(const Options& options);
/// The same for an aten graph as exported; options.model is not read.
Result<OperatorList> listOperators(const Options& options, ir::Graph graph);

}  // namespace carina::pipeline
