// SPDX-License-Identifier: Apache-2.0
#include "compiler/legalize/pointwise_part.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>
#include <variant>

#include "tosa/interpreter.hpp"
#include "tosa/tosa.hpp"

namespace carina::compiler {
namespace {

constexpr size_t kMaxNodes = 64;  // of one part

/// Collects a part backwards from its last node; fails if there is anything but pointwise operators with
/// scalars and tables.
class PartFinder {
 public:
  explicit PartFinder(DType input) : input_(input) {}

  std::optional<PointwisePart> find(const ir::Node* last) {
    shape_ = &last->result()->shape();
    if (!visit(last) || !part_.input || part_.tables == 0 || part_.input->shape() != *shape_)
      return std::nullopt;
    return std::move(part_);
  }

 private:
  bool visit(const ir::Node* node) {
    if (!seen_.insert(node).second) return true;
    if (seen_.size() > kMaxNodes || !node->def().has(ir::kPointwise) || node->results().size() != 1 ||
        node->result()->shape() != *shape_)
      return false;
    const bool isTable = ir::isa<tosa::Table>(node);
    part_.tables += isTable ? 1 : 0;
    for (size_t i = 0; i < node->operands().size(); ++i) {
      const ir::Value* operand = node->operands()[i];
      if (!operand) return false;
      if (operand->isConstant()) {
        if (operand->numElements() != 1 && !(isTable && i == 1)) return false;
      } else if (operand->dtype() == input_ && !ir::producerAs<tosa::Table>(operand)) {
        if (part_.input && part_.input != operand) return false;
        part_.input = operand;
      } else if (!operand->producer() || !visit(operand->producer())) {
        return false;
      }
    }
    part_.nodes.push_back(node);
    return true;
  }

  DType input_;
  PointwisePart part_;
  const Shape* shape_ = nullptr;
  std::unordered_set<const ir::Node*> seen_;
};

}  // namespace

std::optional<PointwisePart> pointwisePart(const ir::Node* last, DType input) {
  return PartFinder(input).find(last);
}

bool readByNoneBut(const std::vector<const ir::Node*>& nodes, const ir::Value* value) {
  size_t operands = 0;
  for (const ir::Node* node : nodes) operands += node->operands().size();
  // A value may have very many uses, and there may be very many such nodes.
  return !value->isGraphOutput() && value->uses().size() <= operands &&
         std::all_of(value->uses().begin(), value->uses().end(), [&](const ir::Use& use) {
           return std::find(nodes.begin(), nodes.end(), use.node) != nodes.end();
         });
}

std::string textOf(const PointwisePart& part) {
  std::string text;
  std::unordered_map<const ir::Value*, size_t> numbers;
  const auto add = [&](const auto& value) {
    text.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  for (const ir::Node* node : part.nodes) {
    text += node->opName();
    for (size_t i = 0; i < node->def().attributes.size(); ++i) {
      if (const auto* flag = std::get_if<bool>(&node->attribute(i))) add(*flag);
      if (const auto* number = std::get_if<int64_t>(&node->attribute(i))) add(*number);
    }
    for (const ir::Value* operand : node->operands()) {
      if (operand == part.input) {
        text += 'x';
      } else if (operand->isConstant()) {
        text += 'c';
        add(operand->dtype());
        const auto bytes = operand->constant().bytes();
        add(bytes.size());
        text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      } else {
        text += 'n';
        add(numbers.at(operand));
      }
    }
    add(node->result()->dtype());
    numbers.emplace(node->result(), numbers.size());
  }
  return text;
}

std::optional<ir::Graph> graphOf(const PointwisePart& part, int64_t count) {
  ir::Graph graph("function");
  std::unordered_map<const ir::Value*, ir::Value*> mapping;
  Shape shape(part.input->shape().size(), 1);
  if (shape.empty()) return std::nullopt;
  shape.back() = count;
  mapping[part.input] = graph.addInput({part.input->dtype(), shape});
  for (const ir::Node* node : part.nodes) {
    ir::NodeSpec spec;
    spec.def = &node->def();
    for (size_t group = 0; group < node->def().operands.size(); ++group) {
      std::vector<ir::Value*> values;
      for (const ir::Value* operand : node->operandGroup(group)) {
        ir::Value*& value = mapping[operand];
        if (!value) value = graph.addConstant(operand->constant());
        values.push_back(value);
      }
      spec.operands.push_back(std::move(values));
    }
    for (size_t i = 0; i < node->def().attributes.size(); ++i) spec.attributes.push_back(node->attribute(i));
    auto copy = graph.create(std::move(spec));
    if (!copy.ok()) return std::nullopt;
    mapping[node->result()] = (*copy)->result();
  }
  graph.setOutputs({mapping.at(part.nodes.back()->result())});
  return graph;
}

std::optional<Tensor> byteTable(const PointwisePart& part) {
  constexpr int64_t kCodes = 256;
  const auto graph = graphOf(part, kCodes);
  if (!graph) return std::nullopt;
  Tensor codes = Tensor::uninitialized(DType::Int8, graph->inputs().front()->shape());
  const auto numbers = codes.mutableAs<int8_t>();
  std::iota(numbers.begin(), numbers.end(), static_cast<int8_t>(-128));
  auto outputs = tosa::interpret(*graph, {&codes, 1});
  if (!outputs.ok() || outputs->front().numElements() != kCodes) return std::nullopt;
  return outputs->front().reshaped({kCodes});
}

}  // namespace carina::compiler
