// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/kernel_call.hpp"

#include <cstring>
#include <numeric>

namespace carina::rt::test {
namespace {

constexpr uint64_t kGuardWord = 0xa5c3a5c35a3c5a3cULL;

/// Offset in memory, in elements, of element i (row-major).
std::vector<size_t> offsets(const std::vector<int32_t>& sizes, const std::vector<uint8_t>& order,
                            size_t count) {
  std::vector<size_t> strides(sizes.size());
  size_t step = 1;
  for (size_t k = order.size(); k-- > 0; step *= static_cast<size_t>(std::max(sizes[order[k]], 1)))
    strides[order[k]] = step;
  std::vector<size_t> result(count);
  for (size_t i = 0; i < count; ++i) {
    size_t rest = i;
    for (size_t d = sizes.size(); d-- > 0;) {
      result[i] += rest % static_cast<size_t>(sizes[d]) * strides[d];
      rest /= static_cast<size_t>(sizes[d]);
    }
  }
  return result;
}

std::vector<uint8_t> rowMajor(size_t rank) {
  std::vector<uint8_t> order(rank);
  std::iota(order.begin(), order.end(), uint8_t{0});
  return order;
}

}  // namespace

ScalarType scalarType(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return ScalarType::Bool;
    case DType::Int8:
      return ScalarType::Int8;
    case DType::UInt8:
      return ScalarType::UInt8;
    case DType::Int16:
      return ScalarType::Int16;
    case DType::UInt16:
      return ScalarType::UInt16;
    case DType::Int32:
      return ScalarType::Int32;
    case DType::Int64:
      return ScalarType::Int64;
    case DType::Float64:
      return ScalarType::Float64;
    default:
      return ScalarType::Float32;
  }
}

KernelCall& KernelCall::add(const Value& value) {
  values_.push_back(value);
  arguments_.push_back(static_cast<int32_t>(values_.size() - 1));
  return *this;
}

Value KernelCall::store(const carina::Tensor& tensor, std::vector<uint8_t> order) {
  Storage& storage = fresh();
  storage.sizes.assign(tensor.shape().begin(), tensor.shape().end());
  storage.order = order.empty() ? rowMajor(storage.sizes.size()) : std::move(order);
  storage.dtype = tensor.dtype();
  storage.used = static_cast<size_t>(tensor.numBytes());
  storage.bytes.assign(2 * kGuard + (storage.used + 7) / 8, kGuardWord);
  const size_t element = static_cast<size_t>(dtypeSize(tensor.dtype())), count = storage.used / element;
  auto* data = reinterpret_cast<uint8_t*>(storage.bytes.data() + kGuard);
  const std::vector<size_t> at = offsets(storage.sizes, storage.order, count);
  for (size_t i = 0; i < count; ++i)
    std::memcpy(data + at[i] * element, tensor.bytes().data() + i * element, element);
  Value value{};
  value.kind = ValueKind::Tensor;
  value.tensor = rt::Tensor{data,
                            storage.sizes.data(),
                            storage.used,
                            storage.order.data(),
                            scalarType(tensor.dtype()),
                            static_cast<uint8_t>(storage.sizes.size()),
                            false,
                            false};
  return value;
}

KernelCall& KernelCall::tensor(const carina::Tensor& tensor, std::vector<uint8_t> order) {
  return add(store(tensor, std::move(order)));
}

KernelCall& KernelCall::tensors(const std::vector<std::optional<carina::Tensor>>& list, bool optional) {
  std::vector<int32_t> items;
  for (const auto& tensor : list) {
    if (tensor) values_.push_back(store(*tensor, {}));
    items.push_back(tensor ? static_cast<int32_t>(values_.size() - 1) : -1);
  }
  Storage& storage = fresh();
  storage.items.resize((items.size() + 1) / 2 + 1);
  if (!items.empty()) std::memcpy(storage.items.data(), items.data(), items.size() * 4);
  Value value{};
  value.kind = optional ? ValueKind::OptionalTensorList : ValueKind::TensorList;
  value.list =
      List{reinterpret_cast<const uint8_t*>(storage.items.data()), static_cast<uint32_t>(items.size())};
  return add(value);
}

KernelCall& KernelCall::integer(int64_t number) {
  Value value{};
  value.kind = ValueKind::Int;
  value.integer = number;
  return add(value);
}
KernelCall& KernelCall::real(double number) {
  Value value{};
  value.kind = ValueKind::Double;
  value.real = number;
  return add(value);
}
KernelCall& KernelCall::boolean(bool truth) {
  Value value{};
  value.kind = ValueKind::Bool;
  value.boolean = truth;
  return add(value);
}
KernelCall& KernelCall::null() {
  return add(Value{});
}
KernelCall& KernelCall::text(const std::string& words) {
  Storage& storage = fresh();
  storage.text = words;
  Value value{};
  value.kind = ValueKind::String;
  value.list =
      List{reinterpret_cast<const uint8_t*>(storage.text.data()), static_cast<uint32_t>(words.size())};
  return add(value);
}
KernelCall& KernelCall::integers(const std::vector<int64_t>& numbers) {
  Storage& storage = fresh();
  for (const int64_t number : numbers) {
    storage.items.push_back(values_.size());
    Value value{};
    value.kind = ValueKind::Int;
    value.integer = number;
    values_.push_back(value);
  }
  storage.items.push_back(0);
  Value value{};
  value.kind = ValueKind::IntList;
  value.list =
      List{reinterpret_cast<const uint8_t*>(storage.items.data()), static_cast<uint32_t>(numbers.size())};
  return add(value);
}
KernelCall& KernelCall::reals(const std::vector<double>& numbers) {
  Storage& storage = fresh();
  storage.items.resize(numbers.size() + 1);
  if (!numbers.empty()) std::memcpy(storage.items.data(), numbers.data(), numbers.size() * 8);
  Value value{};
  value.kind = ValueKind::DoubleList;
  value.list =
      List{reinterpret_cast<const uint8_t*>(storage.items.data()), static_cast<uint32_t>(numbers.size())};
  return add(value);
}

KernelCall& KernelCall::output(DType dtype, const Shape& shape, std::vector<uint8_t> order) {
  carina::Tensor garbage = carina::Tensor::zeros(dtype, shape);
  for (std::byte& byte : garbage.mutableBytes()) byte = std::byte{0x2b};
  tensor(garbage, std::move(order));
  outputs_.emplace_back(static_cast<int32_t>(values_.size() - 1), storage_.size() - 1);
  return *this;
}

KernelCall& KernelCall::outputs(const std::vector<ir::Type>& types) {
  std::vector<std::optional<carina::Tensor>> list;
  list.reserve(types.size());
  for (const ir::Type& type : types) list.emplace_back(carina::Tensor::zeros(type.dtype, type.shape));
  const size_t value = values_.size(), storage = storage_.size();
  tensors(list);
  for (size_t i = 0; i < types.size(); ++i)
    outputs_.emplace_back(static_cast<int32_t>(value + i), storage + i);
  return *this;
}

Status KernelCall::run(KernelFunction function) {
  std::vector<int32_t> arguments = arguments_;
  arguments.push_back(arguments.empty() ? 0 : arguments.back());
  Arena arena;
  KernelContext context(Span<Value>(values_.data(), values_.size()), arguments.data(),
                        static_cast<uint32_t>(arguments.size()), &arena);
  return function(context);
}

carina::Tensor KernelCall::result(size_t i) const {
  const Storage& storage = *storage_[outputs_.at(i).second];
  carina::Tensor tensor =
      carina::Tensor::zeros(storage.dtype, Shape(storage.sizes.begin(), storage.sizes.end()));
  const auto count = static_cast<size_t>(tensor.numElements());
  const size_t element = static_cast<size_t>(dtypeSize(storage.dtype));
  const auto* data = static_cast<const uint8_t*>(values_[static_cast<size_t>(outputs_[i].first)].tensor.data);
  const std::vector<size_t> at = offsets(storage.sizes, storage.order, count);
  const std::span<std::byte> bytes = tensor.mutableBytes();
  for (size_t k = 0; k < count; ++k) std::memcpy(bytes.data() + k * element, data + at[k] * element, element);
  return tensor;
}

bool KernelCall::guardsHold() const {
  for (const auto& storage : storage_) {
    if (storage->bytes.empty()) continue;
    const auto* bytes = reinterpret_cast<const uint8_t*>(storage->bytes.data());
    const auto* guard = reinterpret_cast<const uint8_t*>(&kGuardWord);
    const size_t size = storage->bytes.size() * 8;
    for (size_t i = 0; i < size; ++i) {
      if (i >= kGuard * 8 && i < kGuard * 8 + storage->used) continue;
      if (bytes[i] != guard[i % 8]) return false;
    }
  }
  return true;
}

namespace {

struct Argument {
  std::string type, name, otherwise;
};

std::vector<Argument> argumentsOf(const KernelInfo& info) {
  std::vector<Argument> result;
  std::string text = info.arguments;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find(", ", at);
    if (end == std::string::npos) end = text.size();
    const std::string part = text.substr(at, end - at);
    at = end + 2;
    const size_t space = part.find(' ');
    if (space == std::string::npos) continue;  // "*"
    Argument argument{part.substr(0, space), part.substr(space + 1), ""};
    const size_t equal = argument.name.find('=');
    if (equal != std::string::npos) {
      argument.otherwise = argument.name.substr(equal + 1);
      argument.name.resize(equal);
    }
    result.push_back(argument);
  }
  return result;
}

void addAttribute(KernelCall& call, const std::string& type, const ir::Attribute& value) {
  const bool isReal = type.starts_with("float") && !type.starts_with("float[]");
  if (std::holds_alternative<std::monostate>(value)) {
    call.null();
  } else if (const bool* truth = std::get_if<bool>(&value)) {
    call.boolean(*truth);
  } else if (const int64_t* number = std::get_if<int64_t>(&value)) {
    if (isReal) {
      call.real(static_cast<double>(*number));
    } else if (type.find("int[]") != std::string::npos) {
      call.integers({*number});
    } else {
      call.integer(*number);
    }
  } else if (const double* real = std::get_if<double>(&value)) {
    call.real(*real);
  } else if (const std::string* words = std::get_if<std::string>(&value)) {
    call.text(*words);
  } else if (const DType* dtype = std::get_if<DType>(&value)) {
    call.integer(static_cast<int64_t>(scalarType(*dtype)));
  } else if (const ir::Ints* ints = std::get_if<ir::Ints>(&value)) {
    call.integers(*ints);
  } else if (const ir::Reals* reals = std::get_if<ir::Reals>(&value)) {
    call.reals(*reals);
  } else {
    ADD_FAILURE() << "an attribute of another kind";
  }
}

void addDefault(KernelCall& call, const Argument& argument) {
  if (argument.otherwise == "True" || argument.otherwise == "False") {
    call.boolean(argument.otherwise == "True");
  } else if (argument.otherwise == "None") {
    call.null();
  } else {
    ADD_FAILURE() << "no value for argument " << argument.name;
  }
}

std::vector<uint8_t> anyOrder(size_t rank, std::mt19937* random) {
  std::vector<uint8_t> order = rowMajor(rank);
  if (random != nullptr && (*random)() % 2 == 0) std::shuffle(order.begin(), order.end(), *random);
  return order;
}

}  // namespace

KernelCase fromAten(const std::string& kernel, const aten::test::Groups& groups,
                    const aten::test::Attributes& attributes, std::mt19937* layouts, const char* aten) {
  KernelCase result;
  result.kernel = kernel;
  result.text = kernel;
  const KernelInfo* info = findKernelInfo(Text(kernel.data(), kernel.size()));
  EXPECT_NE(info, nullptr) << kernel;
  if (info == nullptr) return result;
  for (const auto& group : groups) {
    result.text += " [";
    for (const auto& tensor : group)
      result.text += tensor ? std::string(dtypeName(tensor->dtype())) + shapeText(tensor->shape()) : "none";
    result.text += "]";
  }
  for (const auto& [name, value] : attributes) result.text.append(" ").append(name).append("=").append(value);
  auto graph = aten::test::oneOp(aten != nullptr ? aten : info->aten, groups, attributes);
  EXPECT_TRUE(graph.ok()) << result.text << ": " << (graph.ok() ? "" : graph.error().str());
  if (!graph.ok()) return result;
  std::vector<carina::Tensor> inputs;
  for (const auto& group : groups) {
    for (const auto& tensor : group) {
      if (tensor) inputs.push_back(*tensor);
    }
  }
  auto outputs = aten::execute(*graph, inputs);
  result.refused = !outputs.ok();
  if (outputs.ok()) result.expected = *outputs;

  const ir::Node& node = *graph->outputs().front()->producer();
  std::vector<ir::Type> types;
  for (const ir::Value* value : node.results()) types.push_back(value->type);
  size_t out = 0;
  std::vector<uint8_t> outOrder;  // outputs of one rank have one memory order
  for (const Argument& argument : argumentsOf(*info)) {
    const int operand = node.def().operandIndex(argument.name);
    const int attribute = node.def().attributeIndex(argument.name);
    if (argument.type.find("!)[]") != std::string::npos) {
      result.call.outputs(types);
    } else if (argument.type.find("!)") != std::string::npos) {
      EXPECT_LT(out, types.size()) << result.text;
      if (out >= types.size()) break;
      if (out == 0 || outOrder.size() != types[out].shape.size())
        outOrder = anyOrder(types[out].shape.size(), layouts);
      result.call.output(types[out].dtype, types[out].shape, outOrder);
      ++out;
    } else if (argument.type.starts_with("Tensor")) {
      EXPECT_GE(operand, 0) << kernel << " " << argument.name;
      const auto index = static_cast<size_t>(operand);
      static const std::vector<std::optional<carina::Tensor>> none;
      const auto& group = index < groups.size() ? groups[index] : none;
      if (argument.type.find("[]") != std::string::npos) {
        result.call.tensors(group, argument.type.find('?') != std::string::npos);
      } else if (group.empty() || !group[0]) {
        result.call.null();
      } else {
        result.call.tensor(*group[0], anyOrder(group[0]->shape().size(), layouts));
      }
    } else if (attribute >= 0) {
      addAttribute(result.call, argument.type, node.attribute(static_cast<size_t>(attribute)));
    } else {
      addDefault(result.call, argument);
    }
  }
  return result;
}

}  // namespace carina::rt::test
