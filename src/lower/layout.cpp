// SPDX-License-Identifier: Apache-2.0
// Layout descriptions and the transpositions between them.
#include "lower/layout.hpp"

#include <algorithm>
#include <numeric>

#include "base/check.hpp"

namespace carina::lower {
namespace {

std::vector<int> firstInts(size_t count) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

}  // namespace

Layout Layout::rowMajor(const Shape& shape) {
  return ordered(shape, firstInts(shape.size()));
}

Layout Layout::ordered(const Shape& shape, const std::vector<int>& order) {
  Layout layout;
  layout.dims.resize(shape.size());
  for (int d : order) {
    const int64_t extent = shape[static_cast<size_t>(d)];
    if (extent == 1) continue;
    layout.dims[static_cast<size_t>(d)].push_back(static_cast<int>(layout.axes.size()));
    layout.axes.push_back(extent);
  }
  return layout;
}

Shape Layout::shape() const {
  Shape shape;
  for (const auto& dim : dims) {
    int64_t extent = 1;
    for (int axis : dim) extent *= axes[static_cast<size_t>(axis)];
    shape.push_back(extent);
  }
  return shape;
}

std::vector<int> Layout::logicalAxes() const {
  return axesOf(firstInts(dims.size()));
}

std::vector<int> Layout::axesOf(const std::vector<int>& order) const {
  std::vector<int> sequence;
  for (int d : order) {
    const auto& dim = dims[static_cast<size_t>(d)];
    sequence.insert(sequence.end(), dim.begin(), dim.end());
  }
  return sequence;
}

bool Layout::isRowMajor() const {
  return logicalAxes() == firstInts(axes.size());
}

Layout Layout::permuted(const std::vector<int>& permutation) const {
  Layout layout{axes, {}};
  for (int d : permutation) layout.dims.push_back(dims[static_cast<size_t>(d)]);
  return layout;
}

void Layout::splitAxis(int axis, int64_t outer) {
  const auto at = static_cast<size_t>(axis);
  CARINA_CHECK(outer > 1 && axes[at] > outer && axes[at] % outer == 0,
               "an axis is split into two real parts");
  axes.insert(axes.begin() + axis, outer);
  axes[at + 1] /= outer;
  for (auto& dim : dims) {
    for (size_t i = 0; i < dim.size(); ++i) {
      if (dim[i] == axis)
        dim.insert(dim.begin() + static_cast<std::ptrdiff_t>(++i), axis + 1);
      else if (dim[i] > axis)
        ++dim[i];
    }
  }
}

std::optional<Layout> Layout::viewed(const Shape& shape) const {
  if (isRowMajor()) return rowMajor(shape);
  // One dimension holding all axes in aten order; the new dimensions are cut off its front.
  Layout rest{axes, {logicalAxes()}};
  std::vector<size_t> ends;  // of each new dimension in the list of axes
  size_t next = 0;
  for (int64_t size : shape) {
    int64_t have = 1;
    while (have < size) {
      if (next >= rest.dims[0].size()) return std::nullopt;
      const int axis = rest.dims[0][next];
      const int64_t extent = rest.axes[static_cast<size_t>(axis)];
      const int64_t need = size / have;
      if (extent > need) {
        if (size % have != 0 || extent % need != 0) return std::nullopt;
        rest.splitAxis(axis, need);
        continue;
      }
      have *= extent;
      ++next;
    }
    if (have != size) return std::nullopt;
    ends.push_back(next);
  }
  if (next != rest.dims[0].size()) return std::nullopt;
  Layout layout{rest.axes, {}};
  size_t begin = 0;
  for (size_t end : ends) {
    layout.dims.emplace_back(rest.dims[0].begin() + static_cast<std::ptrdiff_t>(begin),
                             rest.dims[0].begin() + static_cast<std::ptrdiff_t>(end));
    begin = end;
  }
  return layout;
}

Shape Transposition::to() const {
  Shape shape;
  for (int axis : permutation) shape.push_back(from[static_cast<size_t>(axis)]);
  return shape;
}

std::optional<Transposition> transposition(const std::vector<int64_t>& axes,
                                           const std::vector<int>& sequence) {
  CARINA_CHECK(axes.size() == sequence.size(), "every axis is placed once");
  // Runs of axes that are consecutive in both orders.
  struct Run {
    int first;
    int64_t extent;
  };
  std::vector<Run> runs;
  for (size_t i = 0; i < sequence.size(); ++i) {
    const int64_t extent = axes[static_cast<size_t>(sequence[i])];
    if (i > 0 && sequence[i] == sequence[i - 1] + 1)
      runs.back().extent *= extent;
    else
      runs.push_back({sequence[i], extent});
  }
  if (runs.size() <= 1) return std::nullopt;
  std::vector<int> bySource = firstInts(runs.size());
  std::sort(bySource.begin(), bySource.end(), [&](int a, int b) {
    return runs[static_cast<size_t>(a)].first < runs[static_cast<size_t>(b)].first;
  });
  Transposition result;
  result.permutation.resize(runs.size());
  for (size_t i = 0; i < bySource.size(); ++i) {
    const auto run = static_cast<size_t>(bySource[i]);
    result.from.push_back(runs[run].extent);
    result.permutation[run] = static_cast<int>(i);
  }
  return result;
}

}  // namespace carina::lower
