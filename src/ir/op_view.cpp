// SPDX-License-Identifier: Apache-2.0
#include "ir/op_view.hpp"

#include "ir/invalid_node.hpp"

namespace carina::ir {

// One rewrite must not fill the memory before whoever runs it can look.
constexpr size_t kMostNodesOfBuilder = 190'000;

Result<Node*> Builder::tryCreate(NodeSpec spec) {
  if (!spec.location) spec.location = location_;
  return graph_->create(std::move(spec), before_);
}

Node* Builder::create(NodeSpec spec) {
  if (graph_->numNodes() >= kMostNodesOfBuilder) {
    throw InvalidNode(
        fail(Code::TooLarge, "it would make more than {} operators of the network", kMostNodesOfBuilder)
            .withRemedy("make its tensors or its number of steps smaller, or split the network"));
  }
  const OpDef& def = *spec.def;
  const bool located = spec.location || location_;
  auto node = tryCreate(std::move(spec));
  if (node) return *node;
  std::vector<Diagnostic> problems = node.error().diagnostics();
  for (Diagnostic& problem : problems) {
    problem.message = fmt::format("cannot be expressed by {}: {}", def.name, problem.message);
    if (!located) problem.place.clear();  // whoever runs the rewrite knows the place
    if (problem.remedy.empty()) problem.remedy = "change the operator's arguments in the network";
  }
  throw InvalidNode(Error(std::move(problems)));
}

double scalarReal(const Attribute& value) {
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return static_cast<double>(scalarInt(value));
}

int64_t scalarInt(const Attribute& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return *integer;
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? 1 : 0;
  const auto* real = std::get_if<double>(&value);
  CARINA_CHECK(real, "attribute is not a number");
  return static_cast<int64_t>(*real);
}

}  // namespace carina::ir
