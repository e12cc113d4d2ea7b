// SPDX-License-Identifier: Apache-2.0
// What one call of an NPU part computes according to the TOSA interpreter, value by value, and iteration by
// iteration in regions: the counterpart of npu_probe.hpp.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/compiler.hpp"
#include "ir/graph.hpp"

namespace carina::pipeline {

/// Number of iterations of a loop that are compared value by value.
inline constexpr size_t kMostCompared = 64;

class PartValues {
 public:
  /// One value of the TOSA graph or of one of its regions.
  struct Turns {
    const ir::Value* value = nullptr;
    size_t graph = 0;           // as ValuePlacement::graph
    std::vector<Tensor> first;  // of the first kMostCompared iterations
    size_t count = 0;           // of all iterations
  };

  /// The graph must outlive it.
  explicit PartValues(const ir::Graph& tosa);

  /// A tosa::Observer.
  void keep(const ir::Value& value, const Tensor& tensor);

  /// Null if no iteration computed the value.
  const Turns* find(const compiler::ValuePlacement& placement) const;
  /// In the order in which the values are first completed.
  const std::vector<Turns>& all() const { return all_; }

 private:
  std::unordered_map<const ir::Graph*, size_t> graphs_;
  std::map<std::pair<size_t, std::string>, size_t> index_;
  std::vector<Turns> all_;
};

}  // namespace carina::pipeline
