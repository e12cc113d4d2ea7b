// SPDX-License-Identifier: Apache-2.0
// The contents of an archive's JSON as plain structures: names and numbers as in the file, checked for
// syntax, not yet for meaning.
#pragma once

#include <map>
#include <unordered_map>

#include "base/shape.hpp"
#include "ir/graph.hpp"
#include "pt2/argument.hpp"
#include "pt2/metadata.hpp"

namespace carina::pt2 {

/// A size, stride or offset: a number, or an expression of symbols.
struct SymbolicSize {
  int64_t value = 0;
  std::string expression;  // "Symbol('s77', positive=True, integer=True)"; empty: `value` applies
  std::optional<int64_t> hint;
  bool isConstant() const { return expression.empty(); }
};

struct TensorMeta {
  int64_t scalarType = 0;  // the serializer's number
  int64_t layout = 0;
  std::vector<SymbolicSize> sizes, strides;
  SymbolicSize offset;

  bool isStatic() const;
  Shape shape() const;  // of constant sizes
};

struct NamedArgument {
  std::string name;
  Argument value;
};

struct NodeDocument {
  std::string target;  // "torch.ops.aten.conv2d.default"
  std::string name;
  std::vector<NamedArgument> inputs;
  std::vector<Argument> outputs;
  ir::LocationRef location;
  std::vector<ModuleClass> modules;  // that contain it
};

struct GraphDocument {
  std::vector<Argument> inputs, outputs;
  std::vector<NodeDocument> nodes;
  std::unordered_map<std::string, TensorMeta> tensors;
  std::unordered_map<std::string, SymbolicSize> numbers;  // integers that are computed from sizes
};

struct InputSpec {
  enum class Kind : uint8_t { Parameter, Buffer, TensorConstant, CustomObject, Token, User, Constant };
  Kind kind = Kind::User;
  Argument argument;
  std::string target;  // name in the state dict or among the constants; of a Constant, the argument's name
  bool persistent = true;
};

struct OutputSpec {
  enum class Kind : uint8_t { User, BufferMutation, ParameterMutation, InputMutation, Token, Training };
  Kind kind = Kind::User;
  Argument argument;
  std::string target;  // what is written
  std::string tag;     // as in the file
};

struct SymbolRange {
  std::optional<int64_t> min, max;
};

struct ProgramDocument {
  GraphDocument graph;
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  std::map<std::string, SymbolRange> ranges;
  std::vector<std::string> conditions;  // on the inputs' sizes, as Python: assumptions of the export
  int schemaMajor = 0, schemaMinor = 0;
  std::string torchVersion;
};

/// Reads models/NAME.json (or serialized_exported_program.json). Errors name the node they occur in.
Result<ProgramDocument> readProgramDocument(JsonValue root);
Result<GraphDocument> readGraphDocument(JsonValue value);
Result<TensorMeta> readTensorMeta(JsonValue value);

}  // namespace carina::pt2
