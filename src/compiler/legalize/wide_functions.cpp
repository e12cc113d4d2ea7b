// SPDX-License-Identifier: Apache-2.0
// LOGISTIC and TANH of wide numbers (wide_functions.hpp): where a TOSA graph computes what the hardware does.
#include "compiler/legalize/wide_functions.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "compiler/dialect/wide_function.hpp"
#include "tosa/interpreter.hpp"
#include "tosa/tosa.hpp"

namespace carina::compiler {
namespace {

constexpr int64_t kCodes = 65536;
constexpr size_t kMostNodes = 64;  // of one function

/// The nodes between a result and the one int16 value that it is a function of, operands first.
struct Part {
  std::vector<const ir::Node*> nodes;
  const ir::Value* input = nullptr;
};

/// Collects a part backwards from its last node; fails where there is anything else than pointwise operators
/// with numbers and tables.
class PartFinder {
 public:
  std::optional<Part> find(const ir::Node* last) {
    shape_ = &last->result()->shape();
    if (!visit(last) || !part_.input || !hasTable_ || part_.input->shape() != *shape_) return std::nullopt;
    return std::move(part_);
  }

 private:
  bool visit(const ir::Node* node) {
    if (!seen_.insert(node).second) return true;
    if (seen_.size() > kMostNodes || !node->def().has(ir::kPointwise) || node->results().size() != 1 ||
        node->result()->shape() != *shape_)
      return false;
    const bool isTable = ir::isa<tosa::Table>(node);
    hasTable_ |= isTable;
    for (size_t i = 0; i < node->operands().size(); ++i) {
      const ir::Value* operand = node->operands()[i];
      if (!operand) return false;
      if (operand->isConstant()) {
        if (operand->numElements() != 1 && !(isTable && i == 1)) return false;
      } else if (operand->dtype() == DType::Int16) {
        if (part_.input && part_.input != operand) return false;
        part_.input = operand;
      } else if (!operand->producer() || !visit(operand->producer())) {
        return false;
      }
    }
    part_.nodes.push_back(node);
    return true;
  }

  Part part_;
  const Shape* shape_ = nullptr;
  bool hasTable_ = false;
  std::unordered_set<const ir::Node*> seen_;
};

/// Parts with the same text compute the same.
std::string textOf(const Part& part) {
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

/// The part by itself, for codes in steps of kStep: what lies between its operators stays in the caches.
constexpr int64_t kStep = 4096;
static_assert(kCodes % kStep == 0);

std::optional<ir::Graph> graphOf(const Part& part) {
  ir::Graph graph("function");
  std::unordered_map<const ir::Value*, ir::Value*> mapping;
  Shape shape(part.input->shape().size(), 1);
  if (shape.empty()) return std::nullopt;
  shape.back() = kStep;
  mapping[part.input] = graph.addInput({DType::Int16, shape});
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

/// Whether these are the function's results for the codes from `first` on.
bool computes(const WideFunction& function, int64_t first, std::span<const int16_t> results) {
  const int64_t half = function.shift > 0 ? int64_t{1} << (function.shift - 1) : 0;
  for (size_t i = 0; i < results.size(); ++i) {
    const int64_t code = first + static_cast<int64_t>(i);
    const int64_t v = (code * function.multiplier + half) >> function.shift;
    if (results[i] != npu_ir::wideFunction(function.tanh, v)) return false;
  }
  return true;
}

/// The functions that a part may be: numbers that it multiplies by and shifts by, and 0, are the ones to try.
std::vector<WideFunction> candidatesFor(const Part& part) {
  std::vector<int64_t> multipliers, shifts{0};
  const auto numberOf = [](const ir::Value* value) -> std::optional<int64_t> {
    if (!value->isConstant() || value->numElements() != 1) return std::nullopt;
    return value->constant().integerAt(0);
  };
  for (const ir::Node* node : part.nodes) {
    for (size_t i = 0; i < 2 && i < node->operands().size(); ++i) {
      const auto number = numberOf(node->operands()[i]);
      if (!number) continue;
      if (ir::isa<tosa::Mul>(node) && *number > 0 && *number < int64_t{1} << 31)
        multipliers.push_back(*number);
      if (ir::isa<tosa::ArithmeticRightShift>(node) && *number > 0 && *number < 32) shifts.push_back(*number);
    }
  }
  std::vector<WideFunction> candidates;
  for (const int64_t multiplier : multipliers) {
    for (const int64_t shift : shifts) {
      for (const bool tanh : {false, true}) candidates.push_back({tanh, multiplier, shift});
    }
  }
  return candidates;
}

/// The first of them that gives the part's result for every code.
std::optional<WideFunction> functionOf(const Part& part) {
  std::vector<WideFunction> candidates = candidatesFor(part);
  const auto graph = candidates.empty() ? std::nullopt : graphOf(part);
  if (!graph) return std::nullopt;
  std::array codes{Tensor::uninitialized(DType::Int16, graph->inputs().front()->shape())};
  for (int64_t first = -kCodes / 2; first < kCodes / 2; first += kStep) {
    const auto numbers = codes[0].mutableAs<int16_t>();
    std::iota(numbers.begin(), numbers.end(), static_cast<int16_t>(first));
    auto outputs = tosa::interpret(*graph, codes);
    if (!outputs.ok() || outputs->front().dtype() != DType::Int16 || outputs->front().numElements() != kStep)
      return std::nullopt;
    const std::span<const int16_t> results = outputs->front().as<int16_t>();
    std::erase_if(candidates,
                  [&](const WideFunction& function) { return !computes(function, first, results); });
    if (candidates.empty()) return std::nullopt;
  }
  return candidates.front();
}

}  // namespace

WideFunctions::WideFunctions(const ir::Graph& tosa) {
  std::unordered_map<std::string, std::optional<WideFunction>> known;
  for (const ir::Node* node : tosa.nodes()) {
    if (!ir::isa<tosa::Rescale>(node) || node->result()->dtype() != DType::Int16) continue;
    const auto part = PartFinder().find(node);
    if (!part) continue;
    const auto [found, isNew] = known.try_emplace(textOf(*part));
    if (isNew) found->second = functionOf(*part);
    if (!found->second) continue;
    matches_.emplace(node, Match{part->input, *found->second});
    // Users come after what they use.
    for (size_t i = part->nodes.size() - 1; i-- > 0;) {
      const ir::Value* value = part->nodes[i]->result();
      const bool needed = value->isGraphOutput() ||
                          std::any_of(value->uses().begin(), value->uses().end(), [&](const ir::Use& use) {
                            return use.node != node && !inside_.contains(use.node);
                          });
      if (!needed) inside_.insert(part->nodes[i]);
    }
  }
}

}  // namespace carina::compiler
