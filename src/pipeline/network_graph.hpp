// SPDX-License-Identifier: Apache-2.0
// The network of a build as a graph of its operators, with the placement of each, for display.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

enum class NodePlace : uint8_t {
  Npu,     // in an NPU part
  Cpu,     // computed by kernels
  Folded,  // neither: folded into another operator or a constant
};

/// One operator of the network. What it was decomposed into counts as the operator itself.
struct NetworkNode {
  std::string name, op;            // "conv2d_3", "aten.convolution.default"
  std::string modulePath, source;  // "features.3", "model.py:42"; empty when unknown
  NodePlace place = NodePlace::Folded;
  std::string reason, remedy;  // if it is on the CPU: why, and what would change that
  std::optional<double> sqnr;  // dB of its result against float, with Options::measureSqnr
  std::vector<size_t> inputs;  // nodes whose results it reads, which precede it in the list
};

/// In topological order. Empty for a network that already is a TOSA graph.
std::vector<NetworkNode> networkGraph(const Build& build);

/// SQNR in dB of the network's values by name, for values that were compared and differ.
std::map<std::string, double> sqnrByValue(const Build& build);

}  // namespace carina::pipeline
