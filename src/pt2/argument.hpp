// SPDX-License-Identifier: Apache-2.0
// An argument of a node (or an input or output of a graph) as stored in the archive's JSON.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pt2/json.hpp"

namespace carina::pt2 {

struct GraphDocument;

struct Argument {
  enum class Tag : uint8_t {
    None,
    Tensor,   // names[0]
    Tensors,  // names; an entry of a list of optional tensors may be empty
    Int,
    Ints,
    Real,
    Reals,
    Complex,  // reals: the real and the imaginary part
    Bool,
    Bools,
    String,
    Strings,
    ScalarType,  // ints[0], the serializer's number
    Ignored,     // memory format, layout, device: irrelevant to values
    Symbolic,    // a number or list with at least one entry that is known only at run time; names of those
                 // entries
    Graph,       // subgraph, names[0] its attribute name
    Other,       // custom objects, operators, ...: `kind` says which
  };
  Tag tag = Tag::None;
  std::vector<std::string> names;
  std::vector<int64_t> ints;  // Bool(s) too
  std::vector<double> reals;
  std::vector<std::string> strings;
  std::vector<size_t> places;  // of a Symbolic: the position of each name in the list
  std::string kind;            // the JSON tag: "as_sym_int"
  std::shared_ptr<const GraphDocument> graph;

  bool isNumber() const { return tag == Tag::Int || tag == Tag::Real || tag == Tag::Bool; }
};

/// Reads one tagged argument; subgraphs included.
Result<Argument> readArgument(JsonValue value);

/// A constant argument as readable text: "3", "1.5", "'text'", "None".
std::string argumentText(const Argument& argument);

}  // namespace carina::pt2
