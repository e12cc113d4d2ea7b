// SPDX-License-Identifier: Apache-2.0
#include "ir/printer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/budget.hpp"
#include "ir/parser.hpp"
#include "ir/quoted.hpp"
#include "ir/scanner.hpp"

namespace carina::ir {
namespace {

std::string elementText(const Tensor& tensor, int64_t i) {
  if (tensor.dtype() == DType::Float64) return fmt::format("{}", tensor.realAt(i));
  if (isFloat(tensor.dtype())) return fmt::format("{}", static_cast<float>(tensor.realAt(i)));
  return std::to_string(tensor.integerAt(i));
}

/// A name as written after '%' or '@': in quotes if it is not plain or is a number.
std::string nameText(const std::string& name) {
  const bool number = std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  return isPlainName(name) && !number ? name : ir::quoted(name);
}

/// Whether text would not preserve the elements: many bit patterns mean NaN.
bool hasNan(const Tensor& tensor) {
  if (!isFloat(tensor.dtype())) return false;
  for (int64_t i = 0; i < tensor.numElements(); ++i) {
    if (std::isnan(tensor.realAt(i))) return true;
  }
  return false;
}

/// Whether all elements have the same bytes.
bool isSplat(const Tensor& tensor) {
  const ByteSpan bytes = tensor.bytes();
  const auto size = static_cast<size_t>(dtypeSize(tensor.dtype()));
  return bytes.size() > size && std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) == 0;
}

std::string hexText(ByteSpan bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "0x";
  text.reserve(2 + 2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += kDigits[static_cast<size_t>(byte) >> 4];
    text += kDigits[static_cast<size_t>(byte) & 15];
  }
  return text;
}

class Printer {
 public:
  explicit Printer(const PrintOptions& options)
      : options_(options), splat_(static_cast<uint64_t>(kMaxSplatBytes)) {}

  std::string valueName(const Value* value) { return names_.of(value); }

  std::string quantizationText(const Value* value) {
    if (!value->quantization) return "";
    const Quantization& q = *value->quantization;
    const bool one = q.scales.size() == 1 && q.zeroPoints.size() == 1 && q.axis < 0;
    if (one) return fmt::format("<{}:{}>", q.scales[0], q.zeroPoints[0]);
    if (!options_.exact) return fmt::format("<{} scales, axis {}>", q.scales.size(), q.axis);
    const std::string axis = q.axis < 0 ? "" : fmt::format(", axis {}", q.axis);
    return fmt::format("<[{}]:[{}]{}>", fmt::join(q.scales, ", "), fmt::join(q.zeroPoints, ", "), axis);
  }

  std::string contentsText(const Tensor& tensor) {
    const bool large = tensor.numElements() > options_.constantElements;
    if (large && !options_.exact) return fmt::format("#{:016x}", contentsChecksum(tensor.bytes()));
    if (options_.exact && hasNan(tensor)) return hexText(tensor.bytes());
    if (large && isSplat(tensor) && splat_.take(static_cast<uint64_t>(tensor.numBytes())))
      return "splat " + elementText(tensor, 0);
    if (large) return hexText(tensor.bytes());
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
    operands(node, out);
    out += ')';
    attributes(node, out);
    location(node, out);
    regions(node, indent, out);
    out += '\n';
  }

  void graph(const Graph& graph, int indent, std::string& out) {
    const std::string pad(static_cast<size_t>(indent), ' ');
    const ValueNames::InnerGraph inner(names_);
    out += pad + "graph @" + (graph.name.empty() ? "" : nameText(graph.name)) + "(";
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      const Value* input = graph.inputs()[i];
      out += (i ? ", " : "") + valueName(input) + ": " + typeText(input->type) + quantizationText(input);
    }
    out += ") -> (";
    std::string body;
    for (const auto& constant : graph.constants()) {
      body += pad + "  " + valueName(constant.get()) + ": " + typeText(constant->type) +
              quantizationText(constant.get()) + " = " + contentsText(constant->constant()) + "\n";
    }
    for (const Node* n : graph.nodes()) node(*n, indent + 2, body);
    for (size_t i = 0; i < graph.outputs().size(); ++i)
      out += (i ? ", " : "") + valueName(graph.outputs()[i]);
    out += ") {\n" + body + pad + "}\n";
  }

 private:
  void operands(const Node& node, std::string& out) {
    const OpDef& def = node.def();
    size_t groups = def.operands.size();
    while (groups > 0 && def.operands[groups - 1].arity == Arity::Optional &&
           node.operandGroup(groups - 1).empty())
      --groups;
    for (size_t g = 0; g < groups; ++g) {
      const auto group = node.operandGroup(g);
      out += g ? ", " : "";
      if (def.operands[g].arity == Arity::Optional && group.empty()) out += '_';
      if (def.operands[g].arity == Arity::Variadic) out += '[';
      for (size_t i = 0; i < group.size(); ++i) out += (i ? ", " : "") + valueName(group[i]);
      if (def.operands[g].arity == Arity::Variadic) out += ']';
    }
  }

  void location(const Node& node, std::string& out) const {
    if (!node.location()) return;
    const Location& location = *node.location();
    if (options_.exact) {
      out += " loc(";
      const std::string* const parts[] = {&location.name, &location.modulePath, &location.source};
      size_t count = 3;
      while (count > 0 && parts[count - 1]->empty()) --count;
      for (size_t i = 0; i < count; ++i) out += (i ? ", " : "") + ir::quoted(*parts[i]);
      out += ')';
    } else if (options_.locations) {
      std::string text = node.where();
      if (!location.source.empty()) text += " at " + location.source;
      std::replace(text.begin(), text.end(), '\n', ' ');
      out += "  // " + text;
    }
  }

  void regions(const Node& node, int indent, std::string& out) {
    size_t count = node.regions().size();
    while (count > 0 && !node.regions()[count - 1]) --count;
    for (size_t i = 0; i < count; ++i) {
      out += '\n';
      if (node.regions()[i]) {
        graph(*node.regions()[i], indent + 2, out);
        out.pop_back();  // the line ends after the last region
      } else {
        out.append(static_cast<size_t>(indent) + 2, ' ');
        out += '_';
      }
    }
  }

  void attributes(const Node& node, std::string& out) {
    const OpDef& def = node.def();
    std::string text;
    for (size_t i = 0; i < def.attributes.size(); ++i) {
      const AttributeDef& attribute = def.attributes[i];
      std::string value = attributeText(attribute, node.attribute(i));
      if (const auto* tensor = std::get_if<Tensor>(&node.attribute(i))) value += " " + contentsText(*tensor);
      if (!attribute.defaultText.empty()) {
        auto byDefault = parseAttribute(attribute, attribute.defaultText);
        if (byDefault.ok() && attributeText(attribute, *byDefault) == value) continue;
      }
      text += (text.empty() ? "" : ", ") + std::string(attribute.name) + " = " + value;
    }
    if (!text.empty()) out += " {" + text + "}";
  }

  PrintOptions options_;
  Budget splat_;
  ValueNames names_;
};

}  // namespace

std::string ValueNames::of(const Value* value) {
  if (!value) return "_";
  const auto [label, isNew] = labels_.try_emplace(value);
  if (!isNew) return label->second;
  if (value->name.empty()) {
    label->second = "%" + std::to_string(nextNumber_++);
  } else {
    const int copy = ++copies_[value->name];
    label->second = "%" + nameText(value->name) + (copy > 1 ? fmt::format("#{}", copy) : "");
  }
  return label->second;
}

uint64_t contentsChecksum(ByteSpan bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (std::byte b : bytes) hash = (hash ^ static_cast<uint64_t>(b)) * 0x100000001b3u;
  return hash;
}

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
