// SPDX-License-Identifier: Apache-2.0
#include "stream.hpp"

namespace carina::rt::kernels {
namespace {

template <typename T, typename To>
void load(const Tensor& tensor, size_t at, ptrdiff_t step, size_t count, To* into) {
  const T* from = tensor.as<const T>() + at;
  for (size_t i = 0; i < count; ++i) into[i] = static_cast<To>(from[static_cast<ptrdiff_t>(i) * step]);
}

template <typename To>
void loadAs(const Tensor& tensor, size_t at, ptrdiff_t step, size_t count, To* into) {
  switch (tensor.type) {
    case ScalarType::UInt8:
    case ScalarType::Bool:
      return load<uint8_t>(tensor, at, step, count, into);
    case ScalarType::Int8:
      return load<int8_t>(tensor, at, step, count, into);
    case ScalarType::Int16:
      return load<int16_t>(tensor, at, step, count, into);
    case ScalarType::UInt16:
      return load<uint16_t>(tensor, at, step, count, into);
    case ScalarType::Int32:
      return load<int32_t>(tensor, at, step, count, into);
    case ScalarType::Int64:
      return load<int64_t>(tensor, at, step, count, into);
    default:
      break;
  }
}

template <typename T, typename From>
void store(const Tensor& tensor, size_t at, ptrdiff_t step, size_t count, const From* from) {
  T* into = tensor.as<T>() + at;
  for (size_t i = 0; i < count; ++i) into[static_cast<ptrdiff_t>(i) * step] = static_cast<T>(from[i]);
}

}  // namespace

void loadReals(const Tensor& tensor, size_t at, ptrdiff_t step, size_t count, float* into) {
  if (isReal(tensor.type)) return load<float>(tensor, at, step, count, into);
  loadAs(tensor, at, step, count, into);
}

void loadIntegers(const Tensor& tensor, size_t at, ptrdiff_t step, size_t count, int64_t* into) {
  loadAs(tensor, at, step, count, into);
}

void storeIntegers(const Tensor& tensor, size_t at, ptrdiff_t step, size_t count, const int64_t* from) {
  switch (tensor.type) {
    case ScalarType::Float32:
      return store<float>(tensor, at, step, count, from);
    case ScalarType::Bool: {
      uint8_t* into = tensor.as<uint8_t>() + at;
      for (size_t i = 0; i < count; ++i) into[static_cast<ptrdiff_t>(i) * step] = from[i] != 0;
      return;
    }
    case ScalarType::UInt8:
    case ScalarType::Int8:
      return store<uint8_t>(tensor, at, step, count, from);
    case ScalarType::Int16:
    case ScalarType::UInt16:
      return store<uint16_t>(tensor, at, step, count, from);
    case ScalarType::Int32:
      return store<uint32_t>(tensor, at, step, count, from);
    default:
      return store<int64_t>(tensor, at, step, count, from);
  }
}

void storeReals(const Tensor& tensor, size_t at, ptrdiff_t step, size_t count, const float* from) {
  if (isReal(tensor.type)) return store<float>(tensor, at, step, count, from);
  for (size_t done = 0; done < count;) {
    int64_t integers[kChunk];
    const size_t n = count - done < kChunk ? count - done : kChunk;
    for (size_t i = 0; i < n; ++i) {
      const float value = from[done + i];
      integers[i] = tensor.type == ScalarType::Bool ? (value != 0.0f ? 1 : 0) : truncated(value);
    }
    storeIntegers(tensor, at + static_cast<size_t>(static_cast<ptrdiff_t>(done) * step), step, n, integers);
    done += n;
  }
}

int64_t wrapTo(ScalarType type, int64_t value) {
  switch (type) {
    case ScalarType::UInt8:
      return static_cast<uint8_t>(value);
    case ScalarType::Int8:
      return static_cast<int8_t>(value);
    case ScalarType::Int16:
      return static_cast<int16_t>(value);
    case ScalarType::UInt16:
      return static_cast<uint16_t>(value);
    case ScalarType::Int32:
      return static_cast<int32_t>(value);
    default:
      return value;
  }
}

Status Runs::open(const Tensor& shape, const Tensor* const* operands, uint32_t count) {
  count_ = count;
  size_t own[kOperands][kMaxRank];
  for (uint32_t k = 0; k < count; ++k) {
    if (operands[k] == nullptr) continue;
    const Tensor& operand = *operands[k];
    if (operand.rank > shape.rank) return shapesDiffer();
    size_t theirs[kMaxRank];
    strides(operand, theirs);
    const uint32_t missing = static_cast<uint32_t>(shape.rank - operand.rank);
    for (uint32_t d = 0; d < shape.rank; ++d) {
      const bool repeats = d < missing || operand.sizes[d - missing] == 1;
      if (!repeats && operand.sizes[d - missing] != shape.sizes[d]) return shapesDiffer();
      own[k][d] = repeats ? 0 : theirs[d - missing];
    }
  }
  left_ = shape.elements();
  if (left_ == 0) return Status{};
  // Outermost first; a dimension is merged with the preceding one if all operands' steps continue evenly.
  for (uint32_t m = 0; m < shape.rank; ++m) {
    const uint32_t d = shape.dimOrder[m];
    const size_t size = static_cast<size_t>(shape.sizes[d]);
    if (size == 1) continue;
    bool joins = rank_ > 0;
    for (uint32_t k = 0; k < count && joins; ++k)
      joins = operands[k] == nullptr || strides_[k][rank_ - 1] == own[k][d] * size;
    if (!joins) {
      index_[rank_] = 0;
      sizes_[rank_++] = 1;
    }
    sizes_[rank_ - 1] *= size;
    for (uint32_t k = 0; k < count; ++k) strides_[k][rank_ - 1] = operands[k] == nullptr ? 0 : own[k][d];
  }
  length_ = rank_ == 0 ? 1 : sizes_[rank_ - 1];
  for (uint32_t k = 0; k < count; ++k) step_[k] = rank_ == 0 ? 0 : strides_[k][rank_ - 1];
  return Status{};
}

void Runs::next() {
  left_ -= length_;
  for (uint32_t d = rank_ < 2 ? 0 : rank_ - 1; d-- > 0;) {
    for (uint32_t k = 0; k < count_; ++k) at_[k] += strides_[k][d];
    if (++index_[d] < sizes_[d]) return;
    for (uint32_t k = 0; k < count_; ++k) at_[k] -= strides_[k][d] * sizes_[d];
    index_[d] = 0;
  }
}

namespace {

constexpr Status refusedOperand() {
  return failure(Code::InvalidArgument, "an integer is divided by zero");
}

/// One buffer of float or int64 per operand; numbers fill theirs once.
template <typename T>
struct Buffers {
  T values[Runs::kOperands][kChunk];
  T result[kChunk];
  const T* in[Runs::kOperands];

  void fill(uint32_t k, T value) {
    for (T& element : values[k]) element = value;
    in[k] = values[k];
  }
};

Status mapReals(const Operand* operands, uint32_t count, const Tensor& output, Runs& runs,
                RealFunction function, const Parameter* parameters) {
  Buffers<float> buffers;
  for (uint32_t k = 0; k < count; ++k) buffers.fill(k, operands[k].real);
  for (size_t out = 0; !runs.done(); runs.next()) {
    for (size_t i = 0; i < runs.length();) {
      const size_t n = runs.length() - i < kChunk ? runs.length() - i : kChunk;
      for (uint32_t k = 0; k < count; ++k) {
        if (operands[k].tensor == nullptr) continue;
        const size_t at = runs.at(k) + i * static_cast<size_t>(runs.step(k));
        buffers.in[k] = realChunk(*operands[k].tensor, at, runs.step(k), n, buffers.values[k]);
      }
      const bool direct = isReal(output.type);
      float* result = direct ? output.as<float>() + out : buffers.result;
      if (!function(buffers.in, result, n, parameters)) return refusedOperand();
      if (!direct) storeReals(output, out, 1, n, result);
      i += n;
      out += n;
    }
  }
  return Status{};
}

Status mapIntegers(const Operand* operands, uint32_t count, const Tensor& output, Runs& runs,
                   IntegerFunction function, const Parameter* parameters) {
  Buffers<int64_t> buffers;
  for (uint32_t k = 0; k < count; ++k) buffers.fill(k, operands[k].integer);
  for (size_t out = 0; !runs.done(); runs.next()) {
    for (size_t i = 0; i < runs.length();) {
      const size_t n = runs.length() - i < kChunk ? runs.length() - i : kChunk;
      for (uint32_t k = 0; k < count; ++k) {
        if (operands[k].tensor == nullptr) continue;
        const size_t at = runs.at(k) + i * static_cast<size_t>(runs.step(k));
        loadIntegers(*operands[k].tensor, at, runs.step(k), n, buffers.values[k]);
      }
      if (!function(buffers.in, buffers.result, n, parameters)) return refusedOperand();
      storeIntegers(output, out, 1, n, buffers.result);
      i += n;
      out += n;
    }
  }
  return Status{};
}

}  // namespace

Status map(const Operand* operands, uint32_t count, const Tensor& output, const Functions& functions,
           Result result, const Parameter* parameters) {
  bool real = result == Result::Real || (result == Result::Same && isReal(output.type));
  const Tensor* tensors[Runs::kOperands] = {};
  for (uint32_t k = 0; k < count; ++k) {
    tensors[k] = operands[k].tensor;
    real = real || operands[k].isReal;
  }
  if (real && result != Result::Test && !isReal(output.type)) return typesDiffer();
  if (real ? functions.real == nullptr : functions.integer == nullptr) return typesDiffer();
  Runs runs;
  CARINA_RT_TRY(runs.open(output, tensors, count));
  return real ? mapReals(operands, count, output, runs, functions.real, parameters)
              : mapIntegers(operands, count, output, runs, functions.integer, parameters);
}

}  // namespace carina::rt::kernels
