// SPDX-License-Identifier: Apache-2.0
// How the quantizer treats each aten operator: which results get a range of their own, which share the range
// of their inputs, and which clamps are fused into the preceding operator.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/graph.hpp"
#include "quantize/assign.hpp"

namespace carina::quantize {

enum class Role : uint8_t {
  Float,    // stays in float: nothing around it is quantized on its account
  Own,      // inputs are quantized; the result has a range of its own
  Shared,   // inputs and results share one range
  Compare,  // the float inputs share one range; the result is not float
};

Role roleOf(const ir::Node& node);

/// relu, relu6, hardtanh, clamp with constant bounds: monotone, so after a computation they only limit its
/// codes.
bool isClamp(const ir::Node& node);

/// A function of one value that a TABLE computes; a chain of them becomes a single TABLE.
bool isFunction(const ir::Node& node);
/// Step functions, such as rounding. Their operand always has codes: a table of 16-bit codes cannot resolve
/// the steps of a chain.
bool isRoundingFunction(const ir::Node& node);
/// Conversions of floats to integers.
bool isTruncation(const ir::Node& node);
/// The factor of an operator that only multiplies by a positive constant: its result has its operand's codes
/// at another scale.
std::optional<double> scalingOf(const ir::Node& node);
/// A product of two computed matrices.
bool isProduct(const ir::Node& node);

/// Whether an operator has 8-bit codes and no rule names it, so that the plan may give it 16-bit codes.
bool mayWiden(const Assignment& assignment, const ir::Node& node);

/// A quantized form of a value: as it is produced, or as readers of another precision read it.
struct Form {
  ir::Value* value = nullptr;
  /// Quantized where it is produced; then all readers not listed in another form's `readers` read this form.
  bool made = true;
  std::vector<ir::Use> readers;  // of a form that is not made
  bool leaves = false;           // of a form that is not made: the program returns it
  bool taken = false;            // an input of a loop body: produced outside of it
};

/// Forms that share one scale and zero point.
struct Group {
  std::vector<Form> forms;  // in program order
  Precision precision = Precision::Int8;
  bool wide = false;  // int32 codes
  Scheme scheme = Scheme::Affine;
  ObserverSettings observer;
  /// Set if this group is the int16 form of a single value that is produced in int8: the group of its int8
  /// form. Every int8 code becomes an int16 code 2^7 times as large.
  std::optional<size_t> widened;
  /// Set if the group holds only int16 forms of the network's own codes, and what is moved or selected from
  /// them: their scale. Every int8 code becomes an int16 code 2^7 times as large.
  std::optional<double> prequantizedScale;
};

/// Operands of nodes, by flat index.
using Reads = std::set<std::pair<const ir::Node*, size_t>>;

/// Which values get quantize/dequantize nodes, and which of them share a range.
struct Annotation {
  std::vector<Group> groups;  // in order of their first form
  std::unordered_map<const ir::Value*, size_t> producedIn;
  std::map<std::pair<const ir::Node*, size_t>, size_t>
      readIn;  // (node, flat operand index) of quantized operators
  std::vector<Diagnostic> warnings;

  std::optional<size_t> groupOf(const ir::Value* value) const;  // of its first form
  std::optional<size_t> groupOfOperand(const ir::Node& node, size_t operand) const;
};

/// Annotates all float32 values that operators with a role read or write, except convolution and linear
/// weights and biases, results read only by a clamp of the same precision (the clamp's result stands for
/// both), results of functions that only another function reads or that are only scaled before a product, and
/// results of arithmetic that only quantize nodes of the network read. A value is quantized as its producer
/// specifies; readers of another precision get a form of their own, as do the reads in `apart` in any case
/// (see joins.hpp). Constants, program inputs and results of float operators are quantized as their readers
/// specify.
Annotation annotate(const ir::Graph& graph, const Assignment& assignment, const Options& options,
                    const Reads& apart = {});

/// A convolution or linear layer with constant weight and bias; weightAxis is the weight's output channel
/// dimension.
struct WeightedOp {
  ir::Node* node = nullptr;
  ir::Value* input = nullptr;
  ir::Value* weight = nullptr;
  ir::Value* bias = nullptr;  // null when absent
  int weightAxis = 0;
  static constexpr size_t kWeightOperand = 1, kBiasOperand = 2;

  /// The channel dimension of the result, and the number of consecutive elements per channel.
  int64_t channelDim() const;
  int64_t elementsPerChannel() const;
};

/// Empty if the node is another operator, or if weight or bias is not constant.
std::optional<WeightedOp> asWeighted(const ir::Node& node);

}  // namespace carina::quantize
