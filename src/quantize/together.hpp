// SPDX-License-Identifier: Apache-2.0
// Quantizes several networks consistently, as methods of one program require. A state variable has one range
// in all of them, the union of their ranges, so that one reads the codes that another one wrote. Equal
// weights are rounded once, according to the first network's samples; biases are per network. Networks of one
// family, which differ in tensor sizes only, share all ranges, weights and biases.
#pragma once

#include "ir/state.hpp"
#include "quantize/quantize.hpp"

namespace carina::quantize {

struct Job {
  ir::Graph graph;
  Options options;
  std::span<const Sample> samples;
  std::vector<std::string> states;  // names of its state variables, options.states of them
  std::string file;                 // for messages
  std::string family = {};          // common to one network at several sizes; empty: none
};

/// Applies quantize() to each job, in order. Variables of the same name share one range if they are quantized
/// alike; in a family, so do values of the same name, and layers have the codes and biases that the first
/// member's samples give them. Prequantized networks stay as they are.
Result<std::vector<Quantized>> quantizeTogether(std::vector<Job> jobs, const Progress& progress = nullptr);

/// withState() that starts with the contents of `state` and leaves the state after the last sample there.
Result<std::vector<Sample>> withState(const ir::Graph& graph, ir::StateHolder& state,
                                      std::span<const Sample> samples, WorkBudget* loops = nullptr);

}  // namespace carina::quantize
