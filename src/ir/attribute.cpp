// SPDX-License-Identifier: Apache-2.0
// Attribute values as text, and which values fit which kind.
#include <charconv>
#include <cmath>
#include <limits>

#include "ir/op_def.hpp"
#include "ir/quoted.hpp"

namespace carina::ir {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::optional<int64_t> parseInt(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parseReal(std::string_view text) {
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<bool> parseBool(std::string_view text) {
  if (text == "True" || text == "true") return true;
  if (text == "False" || text == "false") return false;
  return std::nullopt;
}

/// Where the first item of a list ends: at a comma outside of double quotes, or at the end.
size_t itemEnd(std::string_view text) {
  bool inside = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (inside && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      inside = !inside;
    } else if (text[i] == ',' && !inside) {
      return i;
    }
  }
  return std::string_view::npos;
}

/// The items of "[a, b]"; a bare "a" is a list of one (ATen broadcasts int defaults to int[]).
std::vector<std::string_view> listItems(std::string_view text) {
  std::vector<std::string_view> items;
  if (!text.empty() && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
  while (!trim(text).empty()) {
    const size_t comma = itemEnd(text);
    items.push_back(trim(text.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return items;
}

std::string realText(double value) {
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (std::isnan(value)) return "nan";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

template <typename List, typename ItemText>
std::string listText(const List& list, ItemText itemText) {
  std::string text = "[";
  for (size_t i = 0; i < list.size(); ++i) {
    if (i) text += ", ";
    text += itemText(list[i]);
  }
  return text + "]";
}

/// "text" as quoted() writes it, 'text' as schemas do, or bare.
std::optional<std::string> stringFrom(std::string_view text) {
  const bool enclosed = text.size() >= 2 && text.front() == text.back();
  if (enclosed && text.front() == '"') return unquoted(text.substr(1, text.size() - 2));
  if (enclosed && text.front() == '\'') return std::string(text.substr(1, text.size() - 2));
  return std::string(text);
}

}  // namespace

std::string typeText(const Type& type) {
  return std::string(dtypeName(type.dtype)) + shapeText(type.shape);
}

int OpDef::attributeIndex(std::string_view attributeName) const {
  for (size_t i = 0; i < attributes.size(); ++i) {
    if (attributes[i].name == attributeName) return static_cast<int>(i);
  }
  return -1;
}

int OpDef::operandIndex(std::string_view operandName) const {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].name == operandName) return static_cast<int>(i);
  }
  return -1;
}

Result<Attribute> parseAttribute(const AttributeDef& def, std::string_view raw) {
  const std::string_view text = trim(raw);
  const auto bad = [&] {
    return fail(Code::BadText, "attribute '{}' cannot be read from \"{}\"", def.name, raw);
  };
  if (text == "None" && def.optional) return Attribute(std::monostate{});
  switch (def.kind) {
    case AttributeKind::Bool:
      if (auto value = parseBool(text)) return Attribute(*value);
      return bad();
    case AttributeKind::Int:
      if (auto value = parseInt(text)) return Attribute(*value);
      return bad();
    case AttributeKind::Real:
      if (auto value = parseReal(text)) return Attribute(*value);
      return bad();
    case AttributeKind::Scalar:
      if (auto value = parseBool(text)) return Attribute(*value);
      if (auto value = parseInt(text)) return Attribute(*value);
      if (auto value = parseReal(text)) return Attribute(*value);
      return bad();
    case AttributeKind::String: {
      auto value = stringFrom(text);
      if (!value) return bad();
      return Attribute(std::move(*value));
    }
    case AttributeKind::Type:
      if (auto value = dtypeFromName(text)) return Attribute(*value);
      return bad();
    case AttributeKind::Ints: {
      Ints values;
      for (std::string_view item : listItems(text)) {
        if (auto value = parseInt(item)) {
          values.push_back(*value);
        } else if (auto flag = parseBool(item)) {
          values.push_back(*flag ? 1 : 0);
        } else {
          return bad();
        }
      }
      return Attribute(std::move(values));
    }
    case AttributeKind::Reals: {
      Reals values;
      for (std::string_view item : listItems(text)) {
        auto value = parseReal(item);
        if (!value) return bad();
        values.push_back(*value);
      }
      return Attribute(std::move(values));
    }
    case AttributeKind::Strings: {
      Strings values;
      for (std::string_view item : listItems(text)) {
        auto value = stringFrom(item);
        if (!value) return bad();
        values.push_back(std::move(*value));
      }
      return Attribute(std::move(values));
    }
    case AttributeKind::Enum:
      for (size_t i = 0; i < def.enumerators.size(); ++i) {
        if (def.enumerators[i] == text) return Attribute(static_cast<int64_t>(i));
      }
      return bad();
    case AttributeKind::Tensor:
      return bad();
  }
  return bad();
}

std::string attributeText(const AttributeDef& def, const Attribute& value) {
  if (std::holds_alternative<std::monostate>(value)) return "None";
  if (def.kind == AttributeKind::Enum) {
    const auto index = static_cast<size_t>(std::get<int64_t>(value));
    return index < def.enumerators.size() ? std::string(def.enumerators[index]) : fmt::format("#{}", index);
  }
  struct Visitor {
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(bool v) const { return v ? "True" : "False"; }
    std::string operator()(int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return realText(v); }
    std::string operator()(const std::string& v) const { return ir::quoted(v); }
    std::string operator()(DType v) const { return std::string(dtypeName(v)); }
    std::string operator()(const Ints& v) const {
      return listText(v, [](int64_t item) { return std::to_string(item); });
    }
    std::string operator()(const Reals& v) const { return listText(v, realText); }
    std::string operator()(const Strings& v) const {
      return listText(v, [](const std::string& item) { return ir::quoted(item); });
    }
    std::string operator()(const Tensor& v) const { return typeText({v.dtype(), v.shape()}); }
  };
  return std::visit(Visitor{}, value);
}

bool attributeFits(const AttributeDef& def, const Attribute& value) {
  if (std::holds_alternative<std::monostate>(value)) return def.optional;
  switch (def.kind) {
    case AttributeKind::Bool:
      return std::holds_alternative<bool>(value);
    case AttributeKind::Int:
      return std::holds_alternative<int64_t>(value);
    case AttributeKind::Real:
      return std::holds_alternative<double>(value);
    case AttributeKind::Scalar:
      return std::holds_alternative<bool>(value) || std::holds_alternative<int64_t>(value) ||
             std::holds_alternative<double>(value);
    case AttributeKind::String:
      return std::holds_alternative<std::string>(value);
    case AttributeKind::Type:
      return std::holds_alternative<DType>(value);
    case AttributeKind::Ints:
      return std::holds_alternative<Ints>(value);
    case AttributeKind::Reals:
      return std::holds_alternative<Reals>(value);
    case AttributeKind::Strings:
      return std::holds_alternative<Strings>(value);
    case AttributeKind::Enum: {
      const auto* index = std::get_if<int64_t>(&value);
      return index && *index >= 0 && static_cast<size_t>(*index) < def.enumerators.size();
    }
    case AttributeKind::Tensor:
      return std::holds_alternative<Tensor>(value);
  }
  return false;
}

}  // namespace carina::ir
