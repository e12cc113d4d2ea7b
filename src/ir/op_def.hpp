// SPDX-License-Identifier: Apache-2.0
// Operator descriptors: the properties of each operator of a dialect. Tables of these are generated from JSON
// by scripts/gen_dialect.py; the graph, printer and verifier need nothing else to work on any dialect.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"

namespace carina::ir {

class Node;

using Ints = std::vector<int64_t>;
using Reals = std::vector<double>;
using Strings = std::vector<std::string>;

/// The value of an attribute. monostate: an optional attribute that is absent (ATen's None).
using Attribute =
    std::variant<std::monostate, bool, int64_t, double, std::string, DType, Ints, Reals, Strings, Tensor>;

enum class AttributeKind : uint8_t {
  Bool,     // bool
  Int,      // int64_t
  Real,     // double
  Scalar,   // bool, int64_t or double: ATen's Scalar ("number")
  String,   // std::string
  Type,     // DType
  Ints,     // Ints (ATen's bool[] too, as 0 and 1)
  Reals,    // Reals
  Strings,  // Strings
  Enum,     // int64_t, an index into AttributeDef::enumerators
  Tensor,   // Tensor
};

enum class Arity : uint8_t {
  One,
  Optional,  // absent or one
  Variadic,  // any number; elements may be null when OperandDef::nullable
};

struct OperandDef {
  std::string_view name;
  Arity arity = Arity::One;
  bool nullable = false;
};

struct ResultDef {
  std::string_view name;
  Arity arity = Arity::One;
};

struct AttributeDef {
  std::string_view name;
  AttributeKind kind = AttributeKind::Int;
  bool optional = false;         // monostate is allowed
  std::string_view defaultText;  // "" = required. Text as parseAttribute() reads it: "1", "[1, 1]", "None",
                                 // "True", "1e-05"
  std::span<const std::string_view> enumerators;
};

/// The type of a value. The shape of a DType::Shape value is {rank}.
struct Type {
  DType dtype = DType::Float32;
  Shape shape;
  friend bool operator==(const Type&, const Type&) = default;
};
std::string typeText(const Type& type);  // "i8[1,28,28,3]"

/// Result types of a node from its operands and attributes. Errors say what is wrong with the operands.
using InferTypes = Result<std::vector<Type>> (*)(const Node& node);
/// Checks what type inference does not.
using VerifyNode = Status (*)(const Node& node);

enum Trait : uint32_t {
  kPure = 1u << 0,       // no effect besides its results: may be erased when unused, merged, reordered
  kPointwise = 1u << 1,  // element i of the result depends on element i of the (broadcast) operands only
  kInPlace = 1u << 2,    // writes an operand (ATen's trailing underscore, out= variants)
  kView = 1u << 3,       // the result may alias operand 0
  kCoreAten = 1u << 4,   // in the Core ATen operator set
  kComposite = 1u << 5,  // torch's run_decompositions() replaces it
};

struct OpDef {
  std::string_view name;  // with the dialect: "tosa.CONV2D", "aten.add.Tensor"
  uint16_t id = 0;        // index in the dialect's table
  uint8_t regions = 0;    // nested graphs
  uint32_t traits = 0;
  std::span<const OperandDef> operands;
  std::span<const ResultDef> results;
  std::span<const AttributeDef> attributes;
  InferTypes infer = nullptr;   // null: the creator provides the result types
  VerifyNode verify = nullptr;  // null: nothing but types to check

  bool has(Trait trait) const { return (traits & trait) != 0; }
  /// Index of an attribute by name, -1 if there is none. For readers and printers; other code uses the typed
  /// accessors.
  int attributeIndex(std::string_view attributeName) const;
  int operandIndex(std::string_view operandName) const;
};

/// Reads `text` as a value of the attribute's kind (also used for defaults). "None" is monostate if the
/// attribute is optional.
Result<Attribute> parseAttribute(const AttributeDef& def, std::string_view text);
/// The inverse, as shown by printers.
std::string attributeText(const AttributeDef& def, const Attribute& value);
/// Whether the value has the kind that the definition requires.
bool attributeFits(const AttributeDef& def, const Attribute& value);

}  // namespace carina::ir
