// SPDX-License-Identifier: Apache-2.0
#include "base/tensor.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#include "base/float16.hpp"
#include "base/large_pages.hpp"

namespace carina {
namespace {

std::shared_ptr<std::byte> allocate(int64_t bytes) {
  const size_t rounded = static_cast<size_t>(roundUp(std::max<int64_t>(bytes, 1), 64));
  void* memory = std::aligned_alloc(64, rounded);
  if (!memory) throw std::bad_alloc();
  askForLargePages(memory, rounded);
  return {static_cast<std::byte*>(memory), [](std::byte* p) { std::free(p); }};
}

int64_t byteCount(DType dtype, const Shape& shape) {
  auto count = checkedNumElements(shape);
  auto bytes = count ? checkedMul(*count, dtypeSize(dtype)) : std::nullopt;
  CARINA_CHECK(bytes.has_value(), "tensor size overflows");
  return *bytes;
}

}  // namespace

Tensor::Tensor(DType dtype, Shape shape, std::shared_ptr<const void> owner, const std::byte* data)
    : dtype_(dtype),
      shape_(std::move(shape)),
      count_(carina::numElements(shape_)),
      owner_(std::move(owner)),
      data_(data) {}

Tensor Tensor::uninitialized(DType dtype, Shape shape) {
  auto memory = allocate(byteCount(dtype, shape));
  const std::byte* data = memory.get();
  Tensor tensor(dtype, std::move(shape), std::move(memory), data);
  tensor.writable_ = true;
  return tensor;
}

Tensor Tensor::zeros(DType dtype, Shape shape) {
  Tensor tensor = uninitialized(dtype, std::move(shape));
  std::memset(tensor.mutableBytes().data(), 0, static_cast<size_t>(tensor.numBytes()));
  return tensor;
}

Tensor Tensor::borrow(DType dtype, Shape shape, ByteSpan bytes, std::shared_ptr<const void> owner) {
  CARINA_CHECK(byteCount(dtype, shape) == static_cast<int64_t>(bytes.size()),
               "byte count differs from shape");
  if (reinterpret_cast<uintptr_t>(bytes.data()) % static_cast<uintptr_t>(dtypeSize(dtype)) != 0) {
    Tensor copy = uninitialized(dtype, std::move(shape));
    std::memcpy(copy.mutableBytes().data(), bytes.data(), bytes.size());
    return copy;
  }
  return Tensor(dtype, std::move(shape), std::move(owner), bytes.data());
}

std::span<std::byte> Tensor::mutableBytes() {
  if (!writable_ || owner_.use_count() > 1) {
    Tensor copy = uninitialized(dtype_, shape_);
    if (numBytes() > 0)
      std::memcpy(const_cast<std::byte*>(copy.data_), data_, static_cast<size_t>(numBytes()));
    *this = std::move(copy);
  }
  return {const_cast<std::byte*>(data_), static_cast<size_t>(numBytes())};
}

Tensor Tensor::reshaped(Shape shape) const {
  CARINA_CHECK(carina::numElements(shape) == count_, "reshape keeps the number of elements");
  Tensor result = *this;
  result.shape_ = std::move(shape);
  return result;
}

Tensor Tensor::bitcast(DType dtype) const {
  CARINA_CHECK(dtypeSize(dtype) == dtypeSize(dtype_), "bitcast keeps the element size");
  Tensor result = *this;
  result.dtype_ = dtype;
  return result;
}

namespace {

/// Calls `use` with the elements as what they are stored as.
template <typename F>
auto withIntegers(const Tensor& tensor, F use) {
  switch (tensor.dtype()) {
    case DType::Bool:
    case DType::UInt8:
      return use(tensor.as<uint8_t>());
    case DType::Int4:
    case DType::Int8:
      return use(tensor.as<int8_t>());
    case DType::Int16:
      return use(tensor.as<int16_t>());
    case DType::UInt16:
      return use(tensor.as<uint16_t>());
    case DType::Int32:
      return use(tensor.as<int32_t>());
    case DType::UInt32:
      return use(tensor.as<uint32_t>());
    case DType::Int48:
    case DType::Int64:
    case DType::Shape:
      return use(tensor.as<int64_t>());
    default:
      CARINA_UNREACHABLE("a floating-point tensor has no integers");
  }
}

}  // namespace

int64_t Tensor::integerAt(int64_t i) const {
  return withIntegers(*this, [i](auto elements) { return int64_t{elements[static_cast<size_t>(i)]}; });
}

std::vector<int64_t> Tensor::integers(int64_t first, int64_t count) const {
  return withIntegers(*this, [first, count](auto elements) {
    const auto some = elements.subspan(static_cast<size_t>(first), static_cast<size_t>(count));
    return std::vector<int64_t>(some.begin(), some.end());
  });
}

double Tensor::realAt(int64_t i) const {
  const auto at = static_cast<size_t>(i);
  switch (dtype_) {
    case DType::Float16:
      return static_cast<double>(halfToFloat(as<uint16_t>()[at]));
    case DType::BFloat16:
      return static_cast<double>(bfloat16ToFloat(as<uint16_t>()[at]));
    case DType::Float32:
      return static_cast<double>(as<float>()[at]);
    case DType::Float64:
      return as<double>()[at];
    default:
      return static_cast<double>(integerAt(i));
  }
}

void Tensor::setIntegerAt(int64_t i, int64_t value) {
  const auto at = static_cast<size_t>(i);
  switch (dtypeSize(dtype_)) {
    case 1:
      mutableAs<int8_t>()[at] = static_cast<int8_t>(value);
      break;
    case 2:
      mutableAs<int16_t>()[at] = static_cast<int16_t>(value);
      break;
    case 4:
      mutableAs<int32_t>()[at] = static_cast<int32_t>(value);
      break;
    default:
      mutableAs<int64_t>()[at] = value;
      break;
  }
}

bool operator==(const Tensor& a, const Tensor& b) {
  return a.dtype_ == b.dtype_ && a.shape_ == b.shape_ &&
         (a.numBytes() == 0 || std::memcmp(a.data_, b.data_, static_cast<size_t>(a.numBytes())) == 0);
}

const Tensor* findTensor(const NamedTensors& tensors, std::string_view name) {
  for (const auto& [key, tensor] : tensors) {
    if (key == name) return &tensor;
  }
  return nullptr;
}

namespace {

int64_t saturateToInteger(double value, DType to) {
  if (std::isnan(value)) return 0;
  const auto low = static_cast<double>(integerMin(to));
  const auto high = static_cast<double>(integerMax(to));
  if (value <= low) return integerMin(to);
  if (value >= high) return integerMax(to);
  return static_cast<int64_t>(value);
}

}  // namespace

namespace {

template <typename From, typename To, typename Value>
Tensor eachConverted(const Tensor& tensor, DType to, Value value) {
  Tensor result = Tensor::uninitialized(to, tensor.shape());
  const auto from = tensor.as<From>();
  std::transform(from.begin(), from.end(), result.mutableAs<To>().begin(), value);
  return result;
}

}  // namespace

Tensor convert(const Tensor& tensor, DType to) {
  const DType from = tensor.dtype();
  if (from == to) return tensor;
  // Conversions that the interpreters make for every operator, without a decision per element.
  if (from == DType::Float16 && to == DType::Float32)
    return eachConverted<uint16_t, float>(tensor, to, [](uint16_t x) { return halfToFloat(x); });
  if (from == DType::BFloat16 && to == DType::Float32)
    return eachConverted<uint16_t, float>(tensor, to, [](uint16_t x) { return bfloat16ToFloat(x); });
  if (from == DType::Float32 && to == DType::Float16)
    return eachConverted<float, uint16_t>(tensor, to, [](float x) { return floatToHalf(x); });
  if (from == DType::Float32 && to == DType::BFloat16)
    return eachConverted<float, uint16_t>(tensor, to, [](float x) { return floatToBfloat16(x); });
  Tensor result = Tensor::uninitialized(to, tensor.shape());
  const int64_t n = tensor.numElements();
  const auto fill = [&](auto span, auto value) {
    for (int64_t i = 0; i < n; ++i) span[static_cast<size_t>(i)] = value(i);
  };
  if (to == DType::Float32) {
    fill(result.mutableAs<float>(), [&](int64_t i) { return static_cast<float>(tensor.realAt(i)); });
  } else if (to == DType::Float64) {
    fill(result.mutableAs<double>(), [&](int64_t i) { return tensor.realAt(i); });
  } else if (to == DType::Float16) {
    fill(result.mutableAs<uint16_t>(),
         [&](int64_t i) { return floatToHalf(static_cast<float>(tensor.realAt(i))); });
  } else if (to == DType::BFloat16) {
    fill(result.mutableAs<uint16_t>(),
         [&](int64_t i) { return floatToBfloat16(static_cast<float>(tensor.realAt(i))); });
  } else {
    const bool fromFloat = isFloat(from);
    for (int64_t i = 0; i < n; ++i) {
      if (to == DType::Bool) {
        result.setIntegerAt(i, tensor.realAt(i) != 0.0);
      } else if (fromFloat) {
        result.setIntegerAt(i, saturateToInteger(tensor.realAt(i), to));
      } else {
        result.setIntegerAt(i, std::clamp(tensor.integerAt(i), integerMin(to), integerMax(to)));
      }
    }
  }
  return result;
}

}  // namespace carina
