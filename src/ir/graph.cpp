// SPDX-License-Identifier: Apache-2.0
#include "ir/graph.hpp"

#include <algorithm>

#include "ir/extents.hpp"

namespace carina::ir {

void Value::setConstant(Tensor tensor) {
  CARINA_CHECK(kind_ == Kind::Constant, "value is not a constant");
  type = {tensor.dtype(), tensor.shape()};
  constant_ = std::move(tensor);
}

Status checkExtents(const Type& type) {
  const auto count = checkedNumElements(type.shape);
  const bool large =
      std::any_of(type.shape.begin(), type.shape.end(), [](int64_t size) { return size > kMaxElements; });
  if (count && *count <= kMaxElements && !large) return {};
  const bool negative =
      std::any_of(type.shape.begin(), type.shape.end(), [](int64_t size) { return size < 0; });
  if (negative)
    return fail(Code::InvalidGraph, "a tensor of shape {}: sizes cannot be negative", shapeText(type.shape));
  return fail(Code::TooLarge, "a tensor of shape {}, which has more than 2^31-1 elements",
              shapeText(type.shape))
      .withRemedy("make it smaller: no Ethos-U program can hold it");
}

// Node
// -------------------------------------------------------------------------------------------------------------

std::span<Value* const> Node::operandGroup(size_t i) const {
  CARINA_CHECK(i < groupEnds_.size(), "operand index beyond the operator's table");
  const size_t begin = i == 0 ? 0 : groupEnds_[i - 1];
  return std::span<Value* const>(operands_).subspan(begin, groupEnds_[i] - begin);
}

void Node::dropUse(size_t flatIndex) {
  Value* value = operands_[flatIndex];
  if (!value) return;
  // Searches from both ends, because callers that drop many uses go through them from either end.
  auto& uses = value->uses_;
  const auto isThis = [&](const Use& use) { return use.node == this && use.operand == flatIndex; };
  size_t front = 0, back = uses.size();
  while (front < back && !isThis(uses[front]) && !isThis(uses[back - 1])) {
    ++front;
    --back;
  }
  CARINA_CHECK(front < back, "use list out of step with operands");
  uses.erase(uses.begin() + static_cast<std::ptrdiff_t>(isThis(uses[front]) ? front : back - 1));
}

void Node::setOperand(size_t flatIndex, Value* value) {
  CARINA_CHECK(flatIndex < operands_.size(), "operand index out of range");
  dropUse(flatIndex);
  operands_[flatIndex] = value;
  if (value) value->uses_.push_back({this, static_cast<uint32_t>(flatIndex)});
}

void Node::setOperandGroup(size_t i, std::span<Value* const> values) {
  const size_t begin = i == 0 ? 0 : groupEnds_[i - 1], end = groupEnds_[i];
  const std::vector<Value*> replacement(values.begin(), values.end());
  if (replacement.size() == end - begin) {
    // Other uses keep their places in the use lists: a constant may have as many uses as there are nodes.
    for (size_t k = begin; k < end; ++k) setOperand(k, replacement[k - begin]);
    return;
  }
  for (size_t k = begin; k < operands_.size(); ++k) dropUse(k);
  const auto at = [this](size_t k) { return operands_.begin() + static_cast<std::ptrdiff_t>(k); };
  operands_.erase(at(begin), at(end));
  operands_.insert(at(begin), replacement.begin(), replacement.end());
  for (size_t g = i; g < groupEnds_.size(); ++g)
    groupEnds_[g] = static_cast<uint32_t>(groupEnds_[g] + replacement.size() - (end - begin));
  for (size_t k = begin; k < operands_.size(); ++k) {
    if (operands_[k]) operands_[k]->uses_.push_back({this, static_cast<uint32_t>(k)});
  }
}

void Node::setAttribute(size_t i, Attribute value) {
  CARINA_CHECK(i < attributes_.size(), "attribute index beyond the operator's table");
  CARINA_CHECK(attributeFits(def_->attributes[i], value), "attribute value of the wrong kind");
  attributes_[i] = std::move(value);
}

void Node::setRegion(size_t i, Graph graph) {
  CARINA_CHECK(i < def_->regions, "region index beyond the operator's table");
  regions_[i] = std::make_unique<Graph>(std::move(graph));
}

std::string Node::where() const {
  if (!location_ || location_->name.empty()) return std::string(opName());
  if (location_->modulePath.empty()) return location_->name;
  return location_->name + " (module " + location_->modulePath + ")";
}

// Graph
// ------------------------------------------------------------------------------------------------------------

Graph::~Graph() {
  for (Node* node = first_; node;) {
    Node* next = node->next_;
    delete node;
    node = next;
  }
}

void Graph::adopt(Graph&& other) noexcept {
  name = std::move(other.name);
  inputOwners_ = std::move(other.inputOwners_);
  inputs_ = std::move(other.inputs_);
  outputs_ = std::move(other.outputs_);
  constants_ = std::move(other.constants_);
  first_ = std::exchange(other.first_, nullptr);
  last_ = std::exchange(other.last_, nullptr);
  count_ = std::exchange(other.count_, 0);
  other.inputs_.clear();
  other.outputs_.clear();
  for (Node* node = first_; node; node = node->next_) node->graph_ = this;
}

Graph::Graph(Graph&& other) noexcept {
  adopt(std::move(other));
}

Graph& Graph::operator=(Graph&& other) noexcept {
  if (this != &other) {
    Graph old(std::move(*this));
    adopt(std::move(other));
  }
  return *this;
}

Value* Graph::addInput(Type type, std::string valueName) {
  inputOwners_.push_back(std::unique_ptr<Value>(new Value(Value::Kind::Input, std::move(type))));
  Value* value = inputOwners_.back().get();
  value->name = std::move(valueName);
  inputs_.push_back(value);
  return value;
}

Value* Graph::addConstant(Tensor tensor, std::string valueName) {
  Type type{tensor.dtype(), tensor.shape()};
  constants_.push_back(std::unique_ptr<Value>(new Value(Value::Kind::Constant, std::move(type))));
  Value* value = constants_.back().get();
  value->constant_ = std::move(tensor);
  value->name = std::move(valueName);
  return value;
}

void Graph::setOutputs(std::vector<Value*> outputs) {
  for (Value* value : outputs_) --value->graphOutputUses_;
  outputs_ = std::move(outputs);
  for (Value* value : outputs_) ++value->graphOutputUses_;
}

void Graph::setOutput(size_t i, Value* value) {
  CARINA_CHECK(i < outputs_.size(), "graph output index out of range");
  --outputs_[i]->graphOutputUses_;
  outputs_[i] = value;
  ++value->graphOutputUses_;
}

void Graph::removeInput(size_t i) {
  CARINA_CHECK(i < inputs_.size() && inputs_[i]->unused(), "only unused graph inputs can be removed");
  Value* value = inputs_[i];
  inputs_.erase(inputs_.begin() + static_cast<std::ptrdiff_t>(i));
  std::erase_if(inputOwners_, [&](const auto& owner) { return owner.get() == value; });
}

void Graph::eraseUnusedConstants() {
  std::erase_if(constants_, [](const auto& value) { return value->unused(); });
}

void Graph::link(Node* node, Node* before) {
  node->graph_ = this;
  node->next_ = before;
  node->previous_ = before ? before->previous_ : last_;
  (node->previous_ ? node->previous_->next_ : first_) = node;
  (before ? before->previous_ : last_) = node;
  ++count_;
}

void Graph::unlink(Node* node) {
  (node->previous_ ? node->previous_->next_ : first_) = node->next_;
  (node->next_ ? node->next_->previous_ : last_) = node->previous_;
  --count_;
}

namespace {

Status checkOperands(const NodeSpec& spec) {
  const OpDef& def = *spec.def;
  if (spec.operands.size() != def.operands.size()) {
    return fail(Code::InvalidGraph, "{} takes {} operands, got {}", def.name, def.operands.size(),
                spec.operands.size());
  }
  for (size_t i = 0; i < spec.operands.size(); ++i) {
    const OperandDef& operand = def.operands[i];
    const size_t n = spec.operands[i].size();
    if ((operand.arity == Arity::One && n != 1) || (operand.arity == Arity::Optional && n > 1)) {
      return fail(Code::InvalidGraph, "operand '{}' of {} is given {} times", operand.name, def.name, n);
    }
    for (Value* value : spec.operands[i]) {
      if (!value && !operand.nullable)
        return fail(Code::InvalidGraph, "operand '{}' of {} is missing", operand.name, def.name);
    }
  }
  return {};
}

Status fillAttributes(NodeSpec& spec) {
  const OpDef& def = *spec.def;
  if (spec.attributes.size() > def.attributes.size()) {
    return fail(Code::InvalidGraph, "{} has {} attributes, got {}", def.name, def.attributes.size(),
                spec.attributes.size());
  }
  for (size_t i = 0; i < def.attributes.size(); ++i) {
    const AttributeDef& attribute = def.attributes[i];
    if (i >= spec.attributes.size()) {
      if (attribute.defaultText.empty())
        return fail(Code::InvalidGraph, "attribute '{}' of {} is missing", attribute.name, def.name);
      CARINA_TRY(Attribute value, parseAttribute(attribute, attribute.defaultText));
      spec.attributes.push_back(std::move(value));
    } else if (!attributeFits(attribute, spec.attributes[i])) {
      return fail(Code::InvalidGraph, "attribute '{}' of {} has the wrong kind", attribute.name, def.name);
    }
  }
  return {};
}

bool resultCountFits(const OpDef& def, size_t n) {
  size_t fixed = 0;
  bool variadic = false;
  for (const ResultDef& result : def.results) {
    if (result.arity == Arity::Variadic) {
      variadic = true;
    } else {
      ++fixed;
    }
  }
  return variadic ? n >= fixed : n == fixed;
}

}  // namespace

Result<Node*> Graph::create(NodeSpec spec, Node* before) {
  CARINA_CHECK(spec.def, "a node needs an operator");
  CARINA_RETURN_IF_ERROR(checkOperands(spec));
  CARINA_RETURN_IF_ERROR(fillAttributes(spec));

  auto node = std::unique_ptr<Node>(new Node(*this, *spec.def));
  node->location_ = std::move(spec.location);
  node->attributes_ = std::move(spec.attributes);
  node->regions_.resize(spec.def->regions);
  for (const auto& group : spec.operands) {
    node->operands_.insert(node->operands_.end(), group.begin(), group.end());
    node->groupEnds_.push_back(static_cast<uint32_t>(node->operands_.size()));
  }
  if (spec.types.empty() && spec.def->infer) {
    auto inferred = spec.def->infer(*node);
    if (!inferred) return std::move(inferred).error().at(node->where());
    spec.types = std::move(*inferred);
  }
  if (!resultCountFits(*spec.def, spec.types.size())) {
    return fail(Code::InvalidGraph, "{} has {} results, got {} types", spec.def->name,
                spec.def->results.size(), spec.types.size());
  }
  for (const Type& type : spec.types) {
    if (Status status = checkExtents(type); !status.ok()) return std::move(status).error().at(node->where());
  }
  for (size_t i = 0; i < spec.types.size(); ++i) {
    auto value = std::unique_ptr<Value>(new Value(Value::Kind::Result, std::move(spec.types[i])));
    value->producer_ = node.get();
    value->resultIndex_ = static_cast<uint32_t>(i);
    node->resultPointers_.push_back(value.get());
    node->results_.push_back(std::move(value));
  }
  for (size_t i = 0; i < node->operands_.size(); ++i) {
    if (node->operands_[i]) node->operands_[i]->uses_.push_back({node.get(), static_cast<uint32_t>(i)});
  }
  Node* raw = node.release();
  link(raw, before);
  return raw;
}

void Graph::erase(Node* node) {
  for (Value* value : node->resultPointers_) CARINA_CHECK(value->unused(), "erased node is still in use");
  // Many operands may be the same value, whose uses would be searched for each of them.
  constexpr size_t kMany = 16;
  if (node->operands_.size() <= kMany) {
    for (size_t i = 0; i < node->operands_.size(); ++i) node->dropUse(i);
  } else {
    std::vector<Value*> values(node->operands_);
    std::sort(values.begin(), values.end(), std::less<>());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    for (Value* value : values) {
      if (value) std::erase_if(value->uses_, [node](const Use& use) { return use.node == node; });
    }
  }
  unlink(node);
  delete node;
}

void Graph::moveBefore(Node* node, Node* before) {
  if (node == before) return;
  unlink(node);
  link(node, before);
}

void Graph::replaceAllUses(Value* from, Value* to) {
  if (from == to) return;
  for (const Use& use : from->uses_) use.node->operands_[use.operand] = to;
  to->uses_.insert(to->uses_.end(), from->uses_.begin(), from->uses_.end());
  from->uses_.clear();
  for (size_t i = 0; from->graphOutputUses_ > 0 && i < outputs_.size(); ++i) {
    if (outputs_[i] == from) setOutput(i, to);
  }
}

size_t Graph::eraseDeadNodes() {
  size_t erased = 0;
  for (Node* node = last_; node;) {
    Node* previous = node->previous_;
    const bool dead =
        node->def_->has(kPure) && std::all_of(node->resultPointers_.begin(), node->resultPointers_.end(),
                                              [](const Value* value) { return value->unused(); });
    if (dead) {
      erase(node);
      ++erased;
    }
    node = previous;
  }
  eraseUnusedConstants();
  return erased;
}

Result<Node*> cloneNode(const Node& node, Graph& target, std::unordered_map<const Value*, Value*>& mapping,
                        Node* before) {
  NodeSpec spec;
  spec.def = &node.def();
  spec.location = node.location();
  for (size_t i = 0; i < node.def().operands.size(); ++i) {
    auto& group = spec.operands.emplace_back();
    for (Value* operand : node.operandGroup(i)) {
      auto it = mapping.find(operand);
      CARINA_CHECK(!operand || it != mapping.end(), "cloned node uses a value that was not cloned");
      group.push_back(operand ? it->second : nullptr);
    }
  }
  for (size_t i = 0; i < node.def().attributes.size(); ++i) spec.attributes.push_back(node.attribute(i));
  for (Value* result : node.results()) spec.types.push_back(result->type);
  CARINA_TRY(Node * copy, target.create(std::move(spec), before));
  for (size_t i = 0; i < node.results().size(); ++i) {
    copy->result(i)->name = node.result(i)->name;
    copy->result(i)->quantization = node.result(i)->quantization;
    mapping[node.result(i)] = copy->result(i);
  }
  for (size_t i = 0; i < node.regions().size(); ++i) {
    if (node.regions()[i]) copy->setRegion(i, node.regions()[i]->clone());
  }
  return copy;
}

Graph Graph::clone(std::unordered_map<const Value*, Value*>* mapping) const {
  std::unordered_map<const Value*, Value*> local;
  auto& map = mapping ? *mapping : local;
  Graph copy(name);
  for (const Value* input : inputs_) {
    map[input] = copy.addInput(input->type, input->name);
    map[input]->quantization = input->quantization;
  }
  for (const auto& constant : constants_) {
    map[constant.get()] = copy.addConstant(constant->constant_, constant->name);
    map[constant.get()]->quantization = constant->quantization;
  }
  for (const Node* node : nodes()) {
    auto cloned = cloneNode(*node, copy, map);
    CARINA_CHECK(cloned.ok(), "cloning a valid node failed");
  }
  std::vector<Value*> outputs;
  for (const Value* output : outputs_) outputs.push_back(map.at(output));
  copy.setOutputs(std::move(outputs));
  return copy;
}

}  // namespace carina::ir
