// SPDX-License-Identifier: Apache-2.0
#include "pt2/argument.hpp"

#include <functional>

#include "pt2/document.hpp"

namespace carina::pt2 {
namespace {

using Tag = Argument::Tag;

Result<std::string> tensorName(JsonValue value) {
  CARINA_TRY(const JsonObject object, JsonObject::of(value, "a tensor argument"));
  CARINA_TRY(std::string name, object.getName("name"));
  if (name.empty()) return fail(Code::Damaged, "a tensor argument has an empty name");
  return name;
}

Status readTensors(JsonValue value, Argument& argument) {
  CARINA_TRY(const JsonArray items, jsonArray(value, "a list of tensors"));
  for (JsonValue item : items) {
    CARINA_TRY(std::string name, tensorName(item));
    argument.names.push_back(std::move(name));
  }
  return {};
}

Status readOptionalTensors(JsonValue value, Argument& argument) {
  CARINA_TRY(const JsonArray items, jsonArray(value, "a list of optional tensors"));
  for (JsonValue item : items) {
    CARINA_TRY(const JsonTagged entry, jsonTagged(item, "an optional tensor"));
    if (entry.tag == "as_none") {
      argument.names.emplace_back();
    } else if (entry.tag == "as_tensor") {
      CARINA_TRY(std::string name, tensorName(entry.value));
      argument.names.push_back(std::move(name));
    } else {
      return fail(Code::UnknownVersion, "an optional tensor has the unknown tag '{}'", entry.tag);
    }
  }
  return {};
}

template <typename Item, typename Read>
Status readList(JsonValue value, std::vector<Item>& into, Read read) {
  CARINA_TRY(const JsonArray items, jsonArray(value, "a list argument"));
  for (JsonValue item : items) {
    auto entry = read(item, "an entry of a list argument");
    if (!entry.ok()) return std::move(entry).error();
    into.push_back(static_cast<Item>(*entry));
  }
  return {};
}

/// {"as_name": N} makes the argument symbolic; entries such as {"as_int": 3} are constants.
Status readSymbol(JsonValue value, Argument& argument) {
  CARINA_TRY(const JsonTagged entry, jsonTagged(value, "a symbolic number"));
  if (entry.tag == "as_name") {
    CARINA_TRY(const std::string_view name, jsonString(entry.value, "the name of a symbolic number"));
    argument.places.push_back(argument.names.size() + argument.ints.size() + argument.reals.size());
    argument.names.emplace_back(name);
    argument.tag = Tag::Symbolic;
    return {};
  }
  if (entry.tag == "as_int") {
    CARINA_TRY(const int64_t number, jsonInt(entry.value, "a symbolic number"));
    argument.ints.push_back(number);
  } else if (entry.tag == "as_float") {
    CARINA_TRY(const double number, jsonReal(entry.value, "a symbolic number"));
    argument.reals.push_back(number);
  } else if (entry.tag == "as_bool") {
    CARINA_TRY(const bool flag, jsonBool(entry.value, "a symbolic number"));
    argument.ints.push_back(flag ? 1 : 0);
  } else {
    return fail(Code::UnknownVersion, "a symbolic number has the unknown tag '{}'", entry.tag);
  }
  return {};
}

/// `constant` is the tag if every entry is a constant.
Status readSymbols(JsonValue value, bool list, Tag constant, Argument& argument) {
  argument.tag = constant;
  if (!list) return readSymbol(value, argument);
  CARINA_TRY(const JsonArray items, jsonArray(value, "a list of symbolic numbers"));
  for (JsonValue item : items) CARINA_RETURN_IF_ERROR(readSymbol(item, argument));
  return {};
}

Status readGraph(JsonValue value, Argument& argument) {
  CARINA_TRY(const JsonObject object, JsonObject::of(value, "a subgraph"));
  CARINA_TRY(std::string name, object.getName("name"));
  CARINA_TRY(const JsonValue text, object.get("graph"));
  CARINA_TRY(GraphDocument graph, readGraphDocument(text));
  argument.names.push_back(std::move(name));
  argument.graph = std::make_shared<const GraphDocument>(std::move(graph));
  return {};
}

Status readComplex(JsonValue value, Argument& argument) {
  CARINA_TRY(const JsonObject object, JsonObject::of(value, "a complex number"));
  for (const std::string_view part : {"real", "imag"}) {
    CARINA_TRY(const JsonValue text, object.get(part));
    CARINA_TRY(const double number, jsonReal(text, "a part of a complex number"));
    argument.reals.push_back(number);
  }
  return {};
}

Status fill(std::string_view tag, JsonValue value, Argument& argument) {
  const auto as = [&](Tag kind) { argument.tag = kind; };
  if (tag == "as_none") return {};
  if (tag == "as_tensor") {
    as(Tag::Tensor);
    CARINA_TRY(std::string name, tensorName(value));
    argument.names.push_back(std::move(name));
    return {};
  }
  if (tag == "as_tensors") return as(Tag::Tensors), readTensors(value, argument);
  if (tag == "as_optional_tensors") return as(Tag::Tensors), readOptionalTensors(value, argument);
  if (tag == "as_optional_tensor") {
    CARINA_TRY(const JsonTagged entry, jsonTagged(value, "an optional tensor"));
    if (entry.tag != "as_none" && entry.tag != "as_tensor")
      return fail(Code::UnknownVersion, "an optional tensor has the unknown tag '{}'", entry.tag);
    return fill(entry.tag, entry.value, argument);
  }
  if (tag == "as_int" || tag == "as_scalar_type") {
    as(tag == "as_int" ? Tag::Int : Tag::ScalarType);
    CARINA_TRY(const int64_t number, jsonInt(value, "an integer argument"));
    argument.ints.push_back(number);
    return {};
  }
  if (tag == "as_float") {
    as(Tag::Real);
    CARINA_TRY(const double number, jsonReal(value, "a float argument"));
    argument.reals.push_back(number);
    return {};
  }
  if (tag == "as_complex") return as(Tag::Complex), readComplex(value, argument);
  if (tag == "as_bool") {
    as(Tag::Bool);
    CARINA_TRY(const bool flag, jsonBool(value, "a bool argument"));
    argument.ints.push_back(flag ? 1 : 0);
    return {};
  }
  if (tag == "as_string") {
    as(Tag::String);
    CARINA_TRY(const std::string_view text, jsonString(value, "a string argument"));
    argument.strings.emplace_back(text);
    return {};
  }
  if (tag == "as_ints") return as(Tag::Ints), readList(value, argument.ints, jsonInt);
  if (tag == "as_floats") return as(Tag::Reals), readList(value, argument.reals, jsonReal);
  if (tag == "as_bools") return as(Tag::Bools), readList(value, argument.ints, jsonBool);
  if (tag == "as_strings") return as(Tag::Strings), readList(value, argument.strings, jsonString);
  if (tag == "as_sym_int") return readSymbols(value, false, Tag::Int, argument);
  if (tag == "as_sym_ints") return readSymbols(value, true, Tag::Ints, argument);
  if (tag == "as_sym_float") return readSymbols(value, false, Tag::Real, argument);
  if (tag == "as_sym_floats") return readSymbols(value, true, Tag::Reals, argument);
  if (tag == "as_sym_bool") return readSymbols(value, false, Tag::Bool, argument);
  if (tag == "as_sym_bools") return readSymbols(value, true, Tag::Bools, argument);
  if (tag == "as_memory_format" || tag == "as_layout" || tag == "as_device")
    return as(Tag::Ignored), Status();
  if (tag == "as_graph") return as(Tag::Graph), readGraph(value, argument);
  static constexpr std::string_view kOthers[] = {"as_custom_obj",         "as_operator",
                                                 "as_int_lists",          "as_float_lists",
                                                 "as_string_to_argument", "as_nested_tensors"};
  for (std::string_view other : kOthers) {
    if (tag == other) return as(Tag::Other), Status();
  }
  return fail(Code::UnknownVersion, "an argument has the unknown tag '{}'", tag)
      .withRemedy("The file was written by a newer torch; export with torch 2.6 to 2.14.");
}

/// {"as_int": 1.5} in a symbolic argument would leave a constant without its value.
bool isComplete(const Argument& argument) {
  switch (argument.tag) {
    case Tag::Int:
    case Tag::Bool:
      return argument.ints.size() == 1;
    case Tag::Real:
      return argument.reals.size() == 1;
    case Tag::Ints:
    case Tag::Bools:
      return argument.reals.empty();
    case Tag::Reals:
      return argument.ints.empty();
    default:
      return true;
  }
}

template <typename List, typename Text>
std::string joined(const List& list, Text text) {
  std::string out = "[";
  for (const auto& item : list) out += (out.size() > 1 ? ", " : "") + text(item);
  return out + "]";
}

}  // namespace

Result<Argument> readArgument(JsonValue value) {
  CARINA_TRY(const JsonTagged tagged, jsonTagged(value, "an argument"));
  Argument argument;
  argument.kind = tagged.tag;
  CARINA_RETURN_IF_ERROR(fill(tagged.tag, tagged.value, argument));
  if (!isComplete(argument))
    return fail(Code::Damaged, "an argument with the tag '{}' has a value of another type", tagged.tag);
  return argument;
}

std::string argumentText(const Argument& argument) {
  const auto integer = [](int64_t v) { return std::to_string(v); };
  const auto real = [](double v) { return fmt::format("{}", v); };
  const auto flag = [](int64_t v) { return std::string(v != 0 ? "True" : "False"); };
  const auto quoted = [](const std::string& v) { return "'" + v + "'"; };
  switch (argument.tag) {
    case Tag::None:
      return "None";
    case Tag::Int:
    case Tag::ScalarType:
      return integer(argument.ints[0]);
    case Tag::Ints:
      return joined(argument.ints, integer);
    case Tag::Real:
      return real(argument.reals[0]);
    case Tag::Reals:
      return joined(argument.reals, real);
    case Tag::Complex:
      return fmt::format("({} + {}j)", argument.reals[0], argument.reals[1]);
    case Tag::Bool:
      return flag(argument.ints[0]);
    case Tag::Bools:
      return joined(argument.ints, flag);
    case Tag::String:
      return quoted(argument.strings[0]);
    case Tag::Strings:
      return joined(argument.strings, quoted);
    default:
      return argument.kind;
  }
}

}  // namespace carina::pt2
