// SPDX-License-Identifier: Apache-2.0
// JSON to the structures of document.hpp.
#include <algorithm>
#include <unordered_set>

#include "pt2/document.hpp"
#include "pt2/metadata.hpp"

namespace carina::pt2 {
namespace {

constexpr int64_t kMaxRank = 64;

Result<SymbolicSize> readSize(JsonValue value) {
  CARINA_TRY(const JsonTagged tagged, jsonTagged(value, "a size"));
  SymbolicSize size;
  if (tagged.tag == "as_int") {
    CARINA_TRY(size.value, jsonInt(tagged.value, "a size"));
    return size;
  }
  if (tagged.tag != "as_expr")
    return fail(Code::UnknownVersion, "a size has the unknown tag '{}'", tagged.tag);
  CARINA_TRY(const JsonObject expression, JsonObject::of(tagged.value, "a symbolic size"));
  CARINA_TRY(size.expression, expression.getName("expr_str"));
  if (size.expression.empty()) return fail(Code::Damaged, "a symbolic size has an empty expression");
  if (const auto hint = expression.find("hint")) {
    CARINA_TRY(const JsonTagged number, jsonTagged(*hint, "the hint of a symbolic size"));
    int64_t known = 0;
    if (number.value.get_int64().get(known) == simdjson::SUCCESS) size.hint = known;
  }
  return size;
}

Result<std::vector<SymbolicSize>> readSizes(const JsonObject& meta, std::string_view key) {
  CARINA_TRY(const JsonArray items, meta.getArray(key));
  std::vector<SymbolicSize> sizes;
  for (JsonValue item : items) {
    CARINA_TRY(SymbolicSize size, readSize(item));
    sizes.push_back(std::move(size));
    if (static_cast<int64_t>(sizes.size()) > kMaxRank)
      return fail(Code::Excessive, "a tensor has more than {} dimensions", kMaxRank);
  }
  return sizes;
}

Result<std::vector<Argument>> readArguments(const JsonObject& object, std::string_view key) {
  CARINA_TRY(const JsonArray items, object.getArray(key));
  std::vector<Argument> arguments;
  for (JsonValue item : items) {
    CARINA_TRY(Argument argument, readArgument(item));
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

Result<NodeDocument> readNodeBody(const JsonObject& object, NodeDocument node) {
  CARINA_TRY(const JsonArray inputs, object.getArray("inputs"));
  std::unordered_set<std::string> names;
  for (JsonValue item : inputs) {
    CARINA_TRY(const JsonObject input, JsonObject::of(item, "an input of the node"));
    NamedArgument argument;
    CARINA_TRY(argument.name, input.getName("name"));
    CARINA_TRY(const JsonValue value, input.get("arg"));
    CARINA_TRY(argument.value, readArgument(value));
    if (!argument.name.empty() && !names.insert(argument.name).second)
      return fail(Code::Damaged, "the argument '{}' is given twice", argument.name);
    node.inputs.push_back(std::move(argument));
  }
  CARINA_TRY(node.outputs, readArguments(object, "outputs"));
  return node;
}

Result<NodeDocument> readNode(JsonValue value, size_t index) {
  CARINA_TRY(const JsonObject object, JsonObject::of(value, fmt::format("node {}", index)));
  NodeDocument node;
  CARINA_TRY(node.target, object.getName("target"));
  if (object.find("name")) {
    CARINA_TRY(node.name, object.getName("name"));
  }
  auto body = readNodeBody(object, node);
  if (!body.ok())
    return std::move(body).error().at(
        fmt::format("node {} ({})", node.name.empty() ? std::to_string(index) : node.name, node.target));
  node = std::move(*body);
  if (node.name.empty()) {  // torch 2.6 omits it if it equals the result's
    node.name = !node.outputs.empty() && !node.outputs[0].names.empty() ? node.outputs[0].names[0]
                                                                        : fmt::format("node_{}", index);
  }
  node.location = readLocation(node.name, object.find("metadata"));
  node.modules = readModuleClasses(object.find("metadata"));
  return node;
}

/// A specification that names a tensor and, under `key` (unless empty), what the tensor stands for.
template <typename Spec>
Result<Spec> readNamed(const JsonObject& object, Spec spec, typename Spec::Kind kind, std::string_view key) {
  spec.kind = kind;
  CARINA_TRY(const JsonObject argument, object.getObject("arg"));
  spec.argument.tag = Argument::Tag::Tensor;
  spec.argument.kind = "as_tensor";
  CARINA_TRY(std::string name, argument.getName("name"));
  spec.argument.names.push_back(std::move(name));
  if (!key.empty()) {
    CARINA_TRY(spec.target, object.getName(key));
  }
  return spec;
}

Result<InputSpec> readInputSpec(JsonValue value) {
  using Kind = InputSpec::Kind;
  CARINA_TRY(const JsonTagged tagged, jsonTagged(value, "an input specification"));
  CARINA_TRY(const JsonObject object, JsonObject::of(tagged.value, "an input specification"));
  InputSpec spec;
  const auto named = [&](Kind kind, std::string_view key) {
    return readNamed(object, std::move(spec), kind, key);
  };
  if (tagged.tag == "parameter") return named(Kind::Parameter, "parameter_name");
  if (tagged.tag == "buffer") {
    if (object.find("persistent")) {
      CARINA_TRY(spec.persistent, object.getBool("persistent"));
    }
    return named(Kind::Buffer, "buffer_name");
  }
  if (tagged.tag == "tensor_constant") return named(Kind::TensorConstant, "tensor_constant_name");
  if (tagged.tag == "custom_obj") return named(Kind::CustomObject, "custom_obj_name");
  if (tagged.tag == "token") return named(Kind::Token, "");
  if (tagged.tag == "user_input") {
    CARINA_TRY(const JsonValue argument, object.get("arg"));
    CARINA_TRY(spec.argument, readArgument(argument));
    return spec;
  }
  if (tagged.tag == "constant_input") {
    spec.kind = Kind::Constant;
    CARINA_TRY(spec.target, object.getName("name"));
    CARINA_TRY(const JsonValue constant, object.get("value"));
    CARINA_TRY(spec.argument, readArgument(constant));
    return spec;
  }
  return fail(Code::UnknownVersion, "an input has the unknown specification '{}'", tagged.tag);
}

Result<OutputSpec> readOutputSpec(JsonValue value) {
  using Kind = OutputSpec::Kind;
  CARINA_TRY(const JsonTagged tagged, jsonTagged(value, "an output specification"));
  CARINA_TRY(const JsonObject object, JsonObject::of(tagged.value, "an output specification"));
  OutputSpec spec;
  spec.tag = tagged.tag;
  if (tagged.tag == "user_output") {
    CARINA_TRY(const JsonValue argument, object.get("arg"));
    CARINA_TRY(spec.argument, readArgument(argument));
    return spec;
  }
  static constexpr std::tuple<std::string_view, Kind, std::string_view> kNamed[] = {
      {"buffer_mutation", Kind::BufferMutation, "buffer_name"},
      {"parameter_mutation", Kind::ParameterMutation, "parameter_name"},
      {"user_input_mutation", Kind::InputMutation, "user_input_name"},
      {"token", Kind::Token, ""},
      {"loss_output", Kind::Training, ""},
      {"gradient_to_parameter", Kind::Training, ""},
      {"gradient_to_user_input", Kind::Training, ""},
  };
  for (const auto& [tag, kind, key] : kNamed) {
    if (tagged.tag != tag) continue;
    return readNamed(object, std::move(spec), kind, key);
  }
  return fail(Code::UnknownVersion, "an output has the unknown specification '{}'", tagged.tag);
}

Status readRanges(const JsonObject& root, ProgramDocument& program) {
  const auto ranges = root.find("range_constraints");
  if (!ranges) return {};
  CARINA_TRY(const JsonObject object, JsonObject::of(*ranges, "'range_constraints'"));
  for (const auto& [symbol, value] : object.entries()) {
    CARINA_TRY(const JsonObject range, JsonObject::of(value, "a range constraint"));
    SymbolRange& bounds = program.ranges[std::string(symbol)];
    int64_t bound = 0;
    if (const auto low = range.find("min_val"); low && low->get_int64().get(bound) == simdjson::SUCCESS)
      bounds.min = bound;
    if (const auto high = range.find("max_val"); high && high->get_int64().get(bound) == simdjson::SUCCESS)
      bounds.max = bound;
  }
  return {};
}

Status readConditions(const JsonObject& root, ProgramDocument& program) {
  const auto conditions = root.find("guards_code");
  if (!conditions) return {};
  CARINA_TRY(const JsonArray items, jsonArray(*conditions, "'guards_code'"));
  for (JsonValue item : items) {
    CARINA_TRY(const std::string_view text, jsonString(item, "a condition of the export"));
    program.conditions.emplace_back(text);
  }
  return {};
}

Status readVersion(const JsonObject& root, ProgramDocument& program) {
  if (const auto version = root.find("torch_version")) {
    CARINA_TRY(const std::string_view text, jsonString(*version, "'torch_version'"));
    program.torchVersion = text;
  }
  CARINA_TRY(const JsonObject schema, root.getObject("schema_version"));
  CARINA_TRY(const int64_t major, schema.getInt("major"));
  CARINA_TRY(const int64_t minor, schema.getInt("minor"));
  if (major != 8) {
    return fail(Code::UnknownVersion, "has schema version {}.{}; version 8 can be read (torch 2.6 to 2.14)",
                major, minor)
        .withRemedy("Export the model again with torch 2.6 or later.");
  }
  program.schemaMajor = 8;
  program.schemaMinor = static_cast<int>(std::clamp<int64_t>(minor, 0, 1000000));
  return {};
}

}  // namespace

Result<TensorMeta> readTensorMeta(JsonValue value) {
  CARINA_TRY(const JsonObject object, JsonObject::of(value, "a tensor description"));
  TensorMeta meta;
  CARINA_TRY(meta.scalarType, object.getInt("dtype"));
  CARINA_TRY(meta.layout, object.getInt("layout"));
  CARINA_TRY(meta.sizes, readSizes(object, "sizes"));
  CARINA_TRY(meta.strides, readSizes(object, "strides"));
  CARINA_TRY(const JsonValue offset, object.get("storage_offset"));
  CARINA_TRY(meta.offset, readSize(offset));
  return meta;
}

Result<GraphDocument> readGraphDocument(JsonValue value) {
  CARINA_TRY(const JsonObject object, JsonObject::of(value, "a graph"));
  GraphDocument graph;
  CARINA_TRY(graph.inputs, readArguments(object, "inputs"));
  CARINA_TRY(graph.outputs, readArguments(object, "outputs"));
  CARINA_TRY(const JsonArray nodes, object.getArray("nodes"));
  for (JsonValue item : nodes) {
    CARINA_TRY(NodeDocument node, readNode(item, graph.nodes.size()));
    graph.nodes.push_back(std::move(node));
  }
  CARINA_TRY(const JsonObject tensors, object.getObject("tensor_values"));
  for (const auto& [name, description] : tensors.entries()) {
    auto meta = readTensorMeta(description);
    if (!meta.ok()) return std::move(meta).error().at(fmt::format("tensor {}", name));
    graph.tensors.emplace(std::string(name), std::move(*meta));
  }
  const auto values = object.find("sym_int_values");
  if (!values) return graph;
  CARINA_TRY(const JsonObject numbers, JsonObject::of(*values, "'sym_int_values'"));
  for (const auto& [name, description] : numbers.entries()) {
    auto number = readSize(description);
    if (!number.ok()) return std::move(number).error().at(fmt::format("number {}", name));
    graph.numbers.emplace(std::string(name), std::move(*number));
  }
  return graph;
}

Result<ProgramDocument> readProgramDocument(JsonValue value) {
  CARINA_TRY(const JsonObject root, JsonObject::of(value, "the exported program"));
  ProgramDocument program;
  CARINA_RETURN_IF_ERROR(readVersion(root, program));
  CARINA_RETURN_IF_ERROR(readRanges(root, program));
  CARINA_RETURN_IF_ERROR(readConditions(root, program));
  CARINA_TRY(const JsonObject module, root.getObject("graph_module"));
  CARINA_TRY(const JsonValue graph, module.get("graph"));
  CARINA_TRY(program.graph, readGraphDocument(graph));
  CARINA_TRY(const JsonObject signature, module.getObject("signature"));
  CARINA_TRY(const JsonArray inputs, signature.getArray("input_specs"));
  for (JsonValue item : inputs) {
    CARINA_TRY(InputSpec spec, readInputSpec(item));
    program.inputs.push_back(std::move(spec));
  }
  CARINA_TRY(const JsonArray outputs, signature.getArray("output_specs"));
  for (JsonValue item : outputs) {
    CARINA_TRY(OutputSpec spec, readOutputSpec(item));
    program.outputs.push_back(std::move(spec));
  }
  if (program.inputs.size() != program.graph.inputs.size() ||
      program.outputs.size() != program.graph.outputs.size()) {
    return fail(Code::Damaged, "the signature describes {} inputs and {} outputs, the graph has {} and {}",
                program.inputs.size(), program.outputs.size(), program.graph.inputs.size(),
                program.graph.outputs.size());
  }
  return program;
}

}  // namespace carina::pt2
