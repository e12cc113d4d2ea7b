// SPDX-License-Identifier: Apache-2.0
// Common to the inference of all TOSA operators: checks operands against the tables, and results against
// recorded ones.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/graph.hpp"
#include "tosa/op_facts.hpp"

namespace carina::tosa {

/// An error that ends with the short name of the rule it breaks: "axis -5 is negative (AxisSmallerZero)".
template <typename... Args>
Error broken(std::string_view rule, fmt::format_string<Args...> format, Args&&... args) {
  return fail(Code::InvalidGraph, "{} ({})", fmt::format(format, std::forward<Args>(args)...), rule);
}

/// Values of a shape operand, a constant of DType::Shape.
std::span<const int64_t> shapeValues(const ir::Value* value);

class NodeChecker {
 public:
  explicit NodeChecker(const ir::Node& node) : node_(node), facts_(factsOf(node.def())) {}

  /// Ranks, compile-time constants, zero points, and element types (with acc_type) of all operands.
  Status operands();

  /// Narrows the supported combinations of types further; if none remains, this rule is broken.
  template <typename Keep>
  Status keepRows(Keep keep, std::string_view rule) {
    std::erase_if(rows_, [&](const TypeRow* row) { return !keep(*row); });
    if (!facts_.types.empty() && rows_.empty()) return broken(rule, "{}", typesText());
    return {};
  }

  /// The result types for these shapes. If results are already recorded, their types must be a supported
  /// combination and their shapes equal to these; `rule` names the rule broken by another shape, `rankRule`
  /// by another rank.
  Result<std::vector<ir::Type>> results(std::vector<Shape> shapes,
                                        std::string_view rule = "DimensionMismatch",
                                        std::string_view rankRule = "RankMismatch");

  /// Shape of the recorded result, null while the node is being created.
  const Shape* recordedShape() const { return node_.results().empty() ? nullptr : &node_.result(0)->shape(); }

 private:
  Status rank(const ir::Value& value, size_t operand) const;
  Status zeroPoint(const ir::Value& value, size_t operand) const;
  Status types();
  std::string typesText() const;

  const ir::Node& node_;
  const OpFacts& facts_;
  std::vector<const TypeRow*> rows_;
};

}  // namespace carina::tosa
