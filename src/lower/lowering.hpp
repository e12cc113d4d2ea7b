// SPDX-License-Identifier: Apache-2.0
// The state of one lowering: what each aten value has become, and the tools that the operator rules share.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.hpp"
#include "lower/emitter.hpp"
#include "lower/layout.hpp"

namespace carina::lower {

/// A TOSA value and how the elements of the aten tensor lie in it. The value's own shape is any row-major
/// regrouping of the layout's axes.
struct StoredTensor {
  ir::Value* value = nullptr;
  Layout layout;

  Shape shape() const { return layout.shape(); }
  DType dtype() const { return value->dtype(); }
};

/// Functions of one number, applied one after the other. Copies share what they have in common, so that a
/// chain of values, each with one function more than the one before, takes linear memory.
class FunctionChain {
 public:
  using Function = std::function<double(double)>;

  bool empty() const { return last_ == nullptr; }
  void append(Function function) {
    last_ = std::make_shared<const Step>(Step{std::move(function), std::move(last_)});
  }
  /// In the order in which they are applied; valid as long as this chain.
  std::vector<const Function*> inOrder() const {
    std::vector<const Function*> functions;
    for (const Step* step = last_.get(); step; step = step->before.get())
      functions.push_back(&step->function);
    std::reverse(functions.begin(), functions.end());
    return functions;
  }

  FunctionChain() = default;
  FunctionChain(const FunctionChain&) = default;
  FunctionChain(FunctionChain&&) = default;
  FunctionChain& operator=(FunctionChain other) {
    last_.swap(other.last_);
    return *this;
  }
  ~FunctionChain() {  // step by step: the default would recurse
    while (last_ && last_.use_count() == 1) last_ = last_->before;
  }

 private:
  struct Step {
    Function function;
    std::shared_ptr<const Step> before;
  };
  std::shared_ptr<const Step> last_;
};

/// What no code of a tensor is below or above.
struct Interval {
  int64_t low = 0, high = 0;
  int64_t magnitude() const { return std::max(std::abs(low), std::abs(high)); }
};

/// A float aten value inside of the integer graph: real = scale * (code - zeroPoint), then the functions,
/// then the limits. It becomes a tensor of its own only where a quantize node fixes its codes.
struct QuantizedValue {
  StoredTensor data;           // the codes
  std::vector<double> scales;  // one, or one per index of the data's last dimension
  int64_t zeroPoint = 0;
  /// Results of arithmetic in 32 or 48 bits: a quantize node must follow.
  bool accumulator = false;
  /// Pieces that lie behind each other along the last dimension of data.value's shape; empty: data.value is
  /// whole. Pieces are rescaled one by one (a grouped convolution).
  std::vector<ir::Value*> parts;
  FunctionChain functions;  // evaluated by a TABLE
  std::optional<double> low, high;
  /// What is known of the codes where they have 32 bits or more.
  std::optional<Interval> within{};

  double scale() const { return scales[0]; }
  /// Codes as they came from a dequantize node: operators may read data directly.
  bool plain() const { return !accumulator && functions.empty() && !low && !high; }
};

/// Scale, zero point and codes of a quantize or dequantize node.
struct Codes {
  double scale = 1;
  int64_t zeroPoint = 0;
  int64_t min = -128, max = 127;
  DType dtype = DType::Int8;

  /// clamp(roundHalfEven(x / scale) + zeroPoint) as torch computes it: float32 product with the reciprocal.
  int64_t quantize(double x) const;
};

/// A constant that enters through a dequantize node.
struct QuantizedConstant {
  Tensor codes;
  std::vector<double> scales;       // one or one per index along axis
  std::vector<int64_t> zeroPoints;  // as many
  int axis = -1;                    // -1: per tensor
};

/// What a graph is to the one around it.
enum class Level : uint8_t {
  Part,    // of a network: what crosses its border is int8, int16, int32 or bool
  Region,  // of a node: int64 numbers cross its border as int32, as everywhere inside of parts
};

class Lowering {
 public:
  explicit Lowering(const ir::Graph& source, Level level = Level::Part);
  Result<ir::Graph> run();

  // For the operator rules
  // ------------------------------------------------------------------------------------------
  Emitter& emit() { return emitter_; }

  /// The value as codes of one scale, made from constants when it is one. Errors: it is not quantized here.
  Result<QuantizedValue> quantizedValue(const ir::Value* value);
  /// The same, without pending functions, limits or accumulators.
  Result<QuantizedValue> plainValue(const ir::Value* value);
  /// An integer or bool value. int64 is carried as int32.
  Result<StoredTensor> integers(const ir::Value* value);
  /// The numbers of a uint8 input less 128, as int8; nothing for other values.
  std::optional<StoredTensor> lessHalf(const ir::Value* value);
  /// The quantized constant behind a dequantize node; null when it is something else.
  const QuantizedConstant* quantizedConstant(const ir::Value* value) const;
  bool isFloatValue(const ir::Value* value) const { return value->dtype() == DType::Float32; }
  /// What a float value that is no constant has become; null when it is none, or nothing yet.
  const QuantizedValue* known(const ir::Value* value) const;

  void define(const ir::Value* value, QuantizedValue real) { quantizedValues_[value] = std::move(real); }
  void define(const ir::Value* value, StoredTensor stored) { storedTensors_[value] = std::move(stored); }

  /// Data of any kind: codes of a plain real or integers. For operators that only move elements.
  Result<StoredTensor> movable(const ir::Value* value);
  /// Defines `result` as moved data of `source`: same scale, functions and limits.
  Status defineMoved(const ir::Value* result, const ir::Value* source, StoredTensor data);

  /// The codes that the one quantize node after `value` (behind clamps) asks for, if there is one.
  std::optional<Codes> codesAfter(const ir::Value* value) const;

  // Layouts
  // ---------------------------------------------------------------------------------------------------------
  /// A TOSA value whose shape is the aten shape in the given dimension order, row-major.
  ir::Value* ordered(const StoredTensor& data, const std::vector<int>& order);
  ir::Value* rowMajor(const StoredTensor& data);
  /// The same elements under another aten shape; moves data only when the layout cannot express it.
  StoredTensor viewed(const StoredTensor& data, const Shape& shape);
  /// The dimension order that moves the fewest elements to give all of them the same one. Shapes have equal
  /// rank.
  std::vector<int> commonOrder(const std::vector<StoredTensor>& data) const;

  struct Aligned {
    std::vector<ir::Value*> values;  // broadcastable against each other, equal rank
    Layout layout;                   // of the result over `shape`
    std::vector<int64_t> shape;      // TOSA shape of the result
  };
  /// Brings operands of a broadcasting operator with result `shape` into one layout.
  Aligned align(std::vector<StoredTensor> operands, const Shape& shape);

  /// [N, C, H, W] (or any rank >= 3) with C innermost.
  static std::vector<int> channelLast(size_t rank);

  /// Names `codes`, unless they are constant or have a name, after the aten value that they stand for: NAME,
  /// and NAME:2, NAME:3, ... where several quantize nodes read it. No two values have one name.
  void nameAfter(const ir::Value& source, ir::Value& codes);
  /// Names what a region gives, unless it has a name, after the aten value that it is the last codes of:
  /// NAME.result, NAME.result2, ... where several are.
  void nameResult(const ir::Value& output, ir::Value& codes);

  /// Brings a real to the codes of a quantize node.
  Result<StoredTensor> quantized(const QuantizedValue& real, const Codes& codes);

 private:
  Status lowerNode(const ir::Node& node);
  Status addInputs();
  Status addOutputs();
  Result<ir::Value*> rescaledPart(const QuantizedValue& real, ir::Value* part, size_t firstChannel,
                                  const Codes& codes);
  Result<StoredTensor> tabled(const QuantizedValue& real, const Codes& codes);

  /// What an input or output is inside TOSA.
  Result<DType> boundaryType(const ir::Value& value) const;

  const ir::Graph& source_;
  const Level level_;
  ir::Graph target_;
  Emitter emitter_;
  std::unordered_map<const ir::Value*, QuantizedValue> quantizedValues_;
  std::unordered_map<const ir::Value*, StoredTensor> storedTensors_;
  std::unordered_map<const ir::Value*, ir::Value*> bytes_;  // of uint8 inputs
  std::unordered_map<const ir::Value*, QuantizedConstant> constants_;
  std::unordered_map<const ir::Value*, int> named_;    // how many values are named after this one
  std::unordered_map<const ir::Value*, int> results_;  // and how many of what the region gives
  std::map<std::pair<const ir::Value*, std::vector<int64_t>>, ir::Value*>
      reordered_;  // key: sequence, -1, shape
};

/// How one operator is lowered; errors get the node's place added.
using Rule = Status (*)(Lowering&, const ir::Node&);
/// The rule of an operator; null when there is none.
Rule findRule(const ir::OpDef& def);

}  // namespace carina::lower
