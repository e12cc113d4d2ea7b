// SPDX-License-Identifier: Apache-2.0
// The state of one lowering: the lowered form of each aten value, and the tools shared by the operator rules.
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

/// A TOSA value and the arrangement of the aten tensor's elements in it. The value's own shape is any
/// row-major regrouping of the layout's axes.
struct StoredTensor {
  ir::Value* value = nullptr;
  Layout layout;

  Shape shape() const { return layout.shape(); }
  DType dtype() const { return value->dtype(); }
};

/// Functions of one number, applied in sequence. Copies share their common prefix, so that a chain of values,
/// each with one function more than its predecessor, takes linear memory.
class FunctionChain {
 public:
  using Function = std::function<double(double)>;

  bool empty() const { return last_ == nullptr; }
  void append(Function function) {
    last_ = std::make_shared<const Step>(Step{std::move(function), std::move(last_)});
  }
  /// In the order of application; valid as long as this chain exists.
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
  ~FunctionChain() {  // iterative: the default would recurse
    while (last_ && last_.use_count() == 1) last_ = last_->before;
  }

 private:
  struct Step {
    Function function;
    std::shared_ptr<const Step> before;
  };
  std::shared_ptr<const Step> last_;
};

/// Bounds of the codes of a tensor.
struct Interval {
  int64_t low = 0, high = 0;
  int64_t magnitude() const { return std::max(std::abs(low), std::abs(high)); }
};

/// A float aten value inside the integer graph: real = scale * (code - zeroPoint), followed by the functions
/// and the limits. It becomes a separate tensor only when a quantize node determines its codes.
struct QuantizedValue {
  StoredTensor data;           // the codes
  std::vector<double> scales;  // one, or one per index of the data's last dimension
  int64_t zeroPoint = 0;
  /// Results of arithmetic in 32 or 48 bits: a quantize node must follow.
  bool accumulator = false;
  /// Pieces that are concatenated along the last dimension of data.value's shape; empty: data.value is the
  /// whole. Pieces are rescaled separately (grouped convolution).
  std::vector<ir::Value*> parts;
  FunctionChain functions;  // evaluated by a TABLE
  std::optional<double> low, high;
  /// Known bounds of codes with 32 bits or more.
  std::optional<Interval> within{};

  double scale() const { return scales[0]; }
  /// Codes exactly as a dequantize node provides them: operators may read data directly.
  bool plain() const { return !accumulator && functions.empty() && !low && !high; }
};

/// Scale, zero point and codes of a quantize or dequantize node.
struct Codes {
  double scale = 1;
  int64_t zeroPoint = 0;
  int64_t min = -128, max = 127;
  DType dtype = DType::Int8;

  /// clamp(roundHalfEven(x / scale) + zeroPoint) like in torch: float32 product with the reciprocal.
  int64_t quantize(double x) const;
};

/// A constant that enters through a dequantize node.
struct QuantizedConstant {
  Tensor codes;
  std::vector<double> scales;       // one or one per index along axis
  std::vector<int64_t> zeroPoints;  // one per scale
  int axis = -1;                    // -1: per tensor
};

/// The role of a graph in the graph that contains it.
enum class Level : uint8_t {
  Part,    // of a network: values that cross its boundary are int8, int16, int32 or bool
  Region,  // of a node: int64 values cross its boundary as int32, the type that they have inside parts
};

/// int64 is carried as int32: fails for a number that does not fit.
Status checkInt32(int64_t number, std::string_view what);

class Lowering {
 public:
  explicit Lowering(const ir::Graph& source, Level level = Level::Part);
  Result<ir::Graph> run();

  // For the operator rules
  // ------------------------------------------------------------------------------------------
  Emitter& emit() { return emitter_; }

  /// The value as codes with one scale, created if it is a constant. Fails if it is not quantized here.
  Result<QuantizedValue> quantizedValue(const ir::Value* value);
  /// The same, without pending functions, limits or accumulators.
  Result<QuantizedValue> plainValue(const ir::Value* value);
  /// What the rule of index_put has computed from an index vector, for tensors with this many rows each; null
  /// at first.
  ir::Value*& rowNumbers(const ir::Value* index, int64_t rows, int64_t tables) {
    return rowNumbers_[{index, {rows, tables}}];
  }
  /// An integer or bool value. int64 is carried as int32.
  Result<StoredTensor> integers(const ir::Value* value);
  /// The bytes of a uint8 input, as int8; nothing for other values.
  std::optional<StoredTensor> bytes(const ir::Value* value) const;
  /// The values of a uint8 input minus 128, as int8; nothing for other values.
  std::optional<StoredTensor> lessHalf(const ir::Value* value);
  /// The quantized constant that a dequantize node reads; null for other values.
  const QuantizedConstant* quantizedConstant(const ir::Value* value) const;
  bool isFloatValue(const ir::Value* value) const { return value->dtype() == DType::Float32; }
  /// The lowered form of a float value that is not constant; null for others, or if not yet defined.
  const QuantizedValue* known(const ir::Value* value) const;

  void define(const ir::Value* value, QuantizedValue real) { quantizedValues_[value] = std::move(real); }
  void define(const ir::Value* value, StoredTensor stored) { storedTensors_[value] = std::move(stored); }

  /// Data of any kind: codes of a quantized value that is not an accumulator, or integers. For operators that
  /// only move elements.
  Result<StoredTensor> movable(const ir::Value* value);
  /// Defines `result` as the moved data of `source`: same scale, functions and limits.
  Status defineMoved(const ir::Value* result, const ir::Value* source, StoredTensor data);

  /// The codes required by the only quantize node after `value` (possibly after clamps), if there is one.
  std::optional<Codes> codesAfter(const ir::Value* value) const;

  // Layouts
  // ---------------------------------------------------------------------------------------------------------
  /// A TOSA value whose shape is the aten shape in the given dimension order, row-major.
  ir::Value* ordered(const StoredTensor& data, const std::vector<int>& order);
  ir::Value* rowMajor(const StoredTensor& data);
  /// The same elements with another aten shape; moves data only if the layout cannot express it.
  StoredTensor viewed(const StoredTensor& data, const Shape& shape);
  /// The common dimension order that requires moving the fewest elements. All shapes have equal rank.
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

  /// Names `codes`, unless they are constant or already named, after the aten value that they represent:
  /// NAME, and NAME:2, NAME:3, ... if several quantize nodes read it. Names are unique.
  void nameAfter(const ir::Value& source, ir::Value& codes);
  /// Names an output of a region, unless it is already named, after the aten value of which it holds the
  /// final codes: NAME.result, NAME.result2, ... if there are several.
  void nameResult(const ir::Value& output, ir::Value& codes);

  /// Converts a value to the codes of a quantize node.
  Result<StoredTensor> quantized(const QuantizedValue& real, const Codes& codes);

 private:
  Status lowerNode(const ir::Node& node);
  Status addInputs();
  Status addOutputs();
  Result<ir::Value*> rescaledPart(const QuantizedValue& real, ir::Value* part, size_t firstChannel,
                                  const Codes& codes);
  Result<StoredTensor> tabled(const QuantizedValue& real, const Codes& codes);

  /// The TOSA type of an input or output.
  Result<DType> boundaryType(const ir::Value& value) const;

  const ir::Graph& source_;
  const Level level_;
  ir::Graph target_;
  Emitter emitter_;
  std::unordered_map<const ir::Value*, QuantizedValue> quantizedValues_;
  std::unordered_map<const ir::Value*, StoredTensor> storedTensors_;
  std::unordered_map<const ir::Value*, ir::Value*> bytes_, lessHalf_;  // of uint8 inputs
  std::unordered_map<const ir::Value*, QuantizedConstant> constants_;
  std::unordered_map<const ir::Value*, int> named_;    // how many values are named after this one
  std::unordered_map<const ir::Value*, int> results_;  // how many region outputs are
  std::map<std::pair<const ir::Value*, std::vector<int64_t>>, ir::Value*>
      reordered_;  // key: sequence, -1, shape
  std::map<std::pair<const ir::Value*, std::pair<int64_t, int64_t>>, ir::Value*> rowNumbers_;
};

/// How one operator is lowered; the node's place is added to errors.
using Rule = Status (*)(Lowering&, const ir::Node&);
/// The rule of an operator, or null.
Rule findRule(const ir::OpDef& def);

}  // namespace carina::lower
