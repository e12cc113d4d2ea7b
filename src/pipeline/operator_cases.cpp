// SPDX-License-Identifier: Apache-2.0
#include "pipeline/operator_cases.hpp"

#include <cmath>
#include <map>
#include <sstream>

#include "aten/operator_facts.hpp"

namespace carina::pipeline {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::string part;
  int depth = 0;
  for (char c : text) {
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    if (c == separator && depth == 0) {
      parts.push_back(part);
      part.clear();
    } else {
      part += c;
    }
  }
  parts.push_back(part);
  for (std::string& item : parts) {
    const size_t first = item.find_first_not_of(' ');
    item = first == std::string::npos ? "" : item.substr(first, item.find_last_not_of(' ') - first + 1);
  }
  return parts;
}

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> list = split(text, ' ');
  std::erase(list, "");
  return list;
}

/// A constant of the kind given by the letter: weights follow a sine, "p" is positive.
Tensor constantOf(char kind, const Shape& shape) {
  if (kind == 'k') return Tensor::zeros(DType::Int64, shape);
  if (kind == 'm') return Tensor::zeros(DType::Bool, shape);
  Tensor tensor = Tensor::uninitialized(DType::Float32, shape);
  const auto values = tensor.mutableAs<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    const float value = std::sin(static_cast<float>(i) * 0.7f) * 0.4f;
    values[i] = kind == 'p' ? std::abs(value) + 0.5f : value;
  }
  return tensor;
}

class CaseReader {
 public:
  CaseReader(ir::Graph& graph, std::string_view op) : graph_(graph), name_(op) {}

  Result<ir::Node*> read(const std::string& operands, const std::string& attributes) {
    const ir::OpDef* def = aten::findOperator(name_);
    if (def == nullptr) return fail(Code::UnknownName, "there is no operator {}", name_);
    ir::NodeSpec spec;
    spec.def = def;
    const std::string node = name_.substr(5, name_.find('.', 5) - 5);
    spec.location = std::make_shared<const ir::Location>(ir::Location{node, "", ""});
    const std::vector<std::string> given = words(operands);
    for (size_t i = 0; i < def->operands.size(); ++i) {
      CARINA_TRY(auto group, operandGroup(i < given.size() ? given[i] : "-"));
      spec.operands.push_back(std::move(group));
    }
    CARINA_TRY(spec.attributes, readAttributes(*def, attributes));
    return graph_.create(std::move(spec));
  }

 private:
  Result<std::vector<ir::Value*>> operandGroup(const std::string& text) {
    std::vector<ir::Value*> group;
    if (text == "-") return group;
    if (text.front() == '(') {
      for (const std::string& item : words(text.substr(1, text.size() - 2))) {
        CARINA_TRY(ir::Value* const value, operand(item));
        group.push_back(value);
      }
      return group;
    }
    CARINA_TRY(ir::Value* const value, operand(text));
    group.push_back(value);
    return group;
  }

  Result<ir::Value*> operand(const std::string& text) {
    static const std::map<char, DType> kInputs{{'f', DType::Float32}, {'i', DType::Int32},
                                               {'l', DType::Int64},   {'b', DType::Bool},
                                               {'c', DType::Int8},    {'h', DType::Int16}};
    Shape shape;
    std::istringstream sizes(text.substr(2, text.size() - 3));
    for (std::string size; std::getline(sizes, size, ',');) shape.push_back(std::stoll(size));
    const char kind = text.front();
    if (const auto input = kInputs.find(kind); input != kInputs.end())
      return graph_.addInput({input->second, shape}, fmt::format("x{}", graph_.inputs().size()));
    return graph_.addConstant(constantOf(kind, shape));
  }

  Result<std::vector<ir::Attribute>> readAttributes(const ir::OpDef& def, const std::string& text) const {
    std::map<std::string, std::string, std::less<>> given;
    for (const std::string& item : words(text)) {
      const size_t equals = item.find('=');
      given[item.substr(0, equals)] = item.substr(equals + 1);
    }
    std::vector<ir::Attribute> attributes;
    for (const ir::AttributeDef& attribute : def.attributes) {
      const auto at = given.find(attribute.name);
      const std::string value = at == given.end() ? std::string(attribute.defaultText) : at->second;
      if (at != given.end()) given.erase(at);
      CARINA_TRY(ir::Attribute parsed, ir::parseAttribute(attribute, value));
      attributes.push_back(std::move(parsed));
    }
    if (!given.empty())
      return fail(Code::UnknownName, "{} has no attribute {}", def.name, given.begin()->first);
    return attributes;
  }

  ir::Graph& graph_;
  std::string name_;
};

Result<OperatorCase> caseOf(const aten::OperatorSample& sample) {
  OperatorCase made{std::string(sample.op), std::string(sample.note), ir::Graph()};
  CARINA_TRY(ir::Node* const node, addOperator(made.graph, sample.op, std::string(sample.operands),
                                               std::string(sample.attributes)));
  std::vector<ir::Value*> outputs(node->results().begin(), node->results().end());
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i]->name = fmt::format("y{}", i);
  // Of several results, networks use the first; lists are used whole.
  if (node->def().results.front().arity == ir::Arity::One) outputs.resize(1);
  made.graph.setOutputs(std::move(outputs));
  return made;
}

}  // namespace

Result<ir::Node*> addOperator(ir::Graph& graph, std::string_view op, const std::string& operands,
                              const std::string& attributes) {
  return CaseReader(graph, op).read(operands, attributes);
}

Result<std::vector<OperatorCase>> operatorCases() {
  std::vector<OperatorCase> cases;
  for (const aten::OperatorSample& sample : aten::operatorSamples()) {
    auto made = caseOf(sample);
    if (!made) return std::move(made).error().at(fmt::format("sample of {}", sample.op));
    cases.push_back(std::move(*made));
  }
  return cases;
}

}  // namespace carina::pipeline
