// SPDX-License-Identifier: Apache-2.0
#include "pt2/complex_node.hpp"

#include <algorithm>
#include <unordered_set>

#include "aten/ops.hpp"
#include "decompose/composites.hpp"
#include "pt2/refusals.hpp"
#include "pt2/scalar_type.hpp"

namespace carina::pt2 {

using Tag = Argument::Tag;

std::string_view baseOf(std::string_view target) {
  constexpr std::string_view kPrefix = "torch.ops.aten.";
  if (!target.starts_with(kPrefix)) return {};
  target.remove_prefix(kPrefix.size());
  return target.substr(0, target.find('.'));
}

bool isInPlace(std::string_view base) {
  return base.size() > 1 && base.back() == '_' && base.front() != '_';
}

ComplexNode::ComplexNode(const NodeDocument& node, Scope& scope)
    : node_(node),
      scope_(scope),
      base_(baseOf(node.target)),
      builder_(scope.graph, nullptr, placed(node.location, scope)) {}

Status ComplexNode::checkArguments() const {
  for (const NamedArgument& input : node_.inputs) {
    if (!hasArgument(input.name))
      return fail(Code::InvalidGraph, "{} has no argument '{}'", operatorName(node_.target), input.name);
  }
  return {};
}

bool ComplexNode::hasArgument(std::string_view name) const {
  if (const ir::OpDef* def = decompose::findReadable(operatorName(node_.target)))
    return def->operandIndex(name) >= 0 || def->attributeIndex(name) >= 0;
  static const std::unordered_set<std::string_view> kFourier = {
      "self", "n", "s", "dim", "norm", "normalization", "onesided", "forward", "last_dim_size"};
  return kFourier.contains(name);
}

const Argument* ComplexNode::find(std::string_view name) const {
  const auto it = std::find_if(node_.inputs.begin(), node_.inputs.end(),
                               [&](const NamedArgument& a) { return a.name == name; });
  return it == node_.inputs.end() || it->value.tag == Tag::None ? nullptr : &it->value;
}

int64_t ComplexNode::integer(std::string_view name, int64_t otherwise) const {
  const Argument* argument = find(name);
  return argument && !argument->ints.empty() ? argument->ints[0] : otherwise;
}

std::string ComplexNode::text(std::string_view name, std::string_view otherwise) const {
  const Argument* argument = find(name);
  return argument && argument->tag == Tag::String ? argument->strings[0] : std::string(otherwise);
}

ir::Ints ComplexNode::ints(std::string_view name) const {
  const Argument* argument = find(name);
  return argument ? ir::Ints(argument->ints) : ir::Ints{};
}

Error ComplexNode::unsupported(std::string_view what) const {
  return fail(Code::WrongElementType, "{} of complex numbers is not supported with {}",
              operatorName(node_.target), what)
      .withRemedy("Compute it from real and imaginary parts (torch.view_as_real).");
}

Result<Parts> ComplexNode::parts(std::string_view name) {
  const Argument* argument = find(name);
  if (argument && argument->tag == Tag::Tensor) return findParts(scope_, argument->names[0]);
  if (argument && argument->tag == Tag::Complex)
    return Parts{number(argument->reals[0]), number(argument->reals[1])};
  if (!argument || !argument->isNumber())
    return fail(Code::InvalidGraph, "{} needs the argument '{}'", operatorName(node_.target), name);
  const bool real = argument->tag == Tag::Real;
  return Parts{number(real ? argument->reals[0] : static_cast<double>(argument->ints[0])), nullptr};
}

DType ComplexNode::partDType() const {
  const auto meta = scope_.document.tensors.find(resultName());
  const ScalarType* type =
      meta == scope_.document.tensors.end() ? nullptr : scalarTypeByNumber(partType(meta->second.scalarType));
  return type && type->dtype ? *type->dtype : DType::Float32;
}

ir::Value* ComplexNode::number(double value) {
  return builder_.constant(convert(Tensor::scalar(value), partDType()),
                           scope_.names.claim(node_.name + "_number"));
}

Status ComplexNode::define(Parts result) {
  const bool complex = isComplex(scope_.document, resultName());
  if (complex && isInPlace(base_)) {
    CARINA_TRY(const Parts self, parts("self"));
    CARINA_TRY(result, written(self, result));
  }
  CARINA_TRY(const ir::Type type, recordedType(scope_.document, partName(resultName(), Part::Real)));
  for (ir::Value** value : {&result.real, &result.imag}) {
    if (*value && (*value)->type.shape != type.shape)
      *value = aten::Expand::create(builder_, *value, type.shape);
    if (*value && (*value)->type != type) {
      return fail(Code::InvalidGraph, "the result of {} is recorded as {}, but its operands imply {}",
                  operatorName(node_.target), ir::typeText(type), ir::typeText((*value)->type));
    }
  }
  if (complex) {
    rename(result.real, partName(resultName(), Part::Real));
    rename(result.imag, partName(resultName(), Part::Imag));
    return defineParts(scope_, resultName(), result);
  }
  if (result.imag) return fail(Code::InvalidGraph, "{} has a complex result", operatorName(node_.target));
  rename(result.real, resultName());
  if (!scope_.values.emplace(resultName(), result.real).second)
    return fail(Code::InvalidGraph, "the value '{}' is defined twice", resultName());
  return {};
}
void ComplexNode::rename(ir::Value* value, const std::string& name) {
  if (value && value->name.empty()) value->name = scope_.names.claim(name);
}

Result<Parts> ComplexNode::written(const Parts& self, const Parts& value) {
  if (!self.imag) return unsupported("a destination that was real");
  ir::Value* imag = value.imag ? value.imag : aten::ZerosLike::create(builder_, self.imag);
  return Parts{aten::CopyInplace::create(builder_, self.real, value.real),
               aten::CopyInplace::create(builder_, self.imag, imag)};
}

}  // namespace carina::pt2
