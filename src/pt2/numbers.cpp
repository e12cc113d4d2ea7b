// SPDX-License-Identifier: Apache-2.0
#include "pt2/numbers.hpp"

#include <algorithm>

#include "aten/ops.hpp"
#include "pt2/refusals.hpp"

namespace carina::pt2 {
namespace {

using Tag = Argument::Tag;

/// Python operators, and the equivalent operators of tensors. `swapped`: with the operands exchanged, for a
/// constant first operand.
struct Rule {
  std::string_view target, tensors, scalar, swapped;
};
constexpr Rule kRules[] = {
    {"_operator.add", "aten.add.Tensor", "aten.add.Scalar", "aten.add.Scalar"},
    {"_operator.sub", "aten.sub.Tensor", "aten.sub.Scalar", "aten.rsub.Scalar"},
    {"_operator.mul", "aten.mul.Tensor", "aten.mul.Scalar", "aten.mul.Scalar"},
    {"_operator.eq", "aten.eq.Tensor", "aten.eq.Scalar", "aten.eq.Scalar"},
    {"_operator.ne", "aten.ne.Tensor", "aten.ne.Scalar", "aten.ne.Scalar"},
    {"_operator.lt", "aten.lt.Tensor", "aten.lt.Scalar", "aten.gt.Scalar"},
    {"_operator.le", "aten.le.Tensor", "aten.le.Scalar", "aten.ge.Scalar"},
    {"_operator.gt", "aten.gt.Tensor", "aten.gt.Scalar", "aten.lt.Scalar"},
    {"_operator.ge", "aten.ge.Tensor", "aten.ge.Scalar", "aten.le.Scalar"},
    {"_operator.and_", "aten.logical_and.default", "", ""},
    {"_operator.or_", "aten.logical_or.default", "", ""},
    {"_operator.neg", "aten.neg.default", "", ""},
    {"_operator.not_", "aten.logical_not.default", "", ""},
    {"torch.sym_not", "aten.logical_not.default", "", ""},
};

const Rule* findRule(std::string_view target) {
  const auto* rule =
      std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& r) { return r.target == target; });
  return rule == std::end(kRules) ? nullptr : rule;
}

bool isItem(std::string_view target) {
  const std::string_view name = operatorName(target);
  return name == "aten.item.default" || name == "aten._local_scalar_dense.default";
}

class NumberBuilder {
 public:
  NumberBuilder(const NodeDocument& node, Scope& scope) : node_(node), scope_(scope) {}

  Status run() {
    if (node_.outputs.size() != 1 || node_.outputs[0].names.size() != 1)
      return fail(Code::InvalidGraph, "{} has {} results, expected one number", node_.target,
                  node_.outputs.size());
    const std::string& name = node_.outputs[0].names[0];
    CARINA_TRY(ir::Value* const value, isItem(node_.target) ? item() : computed());
    value->name = scope_.names.claim(name);
    if (!scope_.values.emplace(name, value).second)
      return fail(Code::InvalidGraph, "the value '{}' is defined twice", name);
    return {};
  }

 private:
  Result<ir::Value*> create(std::string_view op, const std::vector<ir::Value*>& operands,
                            std::vector<ir::Attribute> attributes = {}) {
    ir::NodeSpec spec;
    spec.def = aten::findOperator(op);
    CARINA_CHECK(spec.def, "the table has the operators of numbers");
    if (operands.size() != spec.def->operands.size())
      return fail(Code::InvalidGraph, "{} takes {} operands, got {}", node_.target, spec.def->operands.size(),
                  operands.size());
    for (ir::Value* operand : operands) spec.operands.push_back({operand});
    spec.attributes = std::move(attributes);
    spec.location = placed(node_.location, scope_);
    CARINA_TRY(ir::Node* const made, scope_.graph.create(std::move(spec)));
    return made->result();
  }

  Result<ir::Value*> item() {
    if (node_.inputs.size() != 1 || node_.inputs[0].value.tag != Tag::Tensor)
      return fail(Code::UnsupportedForm, "item() takes one tensor");
    CARINA_TRY(ir::Value * value, findValue(scope_, node_.inputs[0].value.names[0]));
    if (value->numElements() != 1)
      return fail(Code::UnsupportedForm, "item() of a tensor of shape {} is not supported",
                  shapeText(value->shape()));
    if (isFloat(value->dtype())) {
      return fail(Code::UnsupportedForm, "control flow depends on item() of a real number")
          .withRemedy("Compare the tensor itself: torch.cond(x.sum() > 0, ...) takes its result.");
    }
    if (value->dtype() != DType::Bool && value->dtype() != DType::Int64) {
      CARINA_TRY(value, create("aten.to.dtype", {value}, {DType::Int64}));
    }
    return create("aten.view.default", {value}, {ir::Ints{}});
  }

  Result<ir::Value*> computed() {
    const Rule& rule = *findRule(node_.target);
    std::vector<ir::Value*> values;
    std::vector<int64_t> constants;
    bool constantFirst = false;
    for (const NamedArgument& input : node_.inputs) {
      const Argument& argument = input.value;
      if (argument.tag == Tag::Int || argument.tag == Tag::Bool) {
        constantFirst = constantFirst || values.empty();
        constants.push_back(argument.ints[0]);
        continue;
      }
      if (argument.tag != Tag::Symbolic || argument.names.size() != 1)
        return fail(Code::UnsupportedForm, "{} of {} is not supported", node_.target, argument.kind);
      CARINA_TRY(ir::Value* const value, findValue(scope_, argument.names[0]));
      values.push_back(value);
    }
    if (constants.empty()) return create(rule.tensors, values);
    if (constants.size() != 1 || values.size() != 1 || rule.scalar.empty())
      return fail(Code::UnsupportedForm, "{} of a constant is not supported", node_.target);
    return create(constantFirst ? rule.swapped : rule.scalar, values, {constants[0]});
  }

  const NodeDocument& node_;
  Scope& scope_;
};

}  // namespace

bool givesNumber(std::string_view target) {
  return isItem(target) || findRule(target) != nullptr;
}

std::unordered_set<std::string> decidingNumbers(const GraphDocument& graph) {
  std::unordered_set<std::string> names;
  const auto want = [&](const Argument& argument) {
    if (argument.tag == Tag::Symbolic) names.insert(argument.names.begin(), argument.names.end());
  };
  for (const Argument& output : graph.outputs) want(output);  // of a loop's condition
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool decides = isControlFlow(node->target);
    const bool wanted = givesNumber(node->target) && !node->outputs.empty() &&
                        !node->outputs[0].names.empty() && names.contains(node->outputs[0].names[0]);
    if (!decides && !wanted) continue;
    for (const NamedArgument& input : node->inputs) want(input.value);
  }
  return names;
}

Status buildNumber(const NodeDocument& node, Scope& scope) {
  return NumberBuilder(node, scope).run();
}

}  // namespace carina::pt2
