// SPDX-License-Identifier: Apache-2.0
#include "ir/printer.hpp"

#include <unordered_map>

namespace carina::ir {
namespace {

/// FNV-1a: tells two large constants apart in a printed graph.
uint64_t checksum(ByteSpan bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (std::byte b : bytes) hash = (hash ^ static_cast<uint64_t>(b)) * 0x100000001b3u;
  return hash;
}

std::string elementText(const Tensor& tensor, int64_t i) {
  if (isFloat(tensor.dtype())) return fmt::format("{}", static_cast<float>(tensor.realAt(i)));
  return std::to_string(tensor.integerAt(i));
}

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options) {}

  std::string valueName(const Value* value) {
    if (!value) return "_";
    if (!value->name.empty()) return "%" + value->name;
    auto [it, isNew] = numbers_.try_emplace(value, nextNumber_);
    if (isNew) ++nextNumber_;
    return "%" + std::to_string(it->second);
  }

  std::string quantizationText(const Value* value) {
    if (!value->quantization) return "";
    const Quantization& q = *value->quantization;
    if (q.scales.size() == 1) return fmt::format("<{}:{}>", q.scales[0], q.zeroPoints.empty() ? 0 : q.zeroPoints[0]);
    return fmt::format("<{} scales, axis {}>", q.scales.size(), q.axis);
  }

  std::string constantText(const Value* value) {
    const Tensor& tensor = value->constant();
    if (tensor.numElements() > options_.constantElements) {
      return fmt::format("#{:016x}", checksum(tensor.bytes()));
    }
    std::string text = "[";
    for (int64_t i = 0; i < tensor.numElements(); ++i) {
      if (i) text += ", ";
      text += elementText(tensor, i);
    }
    return text + "]";
  }

  void node(const Node& node, int indent, std::string& out) {
    out.append(static_cast<size_t>(indent), ' ');
    for (size_t i = 0; i < node.results().size(); ++i) {
      const Value* result = node.result(i);
      out += (i ? ", " : "") + valueName(result) + ": " + typeText(result->type) + quantizationText(result);
    }
    if (!node.results().empty()) out += " = ";
    out += node.opName();
    out += '(';
    const OpDef& def = node.def();
    bool first = true;
    for (size_t g = 0; g < def.operands.size(); ++g) {
      const auto group = node.operandGroup(g);
      if (def.operands[g].arity == Arity::Optional && group.empty()) continue;
      out += first ? "" : ", ";
      first = false;
      if (def.operands[g].arity == Arity::Variadic) out += '[';
      for (size_t i = 0; i < group.size(); ++i) out += (i ? ", " : "") + valueName(group[i]);
      if (def.operands[g].arity == Arity::Variadic) out += ']';
    }
    out += ')';
    attributes(node, out);
    if (options_.locations && node.location()) {
      out += "  // " + node.where();
      if (!node.location()->source.empty()) out += " at " + node.location()->source;
    }
    for (const auto& region : node.regions()) {
      if (!region) continue;
      out += "\n";
      graph(*region, indent + 2, out);
    }
    out += '\n';
  }

  void graph(const Graph& graph, int indent, std::string& out) {
    const std::string pad(static_cast<size_t>(indent), ' ');
    out += pad + "graph @" + graph.name + "(";
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      const Value* input = graph.inputs()[i];
      out += (i ? ", " : "") + valueName(input) + ": " + typeText(input->type) + quantizationText(input);
    }
    out += ") -> (";
    std::string body;
    for (const auto& constant : graph.constants()) {
      body += pad + "  " + valueName(constant.get()) + ": " + typeText(constant->type) +
              quantizationText(constant.get()) + " = " + constantText(constant.get()) + "\n";
    }
    for (const Node* n : graph.nodes()) node(*n, indent + 2, body);
    for (size_t i = 0; i < graph.outputs().size(); ++i) out += (i ? ", " : "") + valueName(graph.outputs()[i]);
    out += ") {\n" + body + pad + "}\n";
  }

 private:
  void attributes(const Node& node, std::string& out) {
    const OpDef& def = node.def();
    std::string text;
    for (size_t i = 0; i < def.attributes.size(); ++i) {
      const AttributeDef& attribute = def.attributes[i];
      const std::string value = attributeText(attribute, node.attribute(i));
      if (!attribute.defaultText.empty()) {
        auto byDefault = parseAttribute(attribute, attribute.defaultText);
        if (byDefault.ok() && attributeText(attribute, *byDefault) == value) continue;
      }
      text += (text.empty() ? "" : ", ") + std::string(attribute.name) + " = " + value;
    }
    if (!text.empty()) out += " {" + text + "}";
  }

  PrintOptions options_;
  std::unordered_map<const Value*, int> numbers_;
  int nextNumber_ = 0;
};

}  // namespace

std::string print(const Graph& graph, const PrintOptions& options) {
  std::string out;
  Printer(options).graph(graph, 0, out);
  return out;
}

std::string print(const Node& node) {
  std::string out;
  Printer({}).node(node, 0, out);
  return out;
}

}  // namespace carina::ir
