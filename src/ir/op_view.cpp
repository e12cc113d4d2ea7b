// SPDX-License-Identifier: Apache-2.0
#include "ir/op_view.hpp"

#include "ir/invalid_node.hpp"

namespace carina::ir {

// A single rewrite must not exhaust memory before its caller can check the number of nodes.
constexpr size_t kMaxNodesOfBuilder = 190'000;

Result<Node*> Builder::tryCreate(NodeSpec spec) const {
  if (!spec.location) spec.location = location_;
  return graph_->create(std::move(spec), before_);
}

Node* Builder::create(NodeSpec spec) const {
  if (graph_->numNodes() >= kMaxNodesOfBuilder) {
    throw InvalidNode(
        fail(Code::TooLarge, "it would expand the network to more than {} operators", kMaxNodesOfBuilder)
            .withRemedy("reduce its tensor sizes or its number of steps, or split the network"));
  }
  const OpDef& def = *spec.def;
  const bool located = spec.location || location_;
  auto node = tryCreate(std::move(spec));
  if (node) return *node;
  std::vector<Diagnostic> problems = node.error().diagnostics();
  for (Diagnostic& problem : problems) {
    problem.message = fmt::format("cannot be expressed as {}: {}", def.name, problem.message);
    if (!located) problem.place.clear();  // the caller of the rewrite knows the place
    if (problem.remedy.empty()) problem.remedy = "change the operator's arguments in the network";
  }
  throw InvalidNode(Error(std::move(problems)));
}

NodeMaker::NodeMaker(const Builder& builder, const OpDef& def) : builder_(builder) {
  spec_.def = &def;
  spec_.operands.reserve(def.operands.size());
  spec_.attributes.reserve(def.attributes.size());
}

void NodeMaker::one(Value* operand) {
  spec_.operands.push_back({operand});
}

void NodeMaker::optional(Value* operand) {
  std::vector<Value*>& group = spec_.operands.emplace_back();
  if (operand) group.push_back(operand);
}

void NodeMaker::variadic(std::vector<Value*>&& operands) {
  spec_.operands.push_back(std::move(operands));
}

template <typename T>
void NodeMaker::attribute(T&& value) {
  spec_.attributes.emplace_back(std::forward<T>(value));
}
template void NodeMaker::attribute(Attribute&&);
template void NodeMaker::attribute(bool&&);
template void NodeMaker::attribute(int64_t&&);
template void NodeMaker::attribute(double&&);
template void NodeMaker::attribute(std::string&&);
template void NodeMaker::attribute(DType&&);
template void NodeMaker::attribute(Ints&&);
template void NodeMaker::attribute(Reals&&);
template void NodeMaker::attribute(Strings&&);
template void NodeMaker::attribute(Tensor&&);

Node* NodeMaker::create(std::vector<Type>&& types) {
  spec_.types = std::move(types);
  return builder_.create(std::move(spec_));
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
