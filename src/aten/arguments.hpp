// SPDX-License-Identifier: Apache-2.0
// Access to attributes by name, for code that serves a family of operators with the same arguments (a single
// operator has its typed accessor). Used when types are inferred and kernels prepared, never at run time.
#pragma once

#include "ir/op_view.hpp"

namespace carina::aten {

class Arguments {
 public:
  explicit Arguments(const ir::Node& node) : node_(&node) {}

  bool has(std::string_view name) const { return node_->def().attributeIndex(name) >= 0; }
  /// The attribute, or "absent" if the operator has no attribute of this name.
  const ir::Attribute& at(std::string_view name) const {
    static const ir::Attribute absent;
    const int index = node_->def().attributeIndex(name);
    return index < 0 ? absent : node_->attribute(static_cast<size_t>(index));
  }
  bool given(std::string_view name) const { return !std::holds_alternative<std::monostate>(at(name)); }

  int64_t integer(std::string_view name, int64_t otherwise = 0) const {
    return given(name) ? ir::scalarInt(at(name)) : otherwise;
  }
  double real(std::string_view name, double otherwise = 0) const {
    return given(name) ? ir::scalarReal(at(name)) : otherwise;
  }
  bool boolean(std::string_view name, bool otherwise = false) const {
    return given(name) ? ir::scalarInt(at(name)) != 0 : otherwise;
  }
  std::string text(std::string_view name, std::string_view otherwise = "") const {
    const auto* value = std::get_if<std::string>(&at(name));
    return value ? *value : std::string(otherwise);
  }
  std::optional<DType> dtype(std::string_view name = "dtype") const {
    const auto* value = std::get_if<DType>(&at(name));
    return value ? std::optional(*value) : std::nullopt;
  }
  /// A list; a single integer counts as a list of one, an absent attribute as empty.
  ir::Ints ints(std::string_view name) const {
    if (const auto* list = std::get_if<ir::Ints>(&at(name))) return *list;
    if (const auto* one = std::get_if<int64_t>(&at(name))) return {*one};
    return {};
  }
  ir::Reals reals(std::string_view name) const {
    if (const auto* list = std::get_if<ir::Reals>(&at(name))) return *list;
    return {};
  }
  /// A list of n elements; a single element is used for all of them.
  Result<ir::Ints> ints(std::string_view name, size_t n) const {
    ir::Ints list = ints(name);
    if (list.size() == 1) list.resize(n, list[0]);
    if (list.size() != n)
      return fail(Code::InvalidOperator, "{} has {} values, expected {}", name, list.size(), n);
    return list;
  }

 private:
  const ir::Node* node_;
};

/// Fails for dropout that draws random numbers: its result is not deterministic.
inline Status checkNotTraining(const ir::Node& node) {
  if (!Arguments(node).boolean("train", node.opName() == "aten.native_dropout.default")) return {};
  return fail(Code::TrainingOnly, "dropout in training mode is random")
      .withRemedy("export the model in eval mode: model.eval()");
}

/// Maps a dimension in [-rank, rank) to [0, rank); scalars count as rank 1.
inline Result<int64_t> wrapDim(int64_t dim, int64_t rank) {
  auto wrapped = normalizeDim(dim, rank == 0 ? 1 : rank);
  if (!wrapped)
    return fail(Code::InvalidOperator, "dimension {} is out of range for a tensor of rank {}", dim, rank);
  return *wrapped;
}
inline Status checkDim(int64_t dim, int64_t rank) {
  if (auto wrapped = wrapDim(dim, rank); !wrapped) return std::move(wrapped).error();
  return {};
}

}  // namespace carina::aten
