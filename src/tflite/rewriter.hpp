// SPDX-License-Identifier: Apache-2.0
// Writes a network again with some of its operators replaced by `ethos-u` operators, as Vela does. All else
// stays as it is: options byte by byte, quantization, variables, names, other subgraphs, metadata,
// signatures.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "tflite/model_entries.hpp"

namespace carina::tflite {

/// An operator of the subgraph that stays, by its index.
struct KeptOperator {
  size_t index = 0;
};
/// One `ethos-u` operator in place of others. Tensors by their index.
struct NpuOperator {
  NpuMemory memory;
  std::vector<int32_t> inputs, outputs;
};
/// A RESHAPE that changes nothing: copies a tensor to another place of the arena.
struct CopyOperator {
  int32_t from = 0, to = 0;
};
using RewrittenOperator = std::variant<KeptOperator, NpuOperator, CopyOperator>;

/// A subgraph that is computed in another way.
struct RewrittenSubgraph {
  size_t index = 0;
  std::vector<RewrittenOperator> operators;  // in execution order
  std::vector<int32_t> copies;   // tensors of which there is one more, by index behind those of the source
  std::vector<int64_t> offsets;  // places in the arena by tensor, copies included; kNotPlanned: none
};
struct Rewrite {
  ByteSpan source;                           // a file that readModel() takes
  std::vector<RewrittenSubgraph> subgraphs;  // in ascending order; all others stay as they are
};

/// The bytes of the model. Tensors that no operator of a rewritten subgraph uses any more go, and so do their
/// constants. Errors:
/// what cannot be copied (sparse tensors, operators of StableHLO), more than 2 GiB.
Result<std::string> rewriteModel(const Rewrite& rewrite);

/// Whether a tensor takes a place in the arena that a plan can name: neither constant nor variable, of a
/// known size that is not 0.
bool liesInArena(const Tensor& tensor);

}  // namespace carina::tflite
