// SPDX-License-Identifier: Apache-2.0
#include "aten/synonyms.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "aten/ops.hpp"

namespace carina::aten {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 27> kNames{{
    {"_reshape_copy", "reshape"},
    {"absolute", "abs"},
    {"adjoint", "mT"},  // of real tensors
    {"arccos", "acos"},
    {"arccosh", "acosh"},
    {"arcsin", "asin"},
    {"arcsinh", "asinh"},
    {"arctan", "atan"},
    {"arctan2", "atan2"},
    {"arctanh", "atanh"},
    {"divide", "div"},
    {"greater", "gt"},
    {"greater_equal", "ge"},
    {"less", "lt"},
    {"less_equal", "le"},
    {"mH", "mT"},
    {"moveaxis", "movedim"},
    {"multiply", "mul"},
    {"native_channel_shuffle", "channel_shuffle"},
    {"negative", "neg"},
    {"not_equal", "ne"},
    {"row_stack", "vstack"},
    {"subtract", "sub"},
    {"swapdims", "swapaxes"},
    {"unsafe_chunk", "chunk"},
    {"unsafe_split", "split"},
    {"unsafe_split_with_sizes", "split_with_sizes"},
}};

bool sameSignature(const ir::OpDef& a, const ir::OpDef& b) {
  return a.operands.size() == b.operands.size() &&
         std::equal(a.attributes.begin(), a.attributes.end(), b.attributes.begin(), b.attributes.end(),
                    [](const auto& x, const auto& y) { return x.name == y.name && x.kind == y.kind; });
}

/// The operator behind a name, or null. "aten.NAME.OVERLOAD".
const ir::OpDef* plainForm(const ir::Node& node) {
  constexpr std::string_view kSpace = "aten.", kCopy = "_copy";
  std::string_view name = node.opName();
  // What type inference knows is an operator of its own.
  if (node.def().infer || !node.def().has(ir::kPure) || !name.starts_with(kSpace)) return nullptr;
  name.remove_prefix(kSpace.size());
  const std::string_view base = name.substr(0, name.find('.')), overload = name.substr(base.size());
  const auto synonym =
      std::find_if(kNames.begin(), kNames.end(), [&](const auto& entry) { return entry.first == base; });
  std::string_view plain;
  if (synonym != kNames.end())
    plain = synonym->second;
  else if (base.ends_with(kCopy))
    plain = base.substr(0, base.size() - kCopy.size());
  else
    return nullptr;
  const ir::OpDef* def = findOperator(fmt::format("{}{}{}", kSpace, plain, overload));
  return def && sameSignature(*def, node.def()) ? def : nullptr;
}

}  // namespace

Status replaceSynonyms(ir::Graph& graph) {
  for (ir::Node* node : graph.nodes()) {
    for (const auto& region : node->regions()) {
      if (region) CARINA_RETURN_IF_ERROR(replaceSynonyms(*region));
    }
    const ir::OpDef* def = plainForm(*node);
    if (!def) continue;
    ir::NodeSpec spec;
    spec.def = def;
    spec.location = node->location();
    for (size_t i = 0; i < def->operands.size(); ++i) {
      const auto group = node->operandGroup(i);
      spec.operands.emplace_back(group.begin(), group.end());
    }
    for (size_t i = 0; i < def->attributes.size(); ++i) spec.attributes.push_back(node->attribute(i));
    if (!def->infer) {
      for (const ir::Value* result : node->results()) spec.types.push_back(result->type);
    }
    auto created = graph.create(std::move(spec), node);
    if (!created) return std::move(created).error().at(node->where());
    for (size_t i = 0; i < node->results().size(); ++i) {
      std::swap((*created)->result(i)->name, node->result(i)->name);
      graph.replaceAllUses(node->result(i), (*created)->result(i));
    }
    graph.erase(node);
  }
  return {};
}

}  // namespace carina::aten
