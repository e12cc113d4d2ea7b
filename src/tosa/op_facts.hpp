// SPDX-License-Identifier: Apache-2.0
// The tables behind inference and verification, from the rows of ops.json: operand ranks, compile-time
// constants, supported element types, each with its profiles and extensions (specification 1.0, operator
// tables). The 8-bit floating point rows are omitted: no part of Carina computes in those types.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "base/tensor.hpp"
#include "ir/op_def.hpp"

namespace carina::tosa {

/// One supported combination of element types. Codes are DType values.
struct TypeRow {
  static constexpr uint8_t kAny = 254;   // checked elsewhere
  static constexpr uint8_t kNone = 255;  // the operator has no accumulator type

  std::array<uint8_t, 5> operands;  // per operand of the table; all members of a list have this type
  std::array<uint8_t, 2> results;
  uint8_t accumulator;
  uint32_t extensions;  // any one of these profiles and extensions provides the row
};

struct OperandFact {
  static constexpr uint8_t kMaxRank = 255;  // the level's limit

  uint8_t minRank, maxRank;
  bool compileTimeConstant;
};

/// The work of the interpreter beyond visiting every element (work.cpp has the costs).
enum class WorkClass : uint8_t {
  Elements,
  Convolution,
  Window,
  Product,
  Fourier,
  Reduction,
  Function,  // of every element of the result
  Power,
};

using Kernel = Result<std::vector<Tensor>> (*)(const ir::Node& node, std::span<const Tensor> operands);

/// Empty for control flow, variables and custom operators, which accept any type and have no kernel.
struct OpFacts {
  std::span<const TypeRow> types;
  std::span<const OperandFact> operands;
  Kernel kernel;
  WorkClass work;
};

const OpFacts& factsOf(const ir::OpDef& def);

}  // namespace carina::tosa
