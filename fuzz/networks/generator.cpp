// SPDX-License-Identifier: Apache-2.0
#include "networks/generator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "aten/ops.hpp"
#include "pipeline/operator_cases.hpp"

namespace carina::fuzz {
namespace {

constexpr int64_t kUsualElements = int64_t{1} << 13;  // of one value
constexpr int64_t kConstantElements = int64_t{1} << 18;
constexpr size_t kMostInputs = 4;
constexpr int kTries = 12;

/// Examples of operators with matching operands and arguments.
const std::vector<pipeline::OperatorCase>& examples() {
  static const std::vector<pipeline::OperatorCase> cases = [] {
    auto made = pipeline::operatorCases();
    CARINA_CHECK(made.ok(), "the list of operators is sound");
    return std::move(*made);
  }();
  return cases;
}

/// Operators whose result types follow from their operands.
const std::vector<const ir::OpDef*>& inferable() {
  static const std::vector<const ir::OpDef*> list = [] {
    std::vector<const ir::OpDef*> found;
    for (const ir::OpDef& def : aten::operators()) {
      if (def.infer && def.has(ir::kPure) && !def.has(ir::kInPlace) && !def.results.empty())
        found.push_back(&def);
    }
    return found;
  }();
  return list;
}

bool isQuantization(const ir::OpDef& def) {
  return def.name.starts_with("quantized_decomposed.");
}

class Generator {
 public:
  explicit Generator(Choices& choices) : c_(choices), graph_("network") {}

  ir::Graph run() {
    huge_ = c_.oneIn(24);
    carriesCodes_ = c_.oneIn(8);
    const int64_t wanted = c_.of<int64_t>({1, 1, 1, 2, 2, 3, 4, 6});
    for (int64_t n = 0, tries = 0; n < wanted && tries < kTries * wanted; ++tries) {
      if (c_.oneIn(3) ? addAnything() : addLikeExample()) ++n;
    }
    finish();
    return std::move(graph_);
  }

 private:
  // Numbers
  // ------------------------------------------------------------------------------------------------------------

  int64_t oddSize() {
    if (huge_ && c_.oneIn(4)) {
      return c_.of<int64_t>({65535, 65536, 65537, 1 << 20, (1 << 24) + 1, INT32_MAX - 1, INT32_MAX,
                             int64_t{1} << 31, int64_t{1} << 33, int64_t{1} << 62});
    }
    return c_.of<int64_t>({1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 127, 129, 255, 257, 0});
  }

  int64_t oddInteger() {
    if (c_.oneIn(12)) {
      return c_.of<int64_t>(
          {INT32_MAX, INT32_MIN, int64_t{1} << 31, int64_t{1} << 32, INT64_MAX, INT64_MIN, 65536, -65536});
    }
    return c_.of<int64_t>({0, 1, 1, 2, 2, 3, 4, 5, 7, 8, 16, 17, -1, -1, -2, -3, 100});
  }

  double oddReal() {
    if (c_.oneIn(16)) {
      return c_.of<double>({std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                            std::numeric_limits<double>::quiet_NaN(), 1e38, -1e38, 1e-45, 1e300});
    }
    return c_.of<double>({0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 0.1, 1e-5, 1e5, -3.75, 1e-12, 255.0});
  }

  DType someType() {
    return c_.of({DType::Float32, DType::Float32, DType::Float32, DType::Float32, DType::Float32,
                  DType::Int64, DType::Int32, DType::Bool, DType::Float16, DType::Int8, DType::UInt8,
                  DType::Int16});
  }

  Shape someShape() {
    Shape shape;
    for (int64_t left = c_.of<int64_t>({1, 2, 3, 4, 4, 4, 5, 6, 0, 7}); left > 0; --left)
      shape.push_back(oddSize());
    return shape;
  }

  // Values
  // -------------------------------------------------------------------------------------------------------------

  bool usual(const Shape& shape) const {
    const auto count = checkedNumElements(shape);
    return huge_ ? true : count && *count <= kUsualElements;
  }

  ir::Value* newInput(const ir::Type& type) {
    if (graph_.inputs().size() >= kMostInputs) return nullptr;
    const auto count = checkedNumElements(type.shape);
    if (!count || *count > INT32_MAX) return nullptr;  // readers refuse it
    for (const int64_t size : type.shape) {
      if (size > INT32_MAX) return nullptr;
    }
    ir::Value* input = graph_.addInput(type, fmt::format("x{}", graph_.inputs().size()));
    values_.push_back(input);
    return input;
  }

  /// Floats around 0 of varying magnitude, or integers that may be indices.
  ir::Value* newConstant(const ir::Type& type) {
    const auto count = checkedNumElements(type.shape);
    if (!count || *count > kConstantElements) return nullptr;
    const double magnitude = c_.of<double>({0.3, 0.3, 0.3, 1e-6, 1e4, 0});
    const int64_t least = isFloat(type.dtype) ? 0 : c_.of<int64_t>({0, 0, -1, 1});
    const int64_t range = c_.of<int64_t>({1, 2, 3, 6});
    uint64_t state = static_cast<uint64_t>(c_.below(256)) + 1;
    Tensor reals = Tensor::uninitialized(DType::Float64, type.shape);
    for (double& value : reals.mutableAs<double>()) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      const auto bits = static_cast<int64_t>(state >> 40);
      value = isFloat(type.dtype) ? magnitude * (static_cast<double>(bits) / 8388608.0 - 1)
                                  : static_cast<double>(least + bits % range);
    }
    return graph_.addConstant(convert(reals, type.dtype));
  }

  /// An existing value of this type; null if there is none.
  ir::Value* existing(const ir::Type& type) {
    std::vector<ir::Value*> fitting;
    std::copy_if(values_.begin(), values_.end(), std::back_inserter(fitting),
                 [&](const ir::Value* value) { return value->type == type; });
    return fitting.empty() ? nullptr
                           : fitting[static_cast<size_t>(c_.below(static_cast<int64_t>(fitting.size())))];
  }

  ir::Value* operandOf(const ir::Type& type, bool constant) {
    if (c_.oneIn(20)) constant = !constant;
    if (constant) return newConstant(type);
    if (!c_.oneIn(3)) {
      if (ir::Value* value = existing(type)) return value;
    }
    return newInput(type);
  }

  // Operators
  // ----------------------------------------------------------------------------------------------------------

  /// Creates the node if the operands match and the result is not too large for an ordinary network.
  bool create(ir::NodeSpec spec) {
    spec.location =
        std::make_shared<const ir::Location>(ir::Location{fmt::format("n{}", graph_.numNodes()), "", ""});
    if (carriesCodes_ && !isQuantization(*spec.def)) wrapOperands(spec);
    auto node = graph_.create(std::move(spec));
    if (!node) return false;
    for (ir::Value* result : (*node)->results()) {
      if (!usual(result->shape())) {
        graph_.erase(*node);
        return false;
      }
    }
    for (ir::Value* result : (*node)->results()) values_.push_back(result);
    return true;
  }

  /// Inserts quantize and dequantize nodes before float operands, as in quantized exports.
  void wrapOperands(ir::NodeSpec& spec) {
    for (auto& group : spec.operands) {
      for (ir::Value*& value : group) {
        if (!value || value->dtype() != DType::Float32 || c_.oneIn(8)) continue;
        const double scale = c_.of<double>({0.01, 1.0 / 128, 0.3, 1e-9});
        const int64_t zero = c_.of<int64_t>({0, 0, -128, 5, 127});
        ir::NodeSpec quantize, dequantize;
        quantize.location = dequantize.location = spec.location;
        quantize.def = &aten::QuantizePerTensor::def();
        quantize.operands = {{value}};
        quantize.attributes = {scale, zero, int64_t{-128}, int64_t{127}, DType::Int8};
        const auto codes = graph_.create(std::move(quantize));
        if (!codes) continue;
        dequantize.def = &aten::DequantizePerTensor::def();
        dequantize.operands = {{(*codes)->result()}};
        dequantize.attributes = {scale, zero, int64_t{-128}, int64_t{127}, DType::Int8, std::monostate{}};
        if (const auto real = graph_.create(std::move(dequantize))) value = (*real)->result();
      }
    }
  }

  using Sizes = std::map<int64_t, int64_t>;
  static void replaceSizes(const Sizes& sizes, std::vector<int64_t>& list) {
    for (int64_t& size : list) {
      if (const auto found = sizes.find(size); found != sizes.end()) size = found->second;
    }
  }

  /// Adds an example of the operator table with some of its sizes replaced everywhere, and possibly an
  /// argument changed.
  bool addLikeExample() {
    const auto& cases = examples();
    const auto& example = cases[static_cast<size_t>(c_.below(static_cast<int64_t>(cases.size())))];
    const ir::Node& node = *example.graph.firstNode();
    for (int attempt = 0; attempt < 3; ++attempt) {
      if (tryLike(node)) return true;
    }
    return false;
  }

  /// Replaces the sizes of the example's first operand by those of an existing value.
  ir::Value* startFrom(const ir::Node& node, Sizes& sizes) {
    const ir::Value* first = node.operands().empty() ? nullptr : node.operands()[0];
    if (!first || first->isConstant() || values_.empty() || c_.oneIn(4)) return nullptr;
    ir::Value* value = values_[static_cast<size_t>(c_.below(static_cast<int64_t>(values_.size())))];
    if (value->dtype() != first->dtype() || value->rank() != first->rank()) return nullptr;
    for (size_t d = 0; d < first->shape().size(); ++d) sizes[first->shape()[d]] = value->shape()[d];
    return value;
  }

  bool tryLike(const ir::Node& node) {
    Sizes sizes;
    ir::Value* start = startFrom(node, sizes);
    for (int64_t changes = start ? c_.below(2) : c_.below(3); changes > 0 && !node.operands().empty();
         --changes) {
      const auto& operands = node.operands();
      const ir::Value* value = operands[static_cast<size_t>(c_.below(static_cast<int64_t>(operands.size())))];
      if (value && value->rank() > 0) sizes[value->dim(c_.below(value->rank()))] = oddSize();
    }
    ir::NodeSpec spec;
    spec.def = &node.def();
    for (size_t i = 0; i < node.def().operands.size(); ++i) {
      auto& group = spec.operands.emplace_back();
      for (const ir::Value* operand : node.operandGroup(i)) {
        if (!operand) {
          group.push_back(nullptr);
          continue;
        }
        ir::Type type = operand->type;
        replaceSizes(sizes, type.shape);
        if (c_.oneIn(24) && !type.shape.empty())
          type.shape.erase(type.shape.begin() + c_.below(rankOf(type)));
        if (c_.oneIn(24)) type.shape.insert(type.shape.begin(), oddSize());
        ir::Value* value = start && i == 0 && group.empty() ? start : operandOf(type, operand->isConstant());
        if (!value) return false;
        group.push_back(value);
      }
    }
    for (size_t i = 0; i < node.def().attributes.size(); ++i) {
      ir::Attribute value = node.attribute(i);
      if (auto* list = std::get_if<ir::Ints>(&value); list && c_.oneIn(2)) replaceSizes(sizes, *list);
      if (c_.oneIn(10)) value = someAttribute(node.def().attributes[i], value);
      spec.attributes.push_back(std::move(value));
    }
    return create(std::move(spec));
  }

  static int64_t rankOf(const ir::Type& type) { return static_cast<int64_t>(type.shape.size()); }

  /// Adds any operator of the table, with operands and arguments chosen only by kind, which may or may not
  /// match.
  bool addAnything() {
    const auto& list = inferable();
    const ir::OpDef& def = *list[static_cast<size_t>(c_.below(static_cast<int64_t>(list.size())))];
    for (int attempt = 0; attempt < 6; ++attempt) {
      if (tryAnything(def)) return true;
    }
    return false;
  }

  bool tryAnything(const ir::OpDef& def) {
    const DType dtype = someType();
    const Shape shape = someShape();
    ir::NodeSpec spec;
    spec.def = &def;
    for (const ir::OperandDef& operand : def.operands) {
      auto& group = spec.operands.emplace_back();
      int64_t count = 1;
      if (operand.arity == ir::Arity::Optional) count = c_.below(2);
      if (operand.arity == ir::Arity::Variadic) count = c_.of<int64_t>({1, 2, 3, 0});
      for (; count > 0; --count) {
        ir::Type type{c_.oneIn(5) ? someType() : dtype, shape};
        if (c_.oneIn(6)) type.shape = someShape();
        const bool any = !values_.empty() && c_.oneIn(2);
        ir::Value* value = any ? values_[static_cast<size_t>(c_.below(static_cast<int64_t>(values_.size())))]
                               : operandOf(type, c_.oneIn(4));
        if (!value) return false;
        group.push_back(value);
      }
    }
    for (const ir::AttributeDef& attribute : def.attributes) {
      ir::Attribute value;
      if (!attribute.defaultText.empty()) {
        auto given = ir::parseAttribute(attribute, attribute.defaultText);
        if (!given) return false;
        value = std::move(*given);
      }
      if (attribute.defaultText.empty() || c_.oneIn(4)) value = someAttribute(attribute, value);
      spec.attributes.push_back(std::move(value));
    }
    return create(std::move(spec));
  }

  /// An unusual value of the attribute's kind, with the length of `now`.
  ir::Attribute someAttribute(const ir::AttributeDef& def, const ir::Attribute& now) {
    using Kind = ir::AttributeKind;
    if (def.optional && c_.oneIn(4)) return std::monostate{};
    switch (def.kind) {
      case Kind::Bool:
        return c_.oneIn(2);
      case Kind::Int:
        return oddInteger();
      case Kind::Real:
        return oddReal();
      case Kind::Scalar:
        if (c_.oneIn(4)) return oddInteger();
        return oddReal();
      case Kind::Type:
        return someType();
      case Kind::Ints: {
        const auto* list = std::get_if<ir::Ints>(&now);
        ir::Ints made = list ? *list : ir::Ints{};
        if (made.empty() || c_.oneIn(6)) made.assign(static_cast<size_t>(c_.below(4)), 1);
        for (int64_t& value : made) value = c_.oneIn(2) ? oddInteger() : value;
        return made;
      }
      case Kind::Reals: {
        ir::Reals made(static_cast<size_t>(c_.below(4)));
        for (double& value : made) value = oddReal();
        return made;
      }
      default:
        return now;
    }
  }

  /// Unused values become outputs of the network, and occasionally other values.
  void finish() {
    std::vector<ir::Value*> outputs;
    for (ir::Value* value : values_) {
      if (value->producer() && (value->unused() || c_.oneIn(8))) outputs.push_back(value);
    }
    graph_.setOutputs(std::move(outputs));
    graph_.eraseDeadNodes();
    size_t number = 0;
    for (ir::Node* node : graph_.nodes()) {
      for (ir::Value* result : node->results()) result->name = fmt::format("v{}", number++);
    }
  }

  Choices& c_;
  ir::Graph graph_;
  std::vector<ir::Value*> values_;  // inputs and results, in order
  bool huge_ = false;               // choices include sizes beyond the memory of any machine
  bool carriesCodes_ = false;       // quantize and dequantize nodes between the operators
};

}  // namespace

ir::Graph makeNetwork(Choices& choices) {
  return Generator(choices).run();
}

}  // namespace carina::fuzz
