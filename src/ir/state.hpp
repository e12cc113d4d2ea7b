// SPDX-License-Identifier: Apache-2.0
// State: tensors that a network keeps from one call to the next (buffers that forward() writes). In a graph
// with n state variables, the last n inputs are their values before a call and the last n outputs, in the
// same order, their values after it; the inputs and outputs in front of them are the caller's.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.hpp"

namespace carina::ir {

struct StateVariable {
  std::string name;  // of the buffer: "layers.0.k"; the same in all methods that share it
  Tensor initial;    // before the first call, in the type that the network was exported with
};
using State = std::vector<StateVariable>;

/// Number of inputs (outputs) of `graph` that the caller provides (receives).
inline size_t callerInputs(const Graph& graph, const State& state) {
  return graph.inputs().size() - state.size();
}
inline size_t callerOutputs(const Graph& graph, const State& state) {
  return graph.outputs().size() - state.size();
}

/// Keeps the contents of state variables between calls of a graph.
class StateHolder {
 public:
  explicit StateHolder(std::vector<Tensor> initial = {}) : initial_(std::move(initial)), now_(initial_) {}

  void reset() { now_ = initial_; }
  const std::vector<Tensor>& now() const { return now_; }
  /// All inputs of the graph: the caller's tensors and the state.
  std::vector<Tensor> inputs(std::span<const Tensor> callers) const {
    std::vector<Tensor> all(callers.begin(), callers.end());
    all.insert(all.end(), now_.begin(), now_.end());
    return all;
  }
  /// Stores the state from all outputs of a graph and returns the caller's outputs.
  std::vector<Tensor> outputs(std::vector<Tensor> all) {
    CARINA_CHECK(all.size() >= now_.size(), "a graph with state gives all of it");
    const auto state = all.end() - static_cast<std::ptrdiff_t>(now_.size());
    now_.assign(state, all.end());
    all.erase(state, all.end());
    return all;
  }

 private:
  std::vector<Tensor> initial_, now_;
};

}  // namespace carina::ir
