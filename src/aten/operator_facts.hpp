// SPDX-License-Identifier: Apache-2.0
// The properties that an operator's row (src/aten/operators/*.json) states beyond its schema: the single
// source for quantizer, decompositions, cost estimate and operator lists.
#pragma once

#include <limits>
#include <span>
#include <string_view>

#include "aten/ops.hpp"

namespace carina::aten {

/// How the ranges of float operands and results are related when an operator computes with integers.
enum class QuantizeRule : uint8_t {
  Float,       // has no integer form
  Own,         // every operand and result has its own range
  Function,    // Own, and each result element is a function of one operand element: a table can compute it
  Rounding,    // Function, and results are whole numbers
  Clamp,       // Shared, and results are operands clamped to limits
  Shared,      // passes elements on: operands and results share one range
  Compare,     // operands share one range, results are not real numbers
  Weighted,    // Own if weights are constants, otherwise Float
  Norm,        // Own without weights, otherwise Float: weights become separate operators
  Conversion,  // Own from integers, otherwise Float
};

/// The cost of one element on a CPU.
enum class CostClass : uint8_t { Arithmetic, Function, Conversion };

/// The work of the float executor beyond visiting every element (aten/work.cpp computes its amount).
enum class WorkClass : uint8_t {
  Elements,     // nothing
  Convolution,  // a window of weights for every element
  Product,      // a dot product of the first operand's last dimension for every element
  Addition,     // the same for the second operand, which is multiplied by the third and added to the first
  Attention,    // two products, with a softmax between them
  Einsum,       // a product of any two operands
  Recurrence,   // all weights for every time step
  Window,       // kernel_size elements per element
  Order,        // sorting
};

/// Whether src/lower has a rule for an operator. Elementwise: each element of the result depends only on the
/// operands' elements at the same position.
enum class TosaForm : uint8_t { None, Elementwise, Other };

/// A closed interval.
struct Interval {
  float min = -std::numeric_limits<float>::infinity();
  float max = std::numeric_limits<float>::infinity();
};

struct OperatorFacts {
  std::string_view summary{};  // what it computes, in one line; empty: the operator has no row
  std::string_view instead{};  // what the NPU computes in its place, where it stays on the CPU
  QuantizeRule quantize = QuantizeRule::Float;
  CostClass cost = CostClass::Arithmetic;
  WorkClass work = WorkClass::Elements;
  TosaForm tosa = TosaForm::None;
  bool identity = false;     // returns its first operand unchanged if the types are equal
  bool homogeneous = false;  // f(s * x) = s * f(x) for s > 0, channel by channel
  Interval range{};          // bounds of all results
  Interval domain{};         // bounds of all valid operands
};

/// Facts of an operator of this dialect; operators without a row have the defaults.
const OperatorFacts& factsOf(OpId id);
/// Facts of a node of any dialect; the defaults for other dialects.
const OperatorFacts& factsOf(const ir::Node& node);
/// Facts of an operator by its name ("aten.topk.default"); the defaults for other names.
const OperatorFacts& factsOf(std::string_view name);

/// A sample node of an operator: operands and attributes in the syntax of pipeline/operator_cases.cpp.
struct OperatorSample {
  std::string_view op, operands, attributes, note;
};
std::span<const OperatorSample> operatorSamples();

}  // namespace carina::aten
