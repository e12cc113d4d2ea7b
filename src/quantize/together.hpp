// SPDX-License-Identifier: Apache-2.0
// Several networks that are quantized alike, as methods of one program are. A state variable has one range in
// all of them, the union of what each of them shows, so that one reads the codes that another one wrote.
// Equal weights are rounded once, as the first network's samples ask for; biases are of each network.
// Networks of one family, which differ in the sizes of their tensors, have all ranges, weights and biases in
// common.
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
  std::string family = {};          // of the same network at other sizes; empty: there is none
};

/// quantize() of each, in order. Variables of one name have one range where they are quantized alike, and in
/// a family values of one name, too: its layers have the codes and biases that the first member's samples
/// give them. A network that carries its quantization keeps it.
Result<std::vector<Quantized>> quantizeTogether(std::vector<Job> jobs, const Progress& progress = nullptr);

/// withState() that starts with what `state` holds and leaves there what the last sample did.
Result<std::vector<Sample>> withState(const ir::Graph& graph, ir::StateHolder& state,
                                      std::span<const Sample> samples, WorkBudget* loops = nullptr);

}  // namespace carina::quantize
