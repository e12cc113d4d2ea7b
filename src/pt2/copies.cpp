// SPDX-License-Identifier: Apache-2.0
#include "pt2/copies.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/shape.hpp"

namespace carina::pt2 {
namespace {

constexpr std::string_view kPrefix = "torch.ops.aten.";
constexpr std::array<std::string_view, 6> kMayCopy{"reshape.", "reshape_as.", "flatten.",
                                                   "ravel.",   "contiguous.", "to."};

/// The positions of a tensor's elements in order, as nested runs of equally spaced ones, outermost first:
/// dimensions that continue where the next inner one ends are one run, so equal positions give equal runs.
struct Run {
  int64_t count, step;
  friend bool operator==(const Run&, const Run&) = default;
};

std::optional<std::vector<Run>> runsOf(const TensorMeta& meta) {
  if (meta.strides.size() != meta.sizes.size()) return std::nullopt;
  std::vector<Run> runs;
  for (size_t i = 0; i < meta.sizes.size(); ++i) {
    const SymbolicSize &size = meta.sizes[i], &stride = meta.strides[i];
    if (!size.isConstant() || !stride.isConstant() || size.value <= 0) return std::nullopt;
    if (size.value == 1) continue;  // its stride means nothing
    const auto reach = checkedMul(size.value, stride.value);
    const auto count = runs.empty() ? std::nullopt : checkedMul(runs.back().count, size.value);
    if (reach && count && runs.back().step == *reach)
      runs.back() = {*count, stride.value};
    else
      runs.push_back({size.value, stride.value});
  }
  return runs;
}

}  // namespace

bool copied(std::string_view target, const TensorMeta& operand, const TensorMeta& result) {
  if (!target.starts_with(kPrefix)) return false;
  target.remove_prefix(kPrefix.size());
  if (std::none_of(kMayCopy.begin(), kMayCopy.end(), [&](auto name) { return target.starts_with(name); }))
    return false;
  const auto from = runsOf(operand), to = runsOf(result);
  return from && to && *from != *to;
}

}  // namespace carina::pt2
