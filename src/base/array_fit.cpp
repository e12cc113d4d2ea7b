// SPDX-License-Identifier: Apache-2.0
#include "base/array_fit.hpp"

#include <algorithm>

#include "base/shape.hpp"

namespace carina {
namespace {

/// Whether the array is one sample, many along a new first axis, or many along a batch axis of size 1.
bool holdsSamplesOf(const Shape& array, const Shape& one) {
  if (array == one) return true;
  const size_t from = array.size() == one.size() + 1 ? 0 : 1;
  if (from == 1 && (array.size() != one.size() || one.empty() || one[0] != 1)) return false;
  return std::equal(one.begin() + static_cast<std::ptrdiff_t>(from), one.end(), array.begin() + 1,
                    array.end());
}

}  // namespace

Result<Tensor> convertIntegers(const Tensor& tensor, DType to) {
  if (tensor.dtype() == to) return tensor;
  for (int64_t i = 0; i < tensor.numElements(); ++i) {
    const int64_t value = tensor.integerAt(i);
    if (value < integerMin(to) || value > integerMax(to))
      return fail(Code::InputMismatch, "value {} does not fit {}", value, dtypeName(to));
  }
  return convert(tensor, to);
}

std::string layoutRemedy(const Shape& array, const Shape& one) {
  if (one.size() < 3 || array.size() < one.size()) return {};
  Shape moved = array;
  // Moves channels from the end to before the two image axes, or back.
  std::rotate(moved.end() - 3, moved.end() - 1, moved.end());
  if (holdsSamplesOf(moved, one))
    return "the array looks channels-last (NHWC): transpose it, for example with numpy.moveaxis(x, -1, -3)";
  moved = array;
  std::rotate(moved.end() - 3, moved.end() - 2, moved.end());
  if (holdsSamplesOf(moved, one))
    return "the array looks channels-first (NCHW): transpose it, for example with numpy.moveaxis(x, -3, -1)";
  return {};
}

std::string describeArrays(const NamedTensors& arrays, std::string_view wanted, const Shape& one) {
  constexpr size_t kMaxNamed = 8;
  if (arrays.empty()) return "the file holds no array";
  std::string text = "the file holds ";
  bool fits = false;
  for (size_t i = 0; i < std::min(arrays.size(), kMaxNamed); ++i) {
    const auto& [name, tensor] = arrays[i];
    text += fmt::format("{}{} {}{}", i == 0 ? "" : ", ", name.empty() ? "an array without a name," : name,
                        dtypeName(tensor.dtype()), shapeText(tensor.shape()));
    fits = fits || holdsSamplesOf(tensor.shape(), one);
  }
  if (arrays.size() > kMaxNamed) text += fmt::format(" and {} more", arrays.size() - kMaxNamed);
  if (fits) text += fmt::format("; rename {} to {}?", arrays.size() == 1 ? "it" : "one of them", wanted);
  return text;
}

}  // namespace carina
