// SPDX-License-Identifier: Apache-2.0
// The arguments of a kernel call, and the loops that a kernel derives from tensor strides: the basis of the
// counts in call_work.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "pte/program.hpp"

namespace carina::cpu {

using Ints = std::vector<int64_t>;

inline double elementsOf(const pte::Tensor& tensor) {
  double count = 1;
  for (const int32_t size : tensor.sizes) count *= std::max<int32_t>(size, 0);
  return count;
}

/// Strides in elements by logical dimension, of a dense tensor in its memory order.
inline Ints stridesOf(const pte::Tensor& tensor) {
  Ints steps(tensor.sizes.size(), 1);
  int64_t step = 1;
  for (size_t k = tensor.sizes.size(); k-- > 0;) {
    const size_t d = k < tensor.dimOrder.size() ? tensor.dimOrder[k] : k;
    if (d >= steps.size()) continue;
    steps[d] = step;
    step = static_cast<int64_t>(static_cast<uint64_t>(step) *
                                static_cast<uint64_t>(std::max(tensor.sizes[d], 1)));
  }
  return steps;
}

/// A stride multiplied by `times`; wraps, because sizes in a program can be anything.
inline int64_t scaled(int64_t step, int64_t times) {
  return static_cast<int64_t>(static_cast<uint64_t>(step) * static_cast<uint64_t>(times));
}

inline bool isReal(const pte::Tensor& tensor) {
  return tensor.type == pte::ScalarType::Float32;
}

/// Nested loops over several tensors; neighbours that continue with the same stride are merged.
class Loops {
 public:
  void add(int64_t size, const Ints& steps) {
    if (size == 1) return;
    total_ *= static_cast<double>(std::max<int64_t>(size, 0));
    if (!steps_.empty()) {
      bool joins = true;
      for (size_t k = 0; k < steps.size(); ++k) {
        joins = joins && static_cast<uint64_t>(steps_[k]) ==
                             static_cast<uint64_t>(steps[k]) * static_cast<uint64_t>(size);
      }
      if (!joins) outer_.push_back({inner_, steps_});
      inner_ = joins ? inner_ * static_cast<double>(size) : static_cast<double>(size);
    } else {
      inner_ = static_cast<double>(size);
    }
    steps_ = steps;
  }
  double total() const { return total_; }
  double inner() const { return inner_; }
  double runs() const { return inner_ > 0 ? total_ / inner_ : 0; }
  /// Stride of tensor k in the innermost loop; `otherwise` if there is none.
  int64_t step(size_t k, int64_t otherwise) const { return k < steps_.size() ? steps_[k] : otherwise; }
  /// Loops around the innermost one: trip counts and strides.
  const std::vector<std::pair<double, Ints>>& outer() const { return outer_; }

 private:
  double total_ = 1, inner_ = 1;
  Ints steps_;
  std::vector<std::pair<double, Ints>> outer_;
};

/// Arguments of a call.
class Reader {
 public:
  Reader(const pte::Method& method, const pte::KernelCall& call) : method_(method), call_(call) {}

  /// Without the return value, which is listed twice.
  size_t count() const { return call_.arguments.empty() ? 0 : call_.arguments.size() - 1; }
  const pte::Tensor* tensor(size_t i) const { return as<pte::Tensor>(i); }
  std::vector<const pte::Tensor*> tensors(size_t i) const {
    std::vector<const pte::Tensor*> list;
    if (const pte::Tensor* one = tensor(i)) return {one};
    const std::vector<int32_t>* items = nullptr;
    if (const auto* all = as<pte::TensorList>(i)) items = &all->items;
    if (const auto* some = as<pte::OptionalTensorList>(i)) items = &some->items;
    if (items == nullptr) return list;
    for (const int32_t item : *items) {
      const pte::Value* value = valueAt(item);
      if (const auto* found = value == nullptr ? nullptr : std::get_if<pte::Tensor>(value))
        list.push_back(found);
    }
    return list;
  }
  std::optional<int64_t> integer(size_t i) const {
    const int64_t* number = as<int64_t>(i);
    return number == nullptr ? std::nullopt : std::optional(*number);
  }
  bool boolean(size_t i) const {
    const bool* flag = as<bool>(i);
    return flag != nullptr && *flag;
  }
  Ints integers(size_t i) const {
    Ints numbers;
    if (const auto one = integer(i)) return {*one};
    const auto* list = as<pte::IntList>(i);
    if (list == nullptr) return numbers;
    for (const int64_t item : list->items) {
      const pte::Value* value = valueAt(item);
      const auto* number = value == nullptr ? nullptr : std::get_if<int64_t>(value);
      numbers.push_back(number == nullptr ? 0 : *number);
    }
    return numbers;
  }
  /// Integer argument i as a dimension of a tensor of this rank.
  std::optional<size_t> dimension(size_t i, size_t rank) const { return wrapped(integer(i), rank); }
  static std::optional<size_t> wrapped(std::optional<int64_t> dim, size_t rank) {
    if (!dim) return std::nullopt;
    const auto size = static_cast<int64_t>(std::max<size_t>(rank, 1));
    const int64_t at = *dim < 0 ? *dim + size : *dim;
    if (at < 0 || at >= size) return std::nullopt;
    return static_cast<size_t>(at);
  }
  /// Whether two arguments are the same value.
  bool isSame(size_t i, size_t j) const {
    return std::max(i, j) < call_.arguments.size() && call_.arguments[i] == call_.arguments[j];
  }
  std::vector<const pte::Tensor*> outputs() const {
    return call_.arguments.empty() ? std::vector<const pte::Tensor*>{} : tensors(call_.arguments.size() - 1);
  }

 private:
  const pte::Value* valueAt(int64_t index) const {
    if (index < 0 || static_cast<size_t>(index) >= method_.values.size()) return nullptr;
    return &method_.values[static_cast<size_t>(index)];
  }
  template <typename T>
  const T* as(size_t i) const {
    if (i >= call_.arguments.size()) return nullptr;
    const pte::Value* value = valueAt(call_.arguments[i]);
    return value == nullptr ? nullptr : std::get_if<T>(value);
  }

  const pte::Method& method_;
  const pte::KernelCall& call_;
};

}  // namespace carina::cpu
