// SPDX-License-Identifier: Apache-2.0
// The network of a build as a graph of its operators, and where each of them ended: for people who look at
// it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

enum class NodePlace : uint8_t {
  Npu,     // in an NPU part
  Cpu,     // kernels compute it
  Folded,  // in neither: folded into another operator or a constant
};

/// One operator of the network. What an operator was decomposed into counts as that operator.
struct NetworkNode {
  std::string name, op;            // "conv2d_3", "aten.convolution.default"
  std::string modulePath, source;  // "features.3", "model.py:42"; empty when unknown
  NodePlace place = NodePlace::Folded;
  std::string reason, remedy;  // of one on the CPU: why, and what would change that
  std::optional<double> sqnr;  // dB of its result against float, with Options::measureSqnr
  std::vector<size_t> inputs;  // nodes whose results it reads, in front of it in the list
};

/// In an order in which inputs come first. Empty for a network that is a TOSA graph already.
std::vector<NetworkNode> networkGraph(const Build& build);

/// Decibels of the network's values by name, where something was compared and lost.
std::map<std::string, double> sqnrByValue(const Build& build);

}  // namespace carina::pipeline
