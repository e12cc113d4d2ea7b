// SPDX-License-Identifier: Apache-2.0
// CPU kernels on arbitrary argument lists, as a program could contain them: values of any kind, small tensors
// (each with separate memory of exactly its size), any numbers.
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "carina/kernels.hpp"
#include "target.hpp"

namespace carina::rt::runtime_kernels_fuzz {

namespace {

/// Consecutive bytes; zeros after the end.
class Bits {
 public:
  Bits(const uint8_t* data, size_t size) : data_(data), left_(size) {}
  uint8_t byte() { return left_ == 0 ? uint8_t{0} : (--left_, *data_++); }
  int64_t number() {
    const uint8_t kind = byte();
    if (kind < 224) return static_cast<int64_t>(kind % 16) - 4;
    int64_t value = 0;
    for (int i = 0; i < 8; ++i) value = static_cast<int64_t>(static_cast<uint64_t>(value) << 8 | byte());
    return value;
  }
  bool empty() const { return left_ == 0; }

 private:
  const uint8_t* data_;
  size_t left_;
};

struct Store {
  std::vector<std::unique_ptr<uint64_t[]>> blocks;
  template <typename T>
  T* allocate(size_t count) {
    blocks.push_back(std::make_unique<uint64_t[]>((count * sizeof(T) + 7) / 8));
    return reinterpret_cast<T*>(blocks.back().get());
  }
};

constexpr ScalarType kTypes[] = {ScalarType::Float32, ScalarType::Int8,   ScalarType::UInt8,
                                 ScalarType::Int16,   ScalarType::Int32,  ScalarType::Int64,
                                 ScalarType::Bool,    ScalarType::UInt16, ScalarType::Float64};

/// A tensor, often with the type and sometimes with the shape of the preceding tensor.
Value tensorValue(Bits& bits, Store& store, const std::vector<Value>& values) {
  Value value{};
  value.kind = ValueKind::Tensor;
  Tensor& tensor = value.tensor;
  const Tensor* last = nullptr;
  for (const Value& before : values) {
    if (before.kind == ValueKind::Tensor) last = &before.tensor;
  }
  const uint8_t likeness = bits.byte() % 8;
  tensor.type = last != nullptr && likeness < 6 ? last->type : kTypes[bits.byte() % std::size(kTypes)];
  if (last != nullptr && likeness < 3) {
    const size_t element = elementSize(last->type);
    tensor = *last;
    tensor.bytes = last->bytes / element * elementSize(tensor.type);
    auto* copy = store.allocate<uint8_t>(tensor.bytes);
    for (size_t i = 0; i < tensor.bytes && !bits.empty(); ++i) copy[i] = bits.byte() % 8;
    tensor.data = copy;
    return value;
  }
  tensor.rank = bits.byte() % 6;
  auto* sizes = store.allocate<int32_t>(tensor.rank);
  auto* order = store.allocate<uint8_t>(tensor.rank);
  size_t count = 1;
  for (uint32_t d = 0; d < tensor.rank; ++d) {
    const uint8_t size = bits.byte();
    sizes[d] = size < 250 ? size % 7 : INT32_MAX;
    if (sizes[d] == INT32_MAX && count != 0) sizes[d] = 1;
    count *= static_cast<size_t>(sizes[d]);
    order[d] = static_cast<uint8_t>(d);
  }
  for (uint32_t d = tensor.rank; d > 1; --d) std::swap(order[d - 1], order[bits.byte() % d]);
  tensor.sizes = sizes;
  tensor.dimOrder = order;
  tensor.bytes = count * elementSize(tensor.type);
  auto* data = store.allocate<uint8_t>(tensor.bytes);
  for (size_t i = 0; i < tensor.bytes && !bits.empty(); ++i) data[i] = bits.byte() % 8;
  tensor.data = data;
  return value;
}

/// The kind (of addValue) for an argument of a schema, e.g. "Tensor? bias".
uint8_t kindOf(const char* argument) {
  const struct {
    const char* type;
    uint8_t kind;
  } kinds[] = {{"Tensor[]", 6},   {"Tensor?[]", 134}, {"Tensor(a!)[]", 6}, {"Tensor", 9}, {"int[]", 5},
               {"float[]", 8},    {"float", 4},       {"bool", 3},         {"str", 7},    {"Scalar?", 4},
               {"ScalarType", 1}, {"Scalar", 1},      {"int", 1}};
  for (const auto& entry : kinds) {
    if (std::strncmp(argument, entry.type, std::strlen(entry.type)) == 0) return entry.kind;
  }
  return 0;
}

void addValue(Bits& bits, Store& store, std::vector<Value>& values, uint8_t kind) {
  Value value{};
  switch (kind % 12) {
    case 0:
      break;
    case 1:
      value.kind = ValueKind::Int;
      value.integer = bits.number();
      break;
    case 3:
      value.kind = ValueKind::Bool;
      value.boolean = bits.byte() % 2 != 0;
      break;
    case 4:
      value.kind = ValueKind::Double;
      value.real = static_cast<double>(bits.number()) / 2;
      break;
    case 5: {
      const uint32_t count = bits.byte() % 7;
      auto* items = store.allocate<int64_t>(count);
      for (uint32_t i = 0; i < count; ++i) {
        Value item{};
        item.kind = ValueKind::Int;
        item.integer = bits.number();
        items[i] = static_cast<int64_t>(values.size());
        values.push_back(item);
      }
      value.kind = ValueKind::IntList;
      value.list = List{reinterpret_cast<const uint8_t*>(items), count};
      break;
    }
    case 6:
    case 2: {
      const uint32_t count = bits.byte() % 5;
      auto* items = store.allocate<int32_t>(count);
      for (uint32_t i = 0; i < count; ++i) {
        items[i] = -1;
        if (kind >= 128 && bits.byte() % 4 == 0) continue;
        items[i] = static_cast<int32_t>(values.size());
        values.push_back(tensorValue(bits, store, values));
      }
      value.kind = kind < 128 ? ValueKind::TensorList : ValueKind::OptionalTensorList;
      value.list = List{reinterpret_cast<const uint8_t*>(items), count};
      break;
    }
    case 7: {
      static const char* const words[] = {"none", "tanh", "floor", "trunc"};
      const char* word = words[bits.byte() % 4];
      value.kind = ValueKind::String;
      value.list = List{reinterpret_cast<const uint8_t*>(word), static_cast<uint32_t>(std::strlen(word))};
      break;
    }
    case 8: {
      const uint32_t count = bits.byte() % 4;
      auto* items = store.allocate<double>(count);
      for (uint32_t i = 0; i < count; ++i) items[i] = static_cast<double>(bits.number()) / 4;
      value.kind = ValueKind::DoubleList;
      value.list = List{reinterpret_cast<const uint8_t*>(items), count};
      break;
    }
    default:
      value = tensorValue(bits, store, values);
      break;
  }
  values.push_back(value);
}

}  // namespace

CARINA_FUZZ_TARGET(runtime_kernels) {
  Bits bits(data, size);
  const KernelTable table = allKernels();
  const Kernel& kernel = table[(bits.byte() | size_t{bits.byte()} << 8) % table.size];
  Store store;
  std::vector<Value> values;
  std::vector<int32_t> arguments;
  const char* schema = kernelInfos()[static_cast<size_t>(&kernel - table.data)].arguments;
  while (schema != nullptr && *schema != 0) {
    const uint8_t choice = bits.byte();
    if (choice == 1) break;
    const bool again = choice % 16 == 2 && !values.empty();
    if (std::strncmp(schema, "*, ", 3) == 0) schema += 3;
    if (!again) addValue(bits, store, values, choice % 16 == 3 ? bits.byte() : kindOf(schema));
    arguments.push_back(static_cast<int32_t>(again ? bits.byte() % values.size() : values.size() - 1));
    schema = std::strstr(schema, ", ");
    if (schema != nullptr) schema += 2;
  }
  if (!arguments.empty()) arguments.push_back(arguments.back());
  Arena temporary;
  KernelContext context(Span<Value>(values.data(), values.size()), arguments.data(),
                        static_cast<uint32_t>(arguments.size()), &temporary);
  char text[64];
  statusText(kernel.run(context), text, sizeof(text));
  return 0;
}

}  // namespace carina::rt::runtime_kernels_fuzz
