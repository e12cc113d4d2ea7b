// SPDX-License-Identifier: Apache-2.0
// ir::Graph: the graph of all dialects. Values are graph inputs, constants or node results; nodes are kept in
// an order in which every operand is defined before its use. Constants are values, not nodes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/op_def.hpp"

namespace carina::ir {

class Graph;
class Node;
class Value;

/// Origin of a node in the user's network; shared by all nodes derived from one source node.
struct Location {
  std::string name;        // node name in the source graph: "conv2d_3"
  std::string modulePath;  // "features.3.conv" (torch module path), "" when unknown
  std::string source;      // "model.py:42", "" when unknown
};
using LocationRef = std::shared_ptr<const Location>;

/// real = scale * (q - zeroPoint), per tensor (one scale, axis -1) or per index along `axis`.
struct Quantization {
  std::vector<double> scales;
  std::vector<int64_t> zeroPoints;
  int axis = -1;
  bool perChannel() const { return axis >= 0; }
  friend bool operator==(const Quantization&, const Quantization&) = default;
};

struct Use {
  Node* node;
  uint32_t operand;  // flat operand index
};

class Value {
 public:
  enum class Kind : uint8_t { Input, Constant, Result };

  std::string name;  // unique in the graph when not empty; printers number the rest
  Type type;
  std::optional<Quantization> quantization;

  DType dtype() const { return type.dtype; }
  const Shape& shape() const { return type.shape; }
  int64_t rank() const { return static_cast<int64_t>(type.shape.size()); }
  int64_t dim(int64_t i) const { return type.shape[static_cast<size_t>(i)]; }
  int64_t numElements() const { return carina::numElements(type.shape); }
  int64_t numBytes() const { return numElements() * dtypeSize(type.dtype); }

  Kind kind() const { return kind_; }
  bool isConstant() const { return kind_ == Kind::Constant; }
  bool isInput() const { return kind_ == Kind::Input; }
  /// The node that produces it, null for inputs and constants.
  Node* producer() const { return producer_; }
  uint32_t resultIndex() const { return resultIndex_; }
  /// Contents of a constant.
  const Tensor& constant() const {
    CARINA_CHECK(kind_ == Kind::Constant, "value is not a constant");
    return constant_;
  }
  void setConstant(Tensor tensor);  // updates `type` as well

  const std::vector<Use>& uses() const { return uses_; }
  bool hasOneUse() const { return uses_.size() == 1 && graphOutputUses_ == 0; }
  /// Used neither by a node nor as an output of the graph.
  bool unused() const { return uses_.empty() && graphOutputUses_ == 0; }
  bool isGraphOutput() const { return graphOutputUses_ > 0; }

 private:
  friend class Graph;
  friend class Node;
  Value(Kind kind, Type valueType) : type(std::move(valueType)), kind_(kind) {}
  Kind kind_;
  uint32_t resultIndex_ = 0;
  int graphOutputUses_ = 0;
  Node* producer_ = nullptr;
  std::vector<Use> uses_;
  Tensor constant_;
};

class Node {
 public:
  const OpDef& def() const { return *def_; }
  std::string_view opName() const { return def_->name; }
  bool is(const OpDef& def) const { return def_ == &def; }

  /// Flat list of all operands in table order. Null only inside nullable variadic groups.
  const std::vector<Value*>& operands() const { return operands_; }
  /// Operand group i of the table: size 1 for One, 0 or 1 for Optional, any for Variadic.
  std::span<Value* const> operandGroup(size_t i) const;
  /// Operand i of the table; null for an absent optional one.
  Value* operand(size_t i) const {
    auto group = operandGroup(i);
    return group.empty() ? nullptr : group.front();
  }
  void setOperand(size_t flatIndex, Value* value);
  /// Replaces group i of the table.
  void setOperandGroup(size_t i, std::span<Value* const> values);

  const std::vector<Value*>& results() const { return resultPointers_; }
  Value* result(size_t i = 0) const { return resultPointers_[i]; }

  const Attribute& attribute(size_t i) const { return attributes_[i]; }
  void setAttribute(size_t i, Attribute value);
  template <typename T>
  const T& attributeAs(size_t i) const {
    const T* value = std::get_if<T>(&attributes_[i]);
    CARINA_CHECK(value, "attribute has another type");
    return *value;
  }

  const std::vector<std::unique_ptr<Graph>>& regions() const { return regions_; }
  Graph& region(size_t i) const { return *regions_[i]; }
  void setRegion(size_t i, Graph graph);

  const LocationRef& location() const { return location_; }
  void setLocation(LocationRef location) { location_ = std::move(location); }
  /// For messages: source name and module path, or the operator name when unknown.
  std::string where() const;

  Graph& graph() const { return *graph_; }
  Node* next() const { return next_; }
  Node* previous() const { return previous_; }

 private:
  friend class Graph;
  Node(Graph& graph, const OpDef& def) : graph_(&graph), def_(&def) {}
  void dropUse(size_t flatIndex);

  Graph* graph_;
  const OpDef* def_;
  std::vector<Value*> operands_;
  std::vector<uint32_t> groupEnds_;  // end of each operand group in operands_
  std::vector<std::unique_ptr<Value>> results_;
  std::vector<Value*> resultPointers_;
  std::vector<Attribute> attributes_;
  std::vector<std::unique_ptr<Graph>> regions_;
  LocationRef location_;
  Node* previous_ = nullptr;
  Node* next_ = nullptr;
};

/// Specification of a node. Operand groups and attributes are in table order; missing attributes take their
/// defaults.
struct NodeSpec {
  const OpDef* def = nullptr;
  std::vector<std::vector<Value*>> operands;
  std::vector<Attribute> attributes;
  std::vector<Type> types;  // empty: inferred
  LocationRef location;
};

class Graph {
 public:
  explicit Graph(std::string graphName = "main") : name(std::move(graphName)) {}
  ~Graph();
  Graph(Graph&& other) noexcept;
  Graph& operator=(Graph&& other) noexcept;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  std::string name;

  // Values
  // -------------------------------------------------------------------------------------------------------
  Value* addInput(Type type, std::string name = "");
  Value* addConstant(Tensor tensor, std::string name = "");
  const std::vector<Value*>& inputs() const { return inputs_; }
  const std::vector<Value*>& outputs() const { return outputs_; }
  void setOutputs(std::vector<Value*> outputs);
  void setOutput(size_t i, Value* value);
  void removeInput(size_t i);  // must be unused
  const std::vector<std::unique_ptr<Value>>& constants() const { return constants_; }
  void eraseUnusedConstants();

  // Nodes
  // --------------------------------------------------------------------------------------------------------
  /// Creates a node before `before` (null: at the end). Fails if operand counts or attribute kinds are wrong,
  /// or if inference fails.
  Result<Node*> create(NodeSpec spec, Node* before = nullptr);
  /// Removes a node whose results are unused.
  void erase(Node* node);
  void moveBefore(Node* node, Node* before);
  void replaceAllUses(Value* from, Value* to);
  /// Erases pure nodes without used results, then unused constants. Returns the number of erased nodes.
  size_t eraseDeadNodes();

  Node* firstNode() const { return first_; }
  Node* lastNode() const { return last_; }
  size_t numNodes() const { return count_; }

  class Iterator {
   public:
    explicit Iterator(Node* node) : node_(node), next_(node ? node->next() : nullptr) {}
    Node* operator*() const { return node_; }
    Iterator& operator++() {  // the successor is read ahead: the current node may be erased
      node_ = next_;
      next_ = node_ ? node_->next() : nullptr;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return node_ != other.node_; }

   private:
    Node* node_;
    Node* next_;
  };
  struct NodeRange {
    Node* first;
    Iterator begin() const { return Iterator(first); }
    Iterator end() const { return Iterator(nullptr); }
  };
  /// In order. The current node may be erased and nodes may be inserted before it while iterating.
  NodeRange nodes() const { return {first_}; }

  /// A deep copy. `mapping` receives old value -> new value (top level only).
  Graph clone(std::unordered_map<const Value*, Value*>* mapping = nullptr) const;

 private:
  friend class Node;
  void link(Node* node, Node* before);
  void unlink(Node* node);
  void adopt(Graph&& other) noexcept;

  std::vector<std::unique_ptr<Value>> inputOwners_;
  std::vector<Value*> inputs_;
  std::vector<Value*> outputs_;
  std::vector<std::unique_ptr<Value>> constants_;
  Node* first_ = nullptr;
  Node* last_ = nullptr;
  size_t count_ = 0;
};

/// Copies `node` before `before` (null: to the end). Maps operands by `mapping`, which receives its results.
Result<Node*> cloneNode(const Node& node, Graph& target, std::unordered_map<const Value*, Value*>& mapping,
                        Node* before = nullptr);

}  // namespace carina::ir
