// SPDX-License-Identifier: Apache-2.0
// The tosa dialect: the generated operator accessors and the checks beyond those that apply to every graph.
// Graphs are TOSA 1.0: zero points, shifts etc. are operands, shape values are constants of DType::Shape,
// CONST and CONST_SHAPE are constant values rather than nodes, sub-graphs of COND_IF (then, else) and
// WHILE_LOOP (condition, body) are regions.
#pragma once

#include "ir/graph.hpp"
#include "tosa/ops.hpp"

namespace carina::tosa {

/// The profiles and extensions that a graph may use, as bits.
enum Extension : uint32_t {
  kProInt = 1u << 0,
  kProFp = 1u << 1,
  kExtInt16 = 1u << 2,
  kExtInt4 = 1u << 3,
  kExtBf16 = 1u << 4,
  kExtFft = 1u << 5,
  kExtControlFlow = 1u << 6,
  kExtDoubleRound = 1u << 7,
  kExtInexactRound = 1u << 8,
  kExtVariable = 1u << 9,
};
constexpr uint32_t kAllExtensions = (1u << 10) - 1;
/// The profiles and extensions of the Ethos-U85 baseline.
constexpr uint32_t kIntegerExtensions = kProInt | kExtInt16 | kExtInt4 | kExtDoubleRound | kExtControlFlow;
/// "PRO-INT", "EXT-INT16", ...; several joined with " or ".
std::string extensionNames(uint32_t extensions);

/// Size limits of a graph ("levels").
struct Level {
  std::string_view name;
  int64_t maxRank, maxKernel, maxStride, maxScale, maxLog2Size, maxNesting, maxListSize;
};
extern const Level kLevelNone;
extern const Level kLevel8K;

struct VerifyOptions {
  uint32_t extensions = kAllExtensions;
  const Level* level = &kLevel8K;
};

/// ir::verify plus the element types of the allowed profiles and extensions plus the level's limits. Every
/// broken rule is one diagnostic, at the node, that ends with the rule's name.
Status verify(const ir::Graph& graph, const VerifyOptions& options = {});

}  // namespace carina::tosa
