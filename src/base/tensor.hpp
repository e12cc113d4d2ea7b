// SPDX-License-Identifier: Apache-2.0
// Tensor: a dense row-major array on the host that owns its memory or borrows it from a mapped file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/dtype.hpp"
#include "base/shape.hpp"

namespace carina {

using ByteSpan = std::span<const std::byte>;

/// A value type: copies share the bytes, and mutable access makes the bytes unique first (copy on write).
/// Bytes are aligned to 64 when owned, to the element size when borrowed.
class Tensor {
 public:
  Tensor() = default;

  /// Owned, zero-filled.
  static Tensor zeros(DType dtype, Shape shape);
  /// Owned, uninitialised: the caller writes every element.
  static Tensor uninitialized(DType dtype, Shape shape);
  /// Borrows `bytes`, which `owner` keeps alive; copies when they are not aligned to the element size.
  /// bytes.size() must equal numElements(shape) * dtypeSize(dtype).
  static Tensor borrow(DType dtype, Shape shape, ByteSpan bytes, std::shared_ptr<const void> owner);
  template <typename T>
  static Tensor from(const Shape& shape, std::span<const T> values) {
    Tensor tensor = uninitialized(DTypeOf<T>::value, shape);
    CARINA_CHECK(static_cast<int64_t>(values.size()) == tensor.numElements(),
                 "value count differs from shape");
    std::copy(values.begin(), values.end(), tensor.mutableAs<T>().begin());
    return tensor;
  }
  template <typename T>
  static Tensor from(const Shape& shape, const std::vector<T>& values) {
    return from(shape, std::span<const T>(values));
  }
  template <typename T>
  static Tensor scalar(T value) {
    return from(Shape{}, std::span<const T>(&value, 1));
  }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t rank() const { return static_cast<int64_t>(shape_.size()); }
  int64_t dim(int64_t i) const { return shape_[static_cast<size_t>(i)]; }
  int64_t numElements() const { return count_; }
  int64_t numBytes() const { return count_ * dtypeSize(dtype_); }

  ByteSpan bytes() const { return {data_, static_cast<size_t>(numBytes())}; }
  std::span<std::byte> mutableBytes();
  /// Whether mutable access needs no copy: the bytes are owned and not shared.
  bool unique() const { return writable_ && owner_.use_count() == 1; }

  /// Elements as T, whose size must be the element size. Bool reads as uint8_t, Int4 as int8_t, Int48/Shape
  /// as int64_t, Float16/BFloat16 as uint16_t bit patterns.
  template <typename T>
  std::span<const T> as() const {
    CARINA_CHECK(sizeof(T) == static_cast<size_t>(dtypeSize(dtype_)), "element type does not fit the tensor");
    return {reinterpret_cast<const T*>(data_), static_cast<size_t>(count_)};
  }
  template <typename T>
  std::span<T> mutableAs() {
    CARINA_CHECK(sizeof(T) == static_cast<size_t>(dtypeSize(dtype_)), "element type does not fit the tensor");
    return {reinterpret_cast<T*>(mutableBytes().data()), static_cast<size_t>(count_)};
  }

  /// The same bytes with another shape of as many elements.
  Tensor reshaped(Shape shape) const;
  /// The same bytes as another type of the same element size (such as Int8 <-> UInt8).
  Tensor bitcast(DType dtype) const;

  /// Element i (flat, row-major) of any integer, Bool or Shape tensor.
  int64_t integerAt(int64_t i) const;
  /// The elements from `first` on, of the same types.
  std::vector<int64_t> integers(int64_t first, int64_t count) const;
  std::vector<int64_t> integers() const { return integers(0, count_); }
  /// Element i of any tensor as double.
  double realAt(int64_t i) const;
  void setIntegerAt(int64_t i, int64_t value);

  /// Same type, shape and bytes.
  friend bool operator==(const Tensor& a, const Tensor& b);

 private:
  Tensor(DType dtype, Shape shape, std::shared_ptr<const void> owner, const std::byte* data);

  DType dtype_ = DType::Float32;
  Shape shape_{0};
  int64_t count_ = 0;
  std::shared_ptr<const void> owner_;
  const std::byte* data_ = nullptr;
  bool writable_ = false;  // the bytes are this tensor's own allocation
};

/// Named arrays in order: the contents of .npz files, and inputs and outputs of programs.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
const Tensor* findTensor(const NamedTensors& tensors, std::string_view name);

/// Converts element by element: to an integer type with truncation toward zero and saturation, to Bool
/// as "not 0", to floats by rounding to nearest even.
Tensor convert(const Tensor& tensor, DType to);

}  // namespace carina
