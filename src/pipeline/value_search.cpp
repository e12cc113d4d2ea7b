// SPDX-License-Identifier: Apache-2.0
#include "pipeline/value_search.hpp"

#include <algorithm>

namespace carina::pipeline {
namespace {

/// Channel slices start at multiples of this.
constexpr int64_t kChannelStep = 8;

uint64_t mixed(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

/// Independent of the order of elements.
uint64_t contentsOf(const std::vector<int64_t>& elements) {
  uint64_t sum = mixed(elements.size());
  for (const int64_t element : elements) sum += mixed(static_cast<uint64_t>(element) + 0x9e3779b97f4a7c15ULL);
  return sum;
}

/// Height, width and depth; leading axes count as height.
struct Box {
  int64_t h = 1, w = 1, c = 1;
};
Box boxOf(const Shape& shape) {
  Box box;
  const size_t rank = shape.size();
  if (rank >= 1) box.c = shape[rank - 1];
  if (rank >= 2) box.w = shape[rank - 2];
  for (size_t d = 0; d + 2 < rank; ++d) box.h *= shape[d];
  return box;
}

}  // namespace

void ValueSearch::add(const Tensor& tensor) {
  Value value;
  value.shape = tensor.shape();
  value.missing = tensor.numElements();
  value.elements.reserve(static_cast<size_t>(value.missing));
  for (int64_t i = 0; i < value.missing; ++i) value.elements.push_back(tensor.integerAt(i));
  value.covered.assign(value.elements.size(), false);
  byContents_.emplace(contentsOf(value.elements), values_.size());
  values_.push_back(std::move(value));
}

std::vector<size_t> ValueSearch::found(const Shape& shape, const std::vector<int64_t>& elements) {
  std::vector<size_t> numbers;
  if (elements.empty()) return numbers;
  const auto [first, last] = byContents_.equal_range(contentsOf(elements));
  for (auto it = first; it != last; ++it) {
    Value& value = values_[it->second];
    value.missing = 0;
    value.covered.assign(value.covered.size(), true);
    numbers.push_back(it->second);
  }
  if (!numbers.empty()) return numbers;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].elements.size() > elements.size() && foundPiece(values_[i], shape, elements))
      numbers.push_back(i);
  }
  return numbers;
}

bool ValueSearch::foundPiece(Value& value, const Shape& shape, const std::vector<int64_t>& elements) {
  const auto search = [&](Box whole, Box piece) {
    if (piece.h > whole.h || piece.w > whole.w || piece.c > whole.c) return false;
    const auto at = [&](int64_t y, int64_t x, int64_t c) {
      return static_cast<size_t>((y * whole.w + x) * whole.c + c);
    };
    const auto equal = [&](int64_t y0, int64_t x0, int64_t c0) {
      auto element = elements.begin();
      for (int64_t y = 0; y < piece.h; ++y) {
        for (int64_t x = 0; x < piece.w; ++x, element += piece.c) {
          const auto row = value.elements.begin() + static_cast<std::ptrdiff_t>(at(y0 + y, x0 + x, c0));
          if (!std::equal(element, element + piece.c, row)) return false;
        }
      }
      return true;
    };
    bool any = false;
    for (int64_t y0 = 0; y0 + piece.h <= whole.h; ++y0) {
      for (int64_t x0 = 0; x0 + piece.w <= whole.w; ++x0) {
        for (int64_t c0 = 0; c0 + piece.c <= whole.c; c0 += kChannelStep) {
          if (value.elements[at(y0, x0, c0)] != elements.front() || !equal(y0, x0, c0)) continue;
          any = true;
          for (int64_t y = 0; y < piece.h; ++y) {
            for (int64_t x = 0; x < piece.w; ++x) {
              for (int64_t c = 0; c < piece.c; ++c) {
                const size_t element = at(y0 + y, x0 + x, c0 + c);
                value.missing -= !value.covered[element];
                value.covered[element] = true;
              }
            }
          }
        }
      }
    }
    return any;
  };
  const Box whole = boxOf(value.shape), piece = boxOf(shape);
  if (search(whole, piece)) return true;
  // The operation may address the same rows in another shape: as a matrix of channel vectors.
  if (piece.h == 1 || piece.w == 1 || piece.w == whole.w)
    return search({whole.h * whole.w, 1, whole.c}, {piece.h * piece.w, 1, piece.c});
  return false;
}

}  // namespace carina::pipeline
