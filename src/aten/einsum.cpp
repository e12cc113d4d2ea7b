// SPDX-License-Identifier: Apache-2.0
#include "aten/einsum.hpp"

#include <algorithm>
#include <cctype>
#include <map>

#include "aten/infer.hpp"
#include "aten/ops.hpp"

namespace carina::aten {
namespace {

/// Converts a term to one key per dimension: letters as themselves, dimensions of the ellipsis as -1
/// (innermost), -2, ...
Result<std::vector<int>> keysOf(std::string_view term, std::optional<size_t> rank, size_t ellipsisRank) {
  std::vector<int> keys;
  const size_t letters = static_cast<size_t>(std::count_if(
      term.begin(), term.end(), [](char c) { return std::isalpha(static_cast<unsigned char>(c)); }));
  for (size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    if (std::isalpha(static_cast<unsigned char>(c))) {
      keys.push_back(c);
    } else if (term.substr(i, 3) == "...") {
      const size_t n = rank ? *rank - std::min(*rank, letters) : ellipsisRank;
      for (size_t k = n; k > 0; --k) keys.push_back(-static_cast<int>(k));
      i += 2;
    } else {
      return fail(Code::InvalidOperator, "einsum: '{}' is not a term", term);
    }
  }
  if (rank && keys.size() != *rank)
    return fail(Code::InvalidOperator, "einsum: '{}' has {} dimensions, but its operand has {}", term,
                keys.size(), *rank);
  return keys;
}

}  // namespace

Result<EinsumPlan> parseEinsum(std::string_view spaced, const std::vector<Shape>& shapes) {
  std::string equation;
  std::copy_if(spaced.begin(), spaced.end(), std::back_inserter(equation), [](char c) { return c != ' '; });
  const size_t arrow = equation.find("->");
  std::vector<std::string> terms(1);
  for (char c : equation.substr(0, arrow)) {
    if (c == ',') {
      terms.emplace_back();
    } else {
      terms.back() += c;
    }
  }
  if (terms.size() != shapes.size())
    return fail(Code::InvalidOperator, "einsum: the equation has {} terms, but {} operands are given",
                terms.size(), shapes.size());
  std::map<int, int64_t> sizes;
  std::map<int, int> occurrences;
  std::vector<std::vector<int>> keys;
  size_t ellipsisRank = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    CARINA_TRY(std::vector<int> term, keysOf(terms[i], shapes[i].size(), 0));
    for (size_t d = 0; d < term.size(); ++d) {
      if (term[d] < 0) ellipsisRank = std::max(ellipsisRank, static_cast<size_t>(-term[d]));
      int64_t& size = sizes.emplace(term[d], 1).first->second;
      if (size != 1 && shapes[i][d] != 1 && size != shapes[i][d])
        return fail(Code::InvalidOperator, "einsum: sizes {} and {} of the same index differ", size,
                    shapes[i][d]);
      if (size == 1) size = shapes[i][d];
      ++occurrences[term[d]];
    }
    keys.push_back(std::move(term));
  }
  std::vector<int> output;
  if (arrow == std::string::npos) {
    for (size_t k = ellipsisRank; k > 0; --k) output.push_back(-static_cast<int>(k));
    for (const auto& [key, count] : occurrences) {
      if (key > 0 && count == 1) output.push_back(key);
    }
  } else {
    CARINA_TRY(output, keysOf(std::string_view(equation).substr(arrow + 2), std::nullopt, ellipsisRank));
  }
  EinsumPlan plan;
  std::map<int, int> labels;
  for (int key : output) {
    if (!sizes.contains(key) || !labels.emplace(key, static_cast<int>(labels.size())).second)
      return fail(Code::InvalidOperator, "einsum: the result '{}' cannot be formed", equation);
    plan.sizes.push_back(sizes[key]);
  }
  plan.outputLabels = output.size();
  for (const auto& [key, size] : sizes) {
    if (labels.emplace(key, static_cast<int>(labels.size())).second) plan.sizes.push_back(size);
  }
  for (const auto& term : keys) {
    auto& operand = plan.operands.emplace_back();
    for (int key : term) operand.push_back(labels[key]);
  }
  if (!checkedNumElements(plan.sizes))
    return fail(Code::InvalidOperator, "einsum: the result has too many elements");
  return plan;
}

infer::Types infer::einsum(const ir::Node& node) {
  std::vector<Shape> shapes;
  for (const ir::Value* operand : node.operands()) shapes.push_back(operand->shape());
  if (shapes.empty()) return fail(Code::InvalidOperator, "einsum: expected at least one operand");
  CARINA_TRY(const EinsumPlan plan, parseEinsum(ir::cast<Einsum>(&node).equation(), shapes));
  return std::vector<ir::Type>{{node.operands()[0]->dtype(), plan.output()}};
}

}  // namespace carina::aten
