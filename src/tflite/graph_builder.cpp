// SPDX-License-Identifier: Apache-2.0
#include "tflite/graph_builder.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include "base/damaged.hpp"
#include "base/file.hpp"
#include "tfl/ops.hpp"
#include "tfl/shape_values.hpp"
#include "tflite/control_flow.hpp"
#include "tflite/variables.hpp"
#include "tflite/vela.hpp"

namespace carina::tflite {
namespace {

constexpr size_t kMostErrors = 20;

/// Two elements per byte, the first in the low bits.
carina::Tensor unpackInt4(const Shape& shape, ByteSpan bytes) {
  carina::Tensor tensor = carina::Tensor::uninitialized(DType::Int8, shape);
  const auto values = tensor.mutableAs<int8_t>();
  for (size_t i = 0; i < values.size(); ++i) {
    const auto byte = static_cast<int8_t>(bytes[i / 2]);
    values[i] = static_cast<int8_t>(i % 2 == 0 ? static_cast<int8_t>(byte << 4) >> 4 : byte >> 4);
  }
  return tensor;
}

Result<std::optional<ir::Quantization>> quantizationOf(const Tensor& tensor) {
  if (tensor.scales.empty()) return std::optional<ir::Quantization>();
  ir::Quantization result;
  for (float scale : tensor.scales) {
    if (!(scale >= 0x1p-60F && scale <= 0x1p60F))
      return fail(Code::UnusableQuantization, "tensor '{}' has scale {}", tensor.name, scale)
          .withRemedy("use scales between 2^-60 and 2^60");
    result.scales.push_back(scale);
  }
  result.zeroPoints = tensor.zeroPoints;
  if (result.zeroPoints.size() == 1) result.zeroPoints.resize(result.scales.size(), result.zeroPoints[0]);
  if (result.zeroPoints.empty()) result.zeroPoints.resize(result.scales.size(), 0);
  const bool perChannel = result.scales.size() > 1;
  // Some converters give a bias the quantized dimension of its filter.
  const int32_t axis = tensor.shape.size() == 1 ? 0 : tensor.quantizedDimension;
  const auto count = static_cast<int64_t>(result.scales.size());
  const bool fits = !perChannel || (axis >= 0 && static_cast<size_t>(axis) < tensor.shape.size() &&
                                    tensor.shape[static_cast<size_t>(axis)] == count);
  if (!fits || result.zeroPoints.size() != result.scales.size()) {
    return fail(Code::UnusableQuantization,
                "tensor '{}' of shape {} has {} scales and {} zero points along dimension {}", tensor.name,
                shapeText(tensor.shape), tensor.scales.size(), tensor.zeroPoints.size(), axis);
  }
  if (perChannel) result.axis = axis;
  return std::optional(std::move(result));
}

/// An option converted to the attribute's kind.
Result<ir::Attribute> attributeOf(const ir::AttributeDef& def, const Option& option) {
  if (def.kind == ir::AttributeKind::Real) return ir::Attribute(option.value);
  if (def.kind == ir::AttributeKind::Ints) return ir::Attribute(option.list);
  const auto number = static_cast<int64_t>(option.value);
  if (def.kind == ir::AttributeKind::Bool) return ir::Attribute(number != 0);
  if (def.kind == ir::AttributeKind::Enum &&
      (number < 0 || number >= static_cast<int64_t>(def.enumerators.size())))
    return fail(Code::UnsupportedForm, "the option {} has the unknown value {}", def.name, number);
  return ir::Attribute(number);
}

class Builder {
 public:
  Builder(const Subgraph& source, std::shared_ptr<const void> owner)
      : source_(&source),
        owner_(std::move(owner)),
        graph_(source.name.empty() ? "main" : source.name),
        values_(source.tensors.size()),
        hidden_(source.tensors.size()) {}

  /// Unsupported operators become tfl.OTHER, with the reason in `others`.
  static Result<PartialNetwork> buildPartial(const Model& model, const std::shared_ptr<const void>& owner) {
    CARINA_TRY(const std::vector<size_t> running, runningSubgraphs(model));
    Builder builder(model.subgraphs.front(), owner);
    builder.partial_ = true;
    PartialNetwork network;
    for (const size_t index : running) {
      if (index == 0) {
        CARINA_RETURN_IF_ERROR(builder.addMain());
      } else if (Status added = builder.addSubgraph(model.subgraphs[index], index); !added.ok()) {
        return std::move(added).error().at(fmt::format("subgraph {}", index));
      }
      network.subgraphs.push_back(builder.madeSubgraph(index));
    }
    network.graph = std::move(builder.graph_);
    network.others = std::move(builder.others_);
    network.variables = std::move(builder.variables_);
    return network;
  }

  Result<ir::Graph> build() {
    CARINA_RETURN_IF_ERROR(addMain());
    return std::move(graph_);
  }

 private:
  const Tensor& tensor(int32_t index) const { return source_->tensors[static_cast<size_t>(index)]; }
  ir::Value*& slot(int32_t index) { return values_[static_cast<size_t>(index)]; }

  Status addMain() {
    noteResults();
    for (const int32_t input : source_->inputs) {
      if (partial_ && !slot(input) && !canHold(input)) {
        hidden_[static_cast<size_t>(input)] = true;
        continue;
      }
      note(addInput(input), "");
    }
    CARINA_RETURN_IF_ERROR(addOperators());
    CARINA_TRY(std::vector<ir::Value*> outputs, outputsOf());
    if (outputs.empty() && !(partial_ && !source_->outputs.empty()))
      return fail(Code::InvalidGraph, "the network has no output");
    graph_.setOutputs(std::move(outputs));
    return {};
  }

  Status addSubgraph(const Subgraph& source, size_t index) {
    source_ = &source;
    index_ = index;
    values_.assign(source.tensors.size(), nullptr);
    hidden_.assign(source.tensors.size(), false);
    locations_.clear();
    results_.clear();
    noteResults();
    CARINA_RETURN_IF_ERROR(addBegin());
    CARINA_RETURN_IF_ERROR(addOperators());
    ir::NodeSpec end;
    end.def = &tfl::Return::def();
    CARINA_TRY(std::vector<ir::Value*> outputs, outputsOf());
    end.operands.push_back(std::move(outputs));
    CARINA_TRY([[maybe_unused]] const ir::Node* const node, graph_.create(std::move(end)));
    return {};
  }

  /// The inputs of a subgraph.
  Status addBegin() {
    ir::NodeSpec spec;
    spec.def = &tfl::Subgraph::def();
    spec.attributes = {static_cast<int64_t>(index_)};
    std::vector<int32_t> shown;
    for (const int32_t input : source_->inputs) {
      if (std::count(shown.begin(), shown.end(), input) != 0)
        return fail(Code::InvalidGraph, "tensor '{}' is an input twice", tensor(input).name);
      if (!tensor(input).data.empty()) continue;
      hidden_[static_cast<size_t>(input)] = !canHold(input);
      if (hidden_[static_cast<size_t>(input)]) continue;
      shown.push_back(input);
      spec.types.push_back(*typeOf(input));
    }
    CARINA_TRY(ir::Node* const node, graph_.create(std::move(spec)));
    for (size_t i = 0; i < shown.size(); ++i) describeLeniently(shown[i], node->result(i));
    return {};
  }

  PartialSubgraph madeSubgraph(size_t index) {
    PartialSubgraph made{index, {}, std::move(locations_), std::exchange(folded_, {})};
    made.operators.resize(source_->operators.size());
    for (const ir::Value* value : values_) made.names.push_back(value ? value->name : std::string());
    return made;
  }

  void noteResults() {
    for (const Operator& op : source_->operators) {
      for (const int32_t output : op.outputs) {
        if (output >= 0) results_.insert(firstName(tensor(output).name));
      }
    }
  }

  Status addOperators() {
    for (size_t i = 0; i < source_->operators.size() && errors_.size() < kMostErrors; ++i) {
      const Operator& op = source_->operators[i];
      const bool named = !op.outputs.empty() && op.outputs[0] >= 0 && !tensor(op.outputs[0]).name.empty();
      note(addOperator(op, i),
           fmt::format("operator {} ({}){}", i, op.name,
                       named ? fmt::format(" '{}'", firstName(tensor(op.outputs[0]).name)) : std::string()));
    }
    if (!errors_.empty()) return Error(std::move(errors_));
    return {};
  }

  Result<std::vector<ir::Value*>> outputsOf() {
    std::vector<ir::Value*> outputs;
    for (const int32_t output : source_->outputs) {
      if (partial_ && (hidden_[static_cast<size_t>(output)] || tensor(output).isVariable)) continue;
      CARINA_TRY(ir::Value * value, valueOf(output));
      CARINA_RETURN_IF_ERROR(hasElements(value->shape(), "output", output));
      outputs.push_back(value);
    }
    return outputs;
  }

  void note(Status status, const std::string& place) {
    if (status.ok()) return;
    const Error error = std::move(status).error().at(place);
    errors_.insert(errors_.end(), error.diagnostics().begin(), error.diagnostics().end());
  }

  /// Converters name a fused operator after all of its sources, joined by ';': the first one suffices.
  static std::string_view firstName(const std::string& name) {
    return std::string_view(name).substr(0, name.find(';'));
  }

  /// Constants do not use names that results have.
  std::string uniqueName(int32_t index, bool isConstant) {
    const std::string& whole = tensor(index).name;
    for (const std::string_view given : {firstName(whole), std::string_view(whole)}) {
      const bool taken = given.empty() || (isConstant && results_.count(given) != 0);
      if (!taken && names_.emplace(given).second) return std::string(given);
    }
    std::string name = fmt::format("{}#{}", whole.empty() ? "tensor" : firstName(whole), index);
    while (!names_.insert(name).second) name += "'";
    return name;
  }

  Result<ir::Type> typeOf(int32_t index) const {
    const Tensor& from = tensor(index);
    const auto dtype = from.type == TensorType::Int4 ? DType::Int8 : toDType(from.type);
    if (!dtype)
      return fail(Code::UnsupportedForm, "tensor '{}' is {}, which NPUs do not support", from.name,
                  from.str());
    for (const int64_t size : from.shape) {
      if (size < 0) {
        return fail(Code::DependsOnValues, "tensor '{}' has the dynamic shape {}", from.name,
                    shapeText(from.shape))
            .withRemedy("convert the network with fixed sizes");
      }
      // Lists of axes etc. may be empty.
      if (size == 0 && *dtype != DType::Int32 && *dtype != DType::Int64)
        return fail(Code::InvalidGraph, "tensor '{}' is empty: {}", from.name, from.str());
    }
    const auto count = checkedNumElements(from.shape);
    if (!count || *count > INT32_MAX || from.shape.size() > 8)
      return fail(Code::InvalidGraph, "tensor '{}' has the impossible shape {}", from.name,
                  shapeText(from.shape));
    return ir::Type{*dtype, from.shape};
  }

  Status describe(int32_t index, ir::Value* value) {
    value->name = uniqueName(index, value->isConstant());
    CARINA_TRY(value->quantization, quantizationOf(tensor(index)));
    slot(index) = value;
    return {};
  }

  /// For inputs and outputs only: lists of axes in between may be empty.
  Status hasElements(const Shape& shape, std::string_view what, int32_t index) const {
    if (numElements(shape) > 0) return {};
    return fail(Code::InvalidGraph, "the {} '{}' has no elements: shape {}", what, tensor(index).name,
                shapeText(shape))
        .withRemedy("convert the network without it");
  }

  Status addInput(int32_t index) {
    CARINA_TRY(ir::Type type, typeOf(index));
    if (slot(index)) return fail(Code::InvalidGraph, "tensor '{}' is an input twice", tensor(index).name);
    CARINA_RETURN_IF_ERROR(hasElements(type.shape, "input", index));
    return describe(index, graph_.addInput(std::move(type)));
  }

  /// `isState`: the state of an operator, which is zero at the start of each run.
  Result<ir::Value*> valueOf(int32_t index, bool isState = false) {
    if (slot(index)) return slot(index);
    const Tensor& from = tensor(index);
    CARINA_TRY(const ir::Type type, typeOf(index));
    const int64_t count = numElements(type.shape);
    if (from.isVariable && isState) {
      CARINA_RETURN_IF_ERROR(
          describe(index, graph_.addConstant(carina::Tensor::zeros(type.dtype, type.shape))));
      return slot(index);
    }
    if (from.isVariable) {
      return fail(Code::UnsupportedForm, "tensor '{}' keeps its values between runs", from.name)
          .withRemedy("make the state an input and an output of the network");
    }
    if (from.data.empty() && count > 0)
      return fail(Code::InvalidGraph, "tensor '{}' is used before it is computed", from.name);
    const bool packed = from.type == TensorType::Int4;
    const int64_t bytes = packed ? (count + 1) / 2 : count * dtypeSize(type.dtype);
    if (static_cast<int64_t>(from.data.size()) < bytes) {
      return fail(Code::InvalidGraph, "tensor '{}' needs {} bytes, but {} are stored", from.name, bytes,
                  from.data.size());
    }
    const ByteSpan data = from.data.first(static_cast<size_t>(bytes));
    ir::Value* value = graph_.addConstant(
        packed ? unpackInt4(type.shape, data) : carina::Tensor::borrow(type.dtype, type.shape, data, owner_));
    CARINA_RETURN_IF_ERROR(describe(index, value));
    return value;
  }

  /// Whether a graph can hold the tensor as a value.
  bool canHold(int32_t index) const {
    const Tensor& from = tensor(index);
    return !from.isVariable && typeOf(index).ok() && checkedNumElements(from.shape).value_or(0) > 0;
  }

  /// Adds an operator as tfl.OTHER. Fails if its operands or results contradict the file.
  Status addOther(const Operator& op, size_t index) {
    ir::NodeSpec spec;
    spec.def = &tfl::Other::def();
    spec.attributes = {op.name};
    spec.operands.emplace_back();
    for (const int32_t input : op.inputs) {
      if (input < 0 || hidden_[static_cast<size_t>(input)] || tensor(input).isVariable) continue;
      if (slot(input)) {
        if (!slot(input)->isConstant()) spec.operands[0].push_back(slot(input));
      } else if (tensor(input).data.empty() && tensorBytes(tensor(input)).value_or(1) > 0) {
        return fail(Code::InvalidGraph, "tensor '{}' is used before it is computed", tensor(input).name);
      }
    }
    std::vector<int32_t> shown;
    for (const int32_t output : op.outputs) {
      if (output < 0) continue;
      const auto at = static_cast<size_t>(output);
      if (slot(output) || hidden_[at] || !tensor(output).data.empty())
        return fail(Code::InvalidGraph, "tensor '{}' is computed twice", tensor(output).name);
      hidden_[at] = !canHold(output);
      if (hidden_[at]) continue;
      shown.push_back(output);
      spec.types.push_back(*typeOf(output));
    }
    CARINA_TRY(ir::Node* const node, graph_.create(std::move(spec)));
    for (size_t i = 0; i < shown.size(); ++i) {
      if (slot(shown[i]))
        return fail(Code::InvalidGraph, "tensor '{}' is computed twice", tensor(shown[i]).name);
      describeLeniently(shown[i], node->result(i));
    }
    locate(*node, op, index);
    return {};
  }

  /// Omits quantization that cannot be computed with.
  void describeLeniently(int32_t index, ir::Value* value) {
    value->name = uniqueName(index, false);
    if (auto quantization = quantizationOf(tensor(index)); quantization.ok())
      value->quantization = std::move(*quantization);
    slot(index) = value;
  }

  void locate(ir::Node& node, const Operator& op, size_t index) {
    const std::string source = fmt::format("operator {} ({}){}", index, op.name,
                                           index_ == 0 ? "" : fmt::format(" of subgraph {}", index_));
    const bool named = !node.results().empty() && !node.result()->name.empty();
    node.setLocation(
        std::make_shared<ir::Location>(ir::Location{named ? node.result()->name : source, "", source}));
    locations_.resize(source_->operators.size());
    locations_[index] = node.location();
  }

  /// Operators whose handle does not come from a VAR_HANDLE of the subgraph may access any variable.
  void noteVariable(const Operator& op, const ir::Location& location) {
    if (const auto name = variableNames_.nameOf(index_, op)) variables_.emplace(&location, *name);
  }

  /// Removes what makeNode() left behind for an operator that failed.
  void forget(const Operator& op, const ir::Node* before) {
    ir::Node* const made = graph_.lastNode();
    if (made == before) return;
    for (const int32_t output : op.outputs) {
      if (output < 0 || !slot(output) || slot(output)->producer() != made) continue;
      names_.erase(slot(output)->name);
      slot(output) = nullptr;
    }
    graph_.erase(made);
  }

  Status addOperator(const Operator& op, size_t index) {
    const ir::Node* const last = graph_.lastNode();
    // Even if the operator fails, later ones find its results.
    auto node = makeNode(op, index);
    if (node) {
      if (auto value = tfl::shapeValue(**node)) fold(op, index, **node, std::move(*value));
      return {};
    }
    if (partial_) {
      forget(op, last);
      CARINA_RETURN_IF_ERROR(addOther(op, index));
      noteVariable(op, *locations_[index]);
      others_.emplace(locations_[index].get(), node.error().diagnostics().front());
      return {};
    }
    for (const int32_t output : op.outputs) {
      if (output < 0 || slot(output)) continue;
      auto type = typeOf(output);
      if (type) note(describe(output, graph_.addInput(std::move(*type))), "");
    }
    return std::move(node).error();
  }

  /// Replaces an operator by a constant.
  void fold(const Operator& op, size_t index, ir::Node& node, carina::Tensor value) {
    folded_.push_back(index);
    std::string name = std::exchange(node.result()->name, "");
    graph_.erase(&node);
    slot(op.outputs.front()) = graph_.addConstant(std::move(value), std::move(name));
  }

  /// The error for operators that only TensorFlow Lite's interpreter can run.
  Error keptOperator(const std::string& why) const {
    Error error(fail(Code::UnsupportedForm, "{}", why));
    if (partial_) return error;
    return std::move(error).withRemedy(
        "compile for an Ethos-U to a .tflite (-o OUT.tflite), in which it remains a TensorFlow Lite "
        "operator");
  }

  Result<ir::Node*> makeNode(const Operator& op, size_t index) {
    if (handlesVariables(op))
      return keptOperator(fmt::format("{} accesses a variable, which the interpreter keeps", op.name));
    if (controlFlowOf(op))
      return keptOperator(fmt::format("{} runs subgraphs, whose operators are placed separately", op.name));
    const ir::OpDef* def = op.custom ? nullptr : tfl::findOperator("tfl." + op.name);
    if (!def) {
      return fail(Code::UnsupportedForm, "{} {} is not supported",
                  op.custom ? "the custom operator" : "the operator", op.name)
          .withRemedy("replace it in the network, or cut the network before it (see docs/tflite.md)");
    }
    ir::NodeSpec spec;
    spec.def = def;
    CARINA_TRY(spec.operands, operandsOf(op, *def));
    for (const ir::AttributeDef& attribute : def->attributes) {
      const auto option = std::find_if(op.options.begin(), op.options.end(),
                                       [&](const Option& o) { return o.name == attribute.name; });
      Result<ir::Attribute> value = option == op.options.end()
                                        ? ir::parseAttribute(attribute, attribute.defaultText)
                                        : attributeOf(attribute, *option);
      if (!value) return std::move(value).error();
      spec.attributes.push_back(std::move(*value));
    }
    for (const int32_t output : op.outputs) {
      if (output < 0 || slot(output))
        return fail(Code::InvalidGraph, "a result is missing or computed twice");
      if (tensor(output).isVariable || !tensor(output).data.empty())
        return fail(Code::UnsupportedForm, "it writes to tensor '{}', which keeps its values between runs",
                    tensor(output).name);
      CARINA_TRY(ir::Type type, typeOf(output));
      spec.types.push_back(std::move(type));
    }
    if (op.outputs.empty()) return fail(Code::InvalidGraph, "the operator has no result");
    CARINA_TRY(ir::Node * node, graph_.create(std::move(spec)));
    for (size_t i = 0; i < op.outputs.size(); ++i)
      CARINA_RETURN_IF_ERROR(describe(op.outputs[i], node->result(i)));
    locate(*node, op, index);
    if (def->verify) CARINA_RETURN_IF_ERROR(def->verify(*node));
    return node;
  }

  Result<std::vector<std::vector<ir::Value*>>> operandsOf(const Operator& op, const ir::OpDef& def) {
    std::vector<std::vector<ir::Value*>> groups;
    size_t next = 0;
    for (const ir::OperandDef& operand : def.operands) {
      std::vector<ir::Value*>& group = groups.emplace_back();
      const bool variadic = operand.arity == ir::Arity::Variadic;
      while (next < op.inputs.size() && (variadic || group.empty())) {
        const int32_t index = op.inputs[next++];
        if (index < 0) {
          if (operand.arity != ir::Arity::Optional)
            return fail(Code::InvalidGraph, "operand '{}' is omitted", operand.name);
          break;
        }
        const bool isState = operand.name == "output_state" || operand.name == "cell_state";
        CARINA_TRY(ir::Value * value, valueOf(index, isState));
        group.push_back(value);
      }
      if (operand.arity == ir::Arity::One && group.empty())
        return fail(Code::InvalidGraph, "operand '{}' is missing", operand.name);
    }
    if (next < op.inputs.size())
      return fail(Code::InvalidGraph, "the operator has {} operands, expected at most {}", op.inputs.size(),
                  next);
    return groups;
  }

  const Subgraph* source_;
  size_t index_ = 0;  // of the subgraph
  std::shared_ptr<const void> owner_;
  bool partial_ = false;
  ir::Graph graph_;
  std::vector<ir::Value*> values_;          // by tensor
  std::vector<bool> hidden_;                // by tensor: computed or input, but no value of a partial network
  std::vector<ir::LocationRef> locations_;  // by operator
  std::vector<size_t> folded_;              // operators
  std::unordered_map<const ir::Location*, Diagnostic> others_;  // of tfl.OTHER
  VariableNames variableNames_;
  std::unordered_map<const ir::Location*, std::string> variables_;  // of operators that access one
  std::set<std::string> names_;
  std::set<std::string_view> results_;  // first names of the operators' results
  std::vector<Diagnostic> errors_;
};

}  // namespace

namespace {

Status refuseCompiled(const Model& model) {
  if (npuCalls(model).empty()) return {};
  return fail(Code::WrongKind, "the model is already compiled for an Ethos-U")
      .withRemedy("compile the original network; 'carina run' runs this one");
}

}  // namespace

Result<ir::Graph> buildGraph(const Model& model, const std::shared_ptr<const void>& owner) {
  CARINA_RETURN_IF_ERROR(refuseCompiled(model));
  return Builder(model.subgraphs.front(), owner).build();
}

Result<PartialNetwork> buildPartialNetwork(const Model& model, const std::shared_ptr<const void>& owner) {
  CARINA_RETURN_IF_ERROR(refuseCompiled(model));
  return Builder::buildPartial(model, owner);
}

bool isSubgraphEnd(const ir::Node& node) {
  return node.is(tfl::Subgraph::def()) || node.is(tfl::Return::def());
}

Result<ir::Graph> readNetwork(const std::filesystem::path& path) {
  CARINA_TRY(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  auto model = readModel(file->bytes());
  if (!model) return std::move(model).error().inFile(path.string()).withRemedy(kDamagedRemedy);
  auto graph = buildGraph(*model, file);
  if (!graph) return std::move(graph).error().inFile(path.string()).withRemedy(kDamagedRemedy);
  return graph;
}

}  // namespace carina::tflite
