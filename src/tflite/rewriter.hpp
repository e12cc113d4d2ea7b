// SPDX-License-Identifier: Apache-2.0
// Rewrites a network with some of its operators replaced by `ethos-u` operators, like Vela. Everything else
// is preserved: options byte by byte, quantization, variables, names, other subgraphs, metadata, signatures.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "tflite/model_entries.hpp"

namespace carina::tflite {

/// An operator of the subgraph that is kept, by its index.
struct KeptOperator {
  size_t index = 0;
};
/// An `ethos-u` operator that replaces others. Tensors by index.
struct NpuOperator {
  NpuMemory memory;
  std::vector<int32_t> inputs, outputs;
};
/// A RESHAPE to the same shape: copies a tensor to another place in the arena.
struct CopyOperator {
  int32_t from = 0, to = 0;
};
using RewrittenOperator = std::variant<KeptOperator, NpuOperator, CopyOperator>;

/// A subgraph to be rewritten.
struct RewrittenSubgraph {
  size_t index = 0;
  std::vector<RewrittenOperator> operators;  // in execution order
  std::vector<int32_t> copies;   // source tensors to duplicate; indices of the copies follow the source's
  std::vector<int64_t> offsets;  // in the arena, by tensor including copies; kNotPlanned: none
};
struct Rewrite {
  ByteSpan source;                           // a file that readModel() accepts
  std::vector<RewrittenSubgraph> subgraphs;  // in ascending order; all others are unchanged
};

/// The bytes of the model. Tensors that a rewritten subgraph no longer uses are dropped, and so are their
/// constants. Fails on anything that cannot be copied (sparse tensors, StableHLO operators) and
/// beyond 2 GiB.
Result<std::string> rewriteModel(const Rewrite& rewrite);

/// Whether a plan can assign a place in the arena to the tensor: neither constant nor variable, of a known
/// size that is not 0.
bool liesInArena(const Tensor& tensor);

}  // namespace carina::tflite
