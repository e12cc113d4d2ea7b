// SPDX-License-Identifier: Apache-2.0
// What the row of an operator (src/aten/operators/*.json) says beyond its schema: the one place that
// quantizer, decompositions, cost estimate and operator lists ask.
#pragma once

#include <limits>
#include <span>
#include <string_view>

#include "aten/ops.hpp"

namespace carina::aten {

/// How the ranges of float operands and results belong together when an operator computes with integers.
enum class QuantizeRule : uint8_t {
  Float,       // has no integer form
  Own,         // every operand and result has a range of its own
  Function,    // Own, and each element is a function of one element: a table can compute it
  Rounding,    // Function, and results are whole numbers
  Clamp,       // Shared, and results are operands within limits
  Shared,      // hands elements on: operands and results have one range
  Compare,     // operands have one range, results are no real numbers
  Weighted,    // Own where weights are constants, else Float
  Norm,        // Own without weights, else Float: weights are operators of their own
  Conversion,  // Own from integers, else Float
};

/// What an element costs a CPU.
enum class CostClass : uint8_t { Arithmetic, Function, Conversion };

/// What the float executor does beyond visiting every element (aten/work.cpp says how much of it).
enum class WorkClass : uint8_t {
  Elements,     // nothing
  Convolution,  // a window of weights for every element
  Product,      // a dot product of the first operand's last dimension for every element
  Addition,     // the same of the second operand, which is multiplied by the third and added to the first
  Attention,    // two products, with a softmax between them
  Einsum,       // a product of any two
  Recurrence,   // all weights for every step
  Window,       // kernel_size elements for every one
  Order,        // elements are compared until they are in order
};

/// Whether src/lower has a rule for an operator. Elementwise: an element of the result depends on the
/// operands' elements at its place only.
enum class TosaForm : uint8_t { None, Elementwise, Other };

/// Numbers between two limits, both included.
struct Interval {
  float min = -std::numeric_limits<float>::infinity();
  float max = std::numeric_limits<float>::infinity();
};

struct OperatorFacts {
  std::string_view summary{};  // what it computes, in a line; empty: the operator has no row
  QuantizeRule quantize = QuantizeRule::Float;
  CostClass cost = CostClass::Arithmetic;
  WorkClass work = WorkClass::Elements;
  TosaForm tosa = TosaForm::None;
  bool identity = false;     // gives its first operand unchanged where the types are equal
  bool homogeneous = false;  // f(s * x) = s * f(x) for s > 0, channel by channel
  Interval range{};          // what results cannot leave
  Interval domain{};         // what operands cannot leave
};

/// Of an operator of this dialect; those without a row have the defaults.
const OperatorFacts& factsOf(OpId id);
/// Of a node of any dialect; the defaults for others.
const OperatorFacts& factsOf(const ir::Node& node);

/// A sample node of an operator: operands and attributes as pipeline/operator_cases.cpp reads them.
struct OperatorSample {
  std::string_view op, operands, attributes, note;
};
std::span<const OperatorSample> operatorSamples();

}  // namespace carina::aten
