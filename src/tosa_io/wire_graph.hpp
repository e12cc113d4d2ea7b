// SPDX-License-Identifier: Apache-2.0
// The contents of a .tosa file of any version, with unresolved names. The readers of the versions fill it in
// 1.0 terms; the graph builder turns it into an ir::Graph.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.hpp"

namespace carina::tosa_io {

struct WireTensor {
  std::string name;
  Shape shape;                 // of a shape value: {rank}
  std::optional<DType> dtype;  // none: Carina does not compute in `typeName`
  std::string typeName;        // the format's name of the type
  ByteSpan data;               // empty: not a constant
  bool hasData = false;        // an empty shape value is a constant without bytes
  bool unranked = false;
};

struct WireOperator {
  std::string op;  // "CONV2D", the name in 1.0
  std::vector<std::string> inputs, outputs;
  std::vector<Tensor> constants;          // operands after `inputs` that the version keeps in attributes
  std::vector<ir::Attribute> attributes;  // in table order
  std::array<std::string, 2> subGraphs;   // then, else or condition, body
  std::string location;
};

struct WireBlock {
  std::string name;
  std::vector<std::string> inputs, outputs;
  std::vector<WireOperator> operators;
  std::vector<WireTensor> tensors;
};

struct WireRegion {
  std::string name;
  std::vector<WireBlock> blocks;
};

struct WireFile {
  std::vector<WireRegion> regions;
  std::shared_ptr<const void> owner;  // keeps the bytes of constants alive
};

/// Bytes of `count` elements in a file: int4 packs two to a byte, int48 takes six bytes. Nothing on overflow.
std::optional<int64_t> wireBytes(DType dtype, int64_t count);

/// Readers of the versions, for files with verified identifiers; both check the whole buffer first.
Result<WireFile> readVersion1(ByteSpan bytes);
Result<WireFile> readVersion080(ByteSpan bytes);

/// Resolves names and regions, and verifies the result.
Result<ir::Graph> buildGraph(const WireFile& file);

}  // namespace carina::tosa_io
