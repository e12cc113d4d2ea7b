// SPDX-License-Identifier: Apache-2.0
#include "pt2/build_node.hpp"

#include <algorithm>

#include "aten/ops.hpp"
#include "decompose/composites.hpp"
#include "pt2/complex_numbers.hpp"
#include "pt2/refusals.hpp"
#include "pt2/scalar_type.hpp"

namespace carina::pt2 {
namespace {

using Tag = Argument::Tag;
using Arguments = std::vector<NamedArgument>;

const Argument* findArgument(const Arguments& arguments, std::string_view name) {
  const auto it = std::find_if(arguments.begin(), arguments.end(),
                               [&](const NamedArgument& a) { return a.name == name; });
  return it == arguments.end() ? nullptr : &it->value;
}

// Numbers in place of tensors
// ----------------------------------------------------------------------------------------

/// "aten.add.Tensor" -> "aten.add.Scalar": the overload whose second operand is a number, if there is one.
const ir::OpDef* numberOverload(const ir::OpDef& def, std::string_view argument) {
  const std::string name(def.name);
  for (const auto& [from, to] : {std::pair<std::string_view, std::string_view>{".Tensor", ".Scalar"},
                                 {".default", ".Scalar"},
                                 {".Tensor_mode", ".Scalar_mode"}}) {
    if (name.size() <= from.size() || name.substr(name.size() - from.size()) != from) continue;
    const ir::OpDef* overload =
        aten::findOperator(name.substr(0, name.size() - from.size()) + std::string(to));
    if (overload && overload->attributeIndex(argument) >= 0) return overload;
  }
  return nullptr;
}

/// A Python number in place of a tensor ("aten.add.Tensor(x, 1)") is promoted as a number, as in the
/// operator's Scalar overload. Rewrites operator and arguments to that overload if there is one.
const ir::OpDef* preferNumberOverload(const ir::OpDef& def, Arguments& arguments) {
  const Argument* self = findArgument(arguments, "self");
  const Argument* other = findArgument(arguments, "other");
  if (!self || !other) return &def;
  if (other->isNumber() && self->tag == Tag::Tensor && def.operandIndex("other") >= 0) {
    const ir::OpDef* overload = numberOverload(def, "other");
    return overload ? overload : &def;
  }
  if (self->isNumber() && other->tag == Tag::Tensor && def.operandIndex("self") >= 0) {
    const Argument* alpha = findArgument(arguments, "alpha");
    const bool plain = !alpha || (alpha->tag == Tag::Int && alpha->ints[0] == 1);
    const ir::OpDef* swapped = nullptr;
    if (def.name == "aten.sub.Tensor")
      swapped = aten::findOperator("aten.rsub.Scalar");  // other - alpha * self
    if (def.name == "aten.mul.Tensor") swapped = aten::findOperator("aten.mul.Scalar");
    if (def.name == "aten.add.Tensor" && plain) swapped = aten::findOperator("aten.add.Scalar");
    if (swapped) {
      for (NamedArgument& argument : arguments) {
        if (argument.name == "self") {
          argument.name = "other";
        } else if (argument.name == "other") {
          argument.name = "self";
        }
      }
      return swapped;
    }
  }
  return &def;
}

/// The element type of a number that does not change the common type of its node's tensors.
DType numberType(const Argument& number, const std::vector<DType>& tensors) {
  const DType own = number.tag == Tag::Real  ? DType::Float32
                    : number.tag == Tag::Int ? DType::Int64
                                             : DType::Bool;
  DType best = own;
  for (DType dtype : tensors) {
    const bool fits = isFloat(dtype) || (isInteger(dtype) && own != DType::Float32) || dtype == own;
    if (fits && (best == own || dtypeSize(dtype) > dtypeSize(best))) best = dtype;
  }
  return best;
}

Tensor numberTensor(const Argument& number, DType dtype) {
  const Tensor value =
      number.tag == Tag::Real ? Tensor::scalar(number.reals[0]) : Tensor::scalar(number.ints[0]);
  if (isInteger(dtype) && number.tag != Tag::Real) {  // wraps like a conversion in torch
    Tensor wrapped = Tensor::zeros(dtype, {});
    wrapped.setIntegerAt(0, number.ints[0]);
    return wrapped;
  }
  return convert(value, dtype);
}

// Binding
// ------------------------------------------------------------------------------------------------------------

class NodeBuilder {
 public:
  NodeBuilder(const NodeDocument& node, Scope& scope) : node_(node), scope_(scope), arguments_(node.inputs) {}

  Status run() {
    const ir::OpDef* named = decompose::findReadable(operatorName(node_.target));
    CARINA_CHECK(named, "unknown operators are refused before graphs are built");
    def_ = preferNumberOverload(*named, arguments_);
    for (const NamedArgument& argument : arguments_) {
      if (def_->operandIndex(argument.name) < 0 && def_->attributeIndex(argument.name) < 0) {
        return fail(Code::InvalidGraph, "{} has no argument '{}'", def_->name, argument.name);
      }
    }
    ir::NodeSpec spec;
    spec.def = def_;
    spec.location = placed(node_.location, scope_);
    for (const ir::OperandDef& operand : def_->operands) {
      CARINA_TRY(auto group, operandGroup(operand));
      spec.operands.push_back(std::move(group));
    }
    for (const ir::AttributeDef& attribute : def_->attributes) {
      CARINA_TRY(ir::Attribute value, attributeValue(attribute));
      spec.attributes.push_back(std::move(value));
    }
    CARINA_RETURN_IF_ERROR(resultTypes(spec.types));
    CARINA_TRY(ir::Node * created, scope_.graph.create(std::move(spec)));
    CARINA_RETURN_IF_ERROR(checkTypes(created));
    defineResults(*created);
    return {};
  }

 private:
  Error wrongKind(std::string_view name, const Argument& argument) const {
    return fail(Code::InvalidGraph, "the argument '{}' of {} cannot be {}", name, def_->name, argument.kind);
  }

  Result<std::vector<ir::Value*>> operandGroup(const ir::OperandDef& operand) {
    const Argument* argument = findArgument(arguments_, operand.name);
    const bool absent = !argument || argument->tag == Tag::None;
    if (absent && operand.arity == ir::Arity::One)
      return fail(Code::InvalidGraph, "{} needs the argument '{}'", def_->name, operand.name);
    if (absent) return std::vector<ir::Value*>{};
    std::vector<ir::Value*> group;
    if (argument->isNumber() && operand.arity != ir::Arity::Variadic) {
      group.push_back(numberConstant(operand, *argument));
      return group;
    }
    const bool emptyList = argument->tag == Tag::Ints && argument->ints.empty();
    const bool list = operand.arity == ir::Arity::Variadic;
    if (argument->tag != (list ? Tag::Tensors : Tag::Tensor) && !(list && emptyList))
      return wrongKind(operand.name, *argument);
    for (const std::string& name : argument->names) {
      if (name.empty()) {
        if (!operand.nullable)
          return fail(Code::InvalidGraph, "the argument '{}' of {} cannot contain None", operand.name,
                      def_->name);
        group.push_back(nullptr);
        continue;
      }
      CARINA_TRY(ir::Value * value, findValue(scope_, name));
      group.push_back(value);
    }
    return group;
  }

  ir::Value* numberConstant(const ir::OperandDef& operand, const Argument& number) {
    std::vector<DType> tensors;
    for (const NamedArgument& argument : arguments_) {
      if (argument.value.tag != Tag::Tensor) continue;
      const auto it = scope_.values.find(argument.value.names[0]);
      if (it != scope_.values.end()) tensors.push_back(it->second->dtype());
    }
    return scope_.graph.addConstant(numberTensor(number, numberType(number, tensors)),
                                    scope_.names.claim(fmt::format("{}_{}", node_.name, operand.name)));
  }

  Result<ir::Attribute> defaultValue(const ir::AttributeDef& attribute) const {
    if (!attribute.defaultText.empty()) return ir::parseAttribute(attribute, attribute.defaultText);
    if (attribute.optional) return ir::Attribute(std::monostate{});
    // The device of a tensor is irrelevant here.
    if (attribute.kind == ir::AttributeKind::String) return ir::Attribute(std::string("cpu"));
    if (attribute.kind == ir::AttributeKind::Int) return ir::Attribute(int64_t{0});
    return fail(Code::InvalidGraph, "{} needs the argument '{}'", def_->name, attribute.name);
  }

  Result<ir::Attribute> attributeValue(const ir::AttributeDef& attribute) const {
    const Argument* argument = findArgument(arguments_, attribute.name);
    if (argument && argument->tag == Tag::Ignored) return defaultValue(attribute);
    if (!argument) {
      if (attribute.defaultText.empty())
        return fail(Code::InvalidGraph, "{} needs the argument '{}'", def_->name, attribute.name);
      return defaultValue(attribute);
    }
    if (argument->tag == Tag::None) {
      if (!attribute.optional) return wrongKind(attribute.name, *argument);
      return ir::Attribute(std::monostate{});
    }
    auto value = convertArgument(attribute, *argument);
    if (!value) return wrongKind(attribute.name, *argument);
    if (const auto* dtype = std::get_if<DType>(&*value); dtype && attribute.kind != ir::AttributeKind::Type) {
      return wrongKind(attribute.name, *argument);
    }
    return *value;
  }

  static std::optional<ir::Attribute> convertArgument(const ir::AttributeDef& attribute, const Argument& a) {
    using Kind = ir::AttributeKind;
    const bool integer = a.tag == Tag::Int || a.tag == Tag::Bool;
    const bool emptyTensors = a.tag == Tag::Tensors && a.names.empty();  // how an empty list may be written
    switch (attribute.kind) {
      case Kind::Bool:
        if (integer) return ir::Attribute(a.ints[0] != 0);
        return std::nullopt;
      case Kind::Int:
        if (integer) return ir::Attribute(a.ints[0]);
        return std::nullopt;
      case Kind::Real:
        if (a.tag == Tag::Real) return ir::Attribute(a.reals[0]);
        if (integer) return ir::Attribute(static_cast<double>(a.ints[0]));
        return std::nullopt;
      case Kind::Scalar:
        if (a.tag == Tag::Bool) return ir::Attribute(a.ints[0] != 0);
        if (a.tag == Tag::Int) return ir::Attribute(a.ints[0]);
        if (a.tag == Tag::Real) return ir::Attribute(a.reals[0]);
        return std::nullopt;
      case Kind::String:
        if (a.tag == Tag::String) return ir::Attribute(a.strings[0]);
        return std::nullopt;
      case Kind::Type: {
        if (a.tag != Tag::ScalarType) return std::nullopt;
        const ScalarType* type = scalarTypeByNumber(a.ints[0]);
        if (!type || !type->dtype) return std::nullopt;
        return ir::Attribute(*type->dtype);
      }
      case Kind::Ints:
        if (a.tag == Tag::Ints || a.tag == Tag::Bools || a.tag == Tag::Int)
          return ir::Attribute(ir::Ints(a.ints));
        if (emptyTensors) return ir::Attribute(ir::Ints{});
        return std::nullopt;
      case Kind::Reals:
        if (a.tag == Tag::Reals || a.tag == Tag::Real) return ir::Attribute(ir::Reals(a.reals));
        if (a.tag == Tag::Ints || a.tag == Tag::Bools)
          return ir::Attribute(ir::Reals(a.ints.begin(), a.ints.end()));
        if (emptyTensors) return ir::Attribute(ir::Reals{});
        return std::nullopt;
      case Kind::Strings:
        if (a.tag == Tag::Strings) return ir::Attribute(ir::Strings(a.strings));
        if (emptyTensors) return ir::Attribute(ir::Strings{});
        return std::nullopt;
      case Kind::Enum:
      case Kind::Tensor:
        return std::nullopt;
    }
    return std::nullopt;
  }

  // Results
  // --------------------------------------------------------------------------------------------------------

  Status resultTypes(std::vector<ir::Type>& types) const {
    for (const Argument& output : node_.outputs) {
      if (output.tag != Tag::Tensor && output.tag != Tag::Tensors) {
        return fail(Code::InvalidGraph, "a result of {} is {}, expected a tensor", def_->name, output.kind);
      }
      for (const std::string& name : output.names) {
        CARINA_TRY(ir::Type type, recordedType(scope_.document, name));
        types.push_back(std::move(type));
      }
    }
    return {};
  }

  /// Recorded types are facts about the run at export: they must match those inferred from the operands.
  Status checkTypes(ir::Node* created) const {
    if (!def_->infer) return {};
    auto types = def_->infer(*created);
    if (types.ok() && *types == recorded(*created)) return {};
    if (scope_.autocast && lowerPrecision(created)) types = def_->infer(*created);
    if (!types.ok()) return std::move(types).error();
    const auto expected = recorded(*created);
    if (types->size() != expected.size())
      return fail(Code::InvalidGraph, "{} has {} results, but {} are recorded", def_->name, types->size(),
                  expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      if ((*types)[i] != expected[i]) {
        return fail(Code::InvalidGraph, "result {} of {} is recorded as {}, but its operands imply {}", i,
                    def_->name, ir::typeText(expected[i]), ir::typeText((*types)[i]));
      }
    }
    return {};
  }

  static std::vector<ir::Type> recorded(const ir::Node& node) {
    std::vector<ir::Type> types;
    for (const ir::Value* result : node.results()) types.push_back(result->type);
    return types;
  }

  /// Under torch.autocast an operator converts its floating-point operands to the precision of its result.
  bool lowerPrecision(ir::Node* created) const {
    const bool known = !created->results().empty() && isFloat(created->result()->dtype());
    if (!known) return false;
    const DType wanted = created->result()->dtype();
    ir::Builder builder = ir::Builder::beforeNode(created);
    bool changed = false;
    for (size_t i = 0; i < created->operands().size(); ++i) {
      ir::Value* operand = created->operands()[i];
      if (!operand || !isFloat(operand->dtype()) || operand->dtype() == wanted) continue;
      ir::NodeSpec spec;
      spec.def = aten::findOperator("aten.to.dtype");
      spec.operands = {{operand}};
      spec.attributes = {wanted};
      spec.types = {{wanted, operand->shape()}};
      created->setOperand(i, builder.create(std::move(spec))->result());
      changed = true;
    }
    return changed;
  }

  void defineResults(const ir::Node& created) {
    size_t i = 0;
    for (const Argument& output : node_.outputs) {
      for (const std::string& name : output.names) {
        ir::Value* value = created.result(i++);
        value->name = scope_.names.claim(name);
        scope_.values[name] = value;
      }
    }
  }

  const NodeDocument& node_;
  Scope& scope_;
  Arguments arguments_;
  const ir::OpDef* def_ = nullptr;
};

}  // namespace

std::string ValueNames::claim(const std::string& wanted) {
  if (taken_.insert(wanted).second) return wanted;
  for (int& number = lastNumber_[wanted];;) {
    std::string name = fmt::format("{}_{}", wanted, ++number);
    if (taken_.insert(name).second) return name;
  }
}

ir::LocationRef placed(const ir::LocationRef& location, const Scope& scope) {
  if (scope.path.empty() || !location) return location;
  ir::Location inner = *location;
  inner.name = scope.path + inner.name;
  return std::make_shared<const ir::Location>(std::move(inner));
}

Result<ir::Value*> findValue(const Scope& scope, const std::string& name) {
  const auto it = scope.values.find(name);
  if (it == scope.values.end())
    return fail(Code::InvalidGraph, "the value '{}' is used before it is defined", name);
  return it->second;
}

Result<ir::Type> recordedType(const GraphDocument& document, const std::string& name) {
  auto it = document.tensors.find(name);
  const bool part = it == document.tensors.end();
  if (part) it = document.tensors.find(name.substr(0, name.rfind('.')));
  if (it == document.tensors.end()) return fail(Code::InvalidGraph, "the tensor '{}' is not described", name);
  auto type = typeOf(part ? partMeta(it->second) : it->second);
  if (!type.ok())
    return fail(Code::InvalidGraph, "the tensor '{}' {}", name, type.error().message())
        .withRemedy(type.error().diagnostics()[0].remedy);
  return type;
}

Status buildNode(const NodeDocument& node, Scope& scope) {
  std::unordered_set<std::string_view> results;
  for (const Argument& output : node.outputs) {
    for (const std::string& name : output.names) {
      if (scope.values.contains(name) || !results.insert(name).second)
        return fail(Code::InvalidGraph, "the value '{}' is defined twice", name);
    }
  }
  return NodeBuilder(node, scope).run();
}

}  // namespace carina::pt2
