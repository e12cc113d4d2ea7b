// SPDX-License-Identifier: Apache-2.0
// What the quantizer does around each aten operator: which results get a range of their own, which share the
// range of their inputs, and which clamps belong to the operator in front of them.
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
  Float,    // left in float: nothing around it is quantized on its account
  Own,      // inputs are quantized; the result has a range of its own
  Shared,   // inputs and results have one range
  Compare,  // the float inputs share one range; the result is no float
};

Role roleOf(const ir::Node& node);

/// relu, relu6, hardtanh, clamp with numbers: monotone, so after a computation they are a limit on the codes.
bool isClamp(const ir::Node& node);

/// A function of one value that a TABLE computes: chains of them are one TABLE.
bool isFunction(const ir::Node& node);
/// Functions with steps. They read codes: a table of 16-bit codes cannot show where the steps of a chain lie.
bool givesWholeNumbers(const ir::Node& node);
/// The positive number that the operator multiplies by, when that is all it does: its result has the codes of
/// what it reads at another scale.
std::optional<double> scalingOf(const ir::Node& node);
/// A product of two computed matrices.
bool isProduct(const ir::Node& node);

/// A quantized form of a value: as it is made, or as readers of another precision take it.
struct Form {
  ir::Value* value = nullptr;
  /// Quantized where it is made; then everybody who is in no other form's `readers` reads this form.
  bool made = true;
  std::vector<ir::Use> readers;  // of a form that is not made
  bool leaves = false;           // a form that is not made: it is what the program returns
  bool taken = false;            // what the body of a loop takes: others make it
};

/// Forms with one scale and zero point.
struct Group {
  std::vector<Form> forms;  // in program order
  Precision precision = Precision::Int8;
  bool wide = false;  // int32 codes
  Scheme scheme = Scheme::Affine;
  ObserverSettings observer;
  /// The group in which the only value is made in int8, when this is its int16 form: every code of the one is
  /// a code of the other, 2^7 times as large.
  std::optional<size_t> widened;
  /// The scale of codes that the network brings, when the group holds only int16 forms of those and what is
  /// moved or picked from them: every int8 code is one of these, 2^7 times as large.
  std::optional<double> prequantizedScale;
};

/// Operands of nodes, by flat index.
using Reads = std::set<std::pair<const ir::Node*, size_t>>;

/// Which values get quantize/dequantize nodes and which of them have one range together.
struct Annotation {
  std::vector<Group> groups;  // in order of their first form
  std::unordered_map<const ir::Value*, size_t> madeIn;
  std::map<std::pair<const ir::Node*, size_t>, size_t>
      readIn;  // (node, flat operand index) of quantized operators
  std::vector<Diagnostic> warnings;

  std::optional<size_t> groupOf(const ir::Value* value) const;  // of its first form
  std::optional<size_t> groupOfOperand(const ir::Node& node, size_t operand) const;
};

/// All float32 values that operators with a role read or write, except: convolution and linear weights and
/// biases, results that go only into a clamp of the same precision (the clamp's result stands for both), and
/// results of functions that go only into another function, or are only scaled in front of a product, and
/// results of arithmetic that only quantize nodes of the network read.
/// A value is quantized as the operator that makes it says; readers of another precision get a form of their
/// own, and so do the reads of `apart` in any case (see joins.hpp). Constants, program inputs and results of
/// float operators are quantized as their readers say.
Annotation annotate(const ir::Graph& graph, const Assignment& assignment, const Options& options,
                    const Reads& apart = {});

/// The constant weight and bias of a convolution or linear; weightAxis is the dimension of its output
/// channels.
struct WeightedOp {
  ir::Node* node = nullptr;
  ir::Value* input = nullptr;
  ir::Value* weight = nullptr;
  ir::Value* bias = nullptr;  // null when absent
  int weightAxis = 0;
  static constexpr size_t kWeightOperand = 1, kBiasOperand = 2;

  /// The dimension of the result that holds its channels, and how many elements lie behind each other per
  /// channel.
  int64_t channelDim() const;
  int64_t elementsPerChannel() const;
};

/// The view; nothing when the node is another operator or the weight is no constant.
std::optional<WeightedOp> asWeighted(const ir::Node& node);

}  // namespace carina::quantize
