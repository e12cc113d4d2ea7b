// SPDX-License-Identifier: Apache-2.0
#include "decompose/functionalize.hpp"

#include <algorithm>
#include <unordered_map>

#include "aten/arguments.hpp"
#include "aten/movement.hpp"
#include "aten/ops.hpp"

namespace carina::decompose {

using namespace aten;
namespace {

/// In-place operators that change the view of self, not its contents.
bool changesViewOnly(const ir::Node& node) {
  switch (opId(&node)) {
    case OpId::DetachInplace:
    case OpId::SqueezeInplace:
    case OpId::SqueezeDimInplace:
    case OpId::SqueezeDimsInplace:
    case OpId::UnsqueezeInplace:
    case OpId::TransposeIntInplace:
    case OpId::TInplace:
      return true;
    default:
      return false;
  }
}

/// In-place forms whose names do not follow from those of their functional forms.
const ir::OpDef* functionalFormByName(std::string_view name) {
  static const std::unordered_map<std::string_view, const ir::OpDef*> forms = {
      {"aten.__iand__.Scalar", &BitwiseAndScalar::def()},
      {"aten.__iand__.Tensor", &BitwiseAndTensor::def()},
      {"aten.__ilshift__.Scalar", &BitwiseLeftShiftTensorScalar::def()},
      {"aten.__ilshift__.Tensor", &BitwiseLeftShiftTensor::def()},
      {"aten.__ior__.Scalar", &BitwiseOrScalar::def()},
      {"aten.__ior__.Tensor", &BitwiseOrTensor::def()},
      {"aten.__irshift__.Scalar", &BitwiseRightShiftTensorScalar::def()},
      {"aten.__irshift__.Tensor", &BitwiseRightShiftTensor::def()},
      {"aten.__ixor__.Scalar", &BitwiseXorScalar::def()},
      {"aten.__ixor__.Tensor", &BitwiseXorTensor::def()},
      {"aten.floor_divide_.Tensor", &FloorDivide::def()},
      {"aten.pow_.Scalar", &PowTensorScalar::def()},
  };
  const auto it = forms.find(name);
  return it == forms.end() ? nullptr : it->second;
}

/// "aten.relu_.default" -> aten.relu.default, or null.
const ir::OpDef* functionalForm(const ir::Node& node) {
  if (const ir::OpDef* named = functionalFormByName(node.opName())) return named;
  std::string name(node.opName());
  const size_t underscore = name.find("_.");
  if (underscore == std::string::npos) return nullptr;
  name.erase(underscore, 1);
  return findOperator(name);
}

/// Whether result `i` shares its contents with operand 0.
bool isAlias(const ir::Node& node, size_t i) {
  if (!isOperator(&node) || !node.def().has(ir::kView) || node.operands().empty() || !node.operands()[0])
    return false;
  return node.result(i)->dtype() == node.operands()[0]->dtype();
}

/// How a value views the contents of another one.
struct Sight {
  ir::Value* parent = nullptr;     // null: the value owns its contents
  const ir::Node* node = nullptr;  // derives it from the parent; null: it is the parent itself
  size_t result = 0;
};

class Functionalizer {
 public:
  Functionalizer(ir::Graph& graph, const std::unordered_set<const ir::Value*>& copies)
      : graph_(graph), copies_(copies) {}

  Status run() {
    std::vector<ir::Node*> written, views;
    for (ir::Node* node : graph_.nodes()) {
      CARINA_RETURN_IF_ERROR(useCurrentOperands(node));
      if (node->def().has(ir::kInPlace)) {
        auto status = replace(node);
        if (!status) return std::move(status).error().at(node->where());
        written.push_back(node);
        continue;
      }
      bool alias = false;
      for (size_t i = 0; i < node->results().size(); ++i) {
        if (!isAlias(*node, i) || copies_.contains(node->result(i))) continue;
        alias = true;
        remember(node->result(i), {originalOperand_, node, i});
      }
      if (alias) views.push_back(node);
    }
    const std::vector<ir::Value*> outputs = graph_.outputs();
    for (size_t i = 0; i < outputs.size(); ++i) {
      CARINA_TRY(ir::Value* const value, current(outputs[i], nullptr));
      graph_.setOutput(i, value);
    }
    for (auto it = written.rbegin(); it != written.rend(); ++it) graph_.erase(*it);
    for (auto it = views.rbegin(); it != views.rend(); ++it) {
      const auto& results = (*it)->results();
      if (std::all_of(results.begin(), results.end(), [](const ir::Value* v) { return v->unused(); }))
        graph_.erase(*it);
    }
    return {};
  }

 private:
  struct Version {
    ir::Value* value = nullptr;
    int number = 0;
  };

  void remember(ir::Value* value, Sight view) {
    ir::Value* root = rootOf(view.parent);
    views_[value] = view;
    versions_[value] = {value, versionOf(root)};
  }
  ir::Value* rootOf(ir::Value* value) const {
    for (auto it = views_.find(value); it != views_.end(); it = views_.find(value)) value = it->second.parent;
    return value;
  }
  int versionOf(ir::Value* root) const {
    const auto it = rootVersions_.find(root);
    return it == rootVersions_.end() ? 0 : it->second;
  }

  /// The value with the current contents of `value` (of the original graph); views are derived anew before
  /// `before`.
  Result<ir::Value*> current(ir::Value* value, ir::Node* before) {
    ir::Value* root = rootOf(value);
    const int now = versionOf(root);
    const auto known = versions_.find(value);
    if (known != versions_.end() && known->second.number == now) return known->second.value;
    const auto view = views_.find(value);
    if (view == views_.end()) return known == versions_.end() ? value : known->second.value;
    CARINA_TRY(ir::Value* const parent, current(view->second.parent, before));
    ir::Value* derived = parent;
    if (const ir::Node* node = view->second.node) {
      CARINA_TRY(const ir::Node* const copy, derive(*node, parent, before));
      derived = copy->result(view->second.result);
    }
    versions_[value] = {derived, now};
    return derived;
  }

  /// The view operator applied to another parent.
  Result<ir::Node*> derive(const ir::Node& node, ir::Value* parent, ir::Node* before) {
    ir::NodeSpec spec;
    spec.def = &node.def();
    spec.location = node.location();
    for (size_t i = 0; i < node.def().operands.size(); ++i) {
      const auto group = node.operandGroup(i);
      spec.operands.emplace_back(group.begin(), group.end());
    }
    spec.operands[0][0] = parent;
    for (size_t i = 0; i < node.def().attributes.size(); ++i) spec.attributes.push_back(node.attribute(i));
    for (const ir::Value* result : node.results()) spec.types.push_back(result->type);
    return graph_.create(std::move(spec), before);
  }

  Status useCurrentOperands(ir::Node* node) {
    originalOperand_ = node->operands().empty() ? nullptr : node->operands()[0];
    for (size_t i = 0; i < node->operands().size(); ++i) {
      if (!node->operands()[i]) continue;
      CARINA_TRY(ir::Value* const value, current(node->operands()[i], node));
      if (value != node->operands()[i]) node->setOperand(i, value);
    }
    return {};
  }

  /// Inserts the functional operator before an in-place one and makes its result the new contents.
  Status replace(ir::Node* node) {
    const ir::OpDef* def = functionalForm(*node);
    if (!def) {
      return Error(
          Diagnostic{fmt::format("{} modifies its operand and has no functional form here", node->opName()),
                     "use the functional operator in the model", "", "", Code::UnsupportedForm});
    }
    ir::Value* const target = originalOperand_;
    ir::NodeSpec spec;
    spec.def = def;
    spec.location = node->location();
    for (size_t i = 0; i < node->def().operands.size(); ++i) {
      const auto group = node->operandGroup(i);
      spec.operands.emplace_back(group.begin(), group.end());
    }
    for (size_t i = 0; i < node->def().attributes.size(); ++i) spec.attributes.push_back(node->attribute(i));
    if (!def->infer) spec.types = {target->type};
    CARINA_TRY(const ir::Node* const functional, graph_.create(std::move(spec), node));
    ir::Value* contents = functional->result();
    ir::Value* const result = node->results().empty() ? nullptr : node->result();
    if (changesViewOnly(*node)) {
      if (result) {
        takeName(contents, result);
        remember(result, {target, functional, 0});
        versions_[result].value = contents;
      }
      return {};
    }
    if (contents->shape() != target->shape()) {
      return fail(Code::InvalidOperator, "{} would change the shape of its operand from {} to {}",
                  node->opName(), shapeText(target->shape()), shapeText(contents->shape()));
    }
    if (result) takeName(contents, result);
    if (contents->dtype() != target->dtype()) {
      ir::Builder builder(graph_, node, node->location());
      contents = PrivateToCopy::create(builder, contents, target->dtype());
    }
    CARINA_RETURN_IF_ERROR(write(target, contents, node));
    if (result) {
      remember(result, {target, nullptr, 0});
      versions_[result].value = contents;
    }
    return {};
  }

  static void takeName(ir::Value* value, ir::Value* from) {
    value->name = std::exchange(from->name, "");
    value->quantization = from->quantization;
  }

  /// Makes `contents` the contents of `target`: rebuilds every value that it is a view of.
  Status write(ir::Value* target, ir::Value* contents, ir::Node* before) {
    ir::Value* const root = rootOf(target);
    std::vector<std::pair<ir::Value*, ir::Value*>> fresh{{target, contents}};
    ir::Value* child = target;
    while (true) {
      const auto view = views_.find(child);
      if (view == views_.end()) break;
      if (view->second.node) {
        CARINA_TRY(ir::Value* const parent, current(view->second.parent, before));
        CARINA_TRY(contents, putBack(view->second, parent, contents, before));
      }
      child = view->second.parent;
      fresh.emplace_back(child, contents);
    }
    const int version = ++rootVersions_[root];
    for (const auto& [value, now] : fresh) versions_[value] = {now, version};
    return {};
  }

  /// The parent with the part that `view` shows replaced by `contents`.
  Result<ir::Value*> putBack(const Sight& view, ir::Value* parent, ir::Value* contents, ir::Node* before) {
    const ir::Node& node = *view.node;
    ir::Builder builder(graph_, before, before->location());
    CARINA_TRY(const auto moves, movements(node));
    const Arguments a(node);
    if (!moves) return contents;  // to() without a change of type
    const Movement& move = (*moves)[view.result];
    if (move.isReshape(parent->shape())) {
      if (contents->shape() == parent->shape()) return contents;
      return View::create(builder, contents, parent->shape());
    }
    switch (opId(&node)) {
      case OpId::SelectInt:
        return SelectScatter::create(builder, parent, contents, a.integer("dim"), a.integer("index"));
      case OpId::SliceTensor: {
        const auto bound = [&](std::string_view name) {
          return a.given(name) ? std::optional(a.integer(name)) : std::nullopt;
        };
        return SliceScatter::create(builder, parent, contents, a.integer("dim"), bound("start"), bound("end"),
                                    a.integer("step", 1));
      }
      case OpId::Narrow:
      case OpId::SplitTensor:
      case OpId::SplitSizes:
      case OpId::SplitWithSizes:
      case OpId::Chunk:
      case OpId::TensorSplitSections:
      case OpId::TensorSplitIndices:
      case OpId::UnbindInt: {
        CARINA_TRY(const int64_t dim, wrapDim(a.integer("dim"), parent->rank()));
        const auto d = static_cast<size_t>(dim);
        const int64_t start = move.offset / rowMajorStrides(parent->shape())[d];
        if (opId(&node) == OpId::UnbindInt)
          return SelectScatter::create(builder, parent, contents, dim, start);
        return SliceScatter::create(builder, parent, contents, dim, start, start + move.shape[d]);
      }
      case OpId::Permute:
      case OpId::TransposeInt:
      case OpId::TransposeIntInplace:
      case OpId::TransposeMatrix:
      case OpId::TInplace:
      case OpId::NumpyT:
      case OpId::MT:
      case OpId::MovedimInt:
      case OpId::MovedimIntlist:
        return Permute::create(builder, contents, inverseOrder(move, parent->shape()));
      default:
        return Error(Diagnostic{fmt::format("a write through {} has no functional form", node.opName()),
                                "write to the tensor itself, or to a slice of it, in the model", "", "",
                                Code::UnsupportedForm});
    }
  }

  /// The permutation that undoes `move`, determined by its strides; dimensions of size 1 get the remaining
  /// positions.
  static ir::Ints inverseOrder(const Movement& move, const Shape& parent) {
    const Shape strides = rowMajorStrides(parent);
    ir::Ints inverse(parent.size(), -1);
    std::vector<bool> taken(parent.size(), false);
    for (size_t pass = 0; pass < 2; ++pass) {
      for (size_t d = 0; d < parent.size(); ++d) {
        for (size_t i = 0; i < parent.size() && inverse[d] < 0; ++i) {
          const bool matches =
              move.shape[i] == parent[d] && (pass == 1 || (parent[d] != 1 && move.strides[i] == strides[d]));
          if (taken[i] || !matches) continue;
          inverse[d] = static_cast<int64_t>(i);
          taken[i] = true;
        }
      }
    }
    return inverse;
  }

  ir::Graph& graph_;
  const std::unordered_set<const ir::Value*>& copies_;
  ir::Value* originalOperand_ = nullptr;  // operand 0 of the current node before the update
  std::unordered_map<ir::Value*, Sight> views_;
  std::unordered_map<ir::Value*, Version> versions_;
  std::unordered_map<ir::Value*, int> rootVersions_;
};

}  // namespace

Status functionalize(ir::Graph& graph, const std::unordered_set<const ir::Value*>& copies) {
  bool writes = false;
  for (ir::Node* node : graph.nodes()) {
    writes |= node->def().has(ir::kInPlace);
    for (const auto& region : node->regions()) {
      if (region) CARINA_RETURN_IF_ERROR(functionalize(*region, copies));
    }
  }
  return writes ? Functionalizer(graph, copies).run() : Status();
}

}  // namespace carina::decompose
