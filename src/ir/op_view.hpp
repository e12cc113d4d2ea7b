// SPDX-License-Identifier: Apache-2.0
// Base of the typed operator accessors that scripts/gen_dialect.py generates, and the builder with which they
// create nodes.
#pragma once

#include <cassert>

#include "ir/graph.hpp"

namespace carina::ir {

/// A typed, non-owning view of a node; generated classes add one accessor per operand and attribute.
class OpView {
 public:
  explicit OpView(Node* node) : node_(node) {}
  Node* node() const { return node_; }
  Node* operator->() const { return node_; }
  explicit operator bool() const { return node_ != nullptr; }

 protected:
  Node* node_;
};

template <typename Op>
bool isa(const Node* node) {
  return node && node->is(Op::def());
}
/// The view, or an empty one when the node is another operator (or null).
template <typename Op>
Op dynCast(Node* node) {
  return Op(isa<Op>(node) ? node : nullptr);
}
template <typename Op>
const Op dynCast(const Node* node) {
  return Op(isa<Op>(node) ? const_cast<Node*>(node) : nullptr);
}
/// The view of a node that is known to be this operator, as in a rule that is looked up by operator.
template <typename Op>
Op cast(Node* node) {
  assert(isa<Op>(node));
  return Op(node);
}
template <typename Op>
const Op cast(const Node* node) {
  assert(isa<Op>(node));
  return Op(const_cast<Node*>(node));
}
/// The producer of a value as Op; empty if it is something else.
template <typename Op>
Op producerAs(const Value* value) {
  return dynCast<Op>(value ? value->producer() : nullptr);
}

/// Creates nodes at one position in a graph, with one location.
class Builder {
 public:
  explicit Builder(Graph& graph, Node* before = nullptr, LocationRef location = nullptr)
      : graph_(&graph), before_(before), location_(std::move(location)) {}
  /// Before `node`, with its location.
  static Builder beforeNode(Node* node) { return Builder(node->graph(), node, node->location()); }
  static Builder afterNode(Node* node) { return Builder(node->graph(), node->next(), node->location()); }

  Graph& graph() const { return *graph_; }
  const LocationRef& location() const { return location_; }
  Value* constant(Tensor tensor, std::string name = "") const {
    return graph_->addConstant(std::move(tensor), std::move(name));
  }

  /// For operands that may be wrong: the error names the node's location.
  Result<Node*> tryCreate(NodeSpec spec) const;
  /// For use in expressions: throws InvalidNode, which rejectInvalidNodes() turns into an error.
  Node* create(NodeSpec spec) const;

 private:
  Graph* graph_;
  Node* before_;
  LocationRef location_;
};

/// Implementation of the generated create() functions: collects operand groups and attributes in table order.
/// Out of line, because a dialect has hundreds of these functions.
class NodeMaker {
 public:
  NodeMaker(const Builder& builder, const OpDef& def);
  void one(Value* operand);
  void optional(Value* operand);  // null: an empty group
  void variadic(std::vector<Value*>&& operands);
  /// T is Attribute or one of the types that it holds.
  template <typename T>
  void attribute(T&& value);
  Node* create(std::vector<Type>&& types);

 private:
  const Builder& builder_;
  NodeSpec spec_;
};

/// Reads an attribute of the given C++ type; used by generated accessors.
template <typename T>
T attributeValue(const Node* node, size_t i) {
  return node->attributeAs<T>(i);
}
template <typename T>
std::optional<T> optionalAttribute(const Node* node, size_t i) {
  const Attribute& value = node->attribute(i);
  if (std::holds_alternative<std::monostate>(value)) return std::nullopt;
  return node->attributeAs<T>(i);
}
/// A Scalar attribute as double, or as integer (a real is truncated).
double scalarReal(const Attribute& value);
int64_t scalarInt(const Attribute& value);

inline Attribute optionalToAttribute(std::nullopt_t) {
  return std::monostate{};
}
template <typename T>
Attribute optionalToAttribute(std::optional<T> value) {
  if (value) return Attribute(std::move(*value));
  return std::monostate{};
}

}  // namespace carina::ir
