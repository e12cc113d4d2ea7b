// SPDX-License-Identifier: Apache-2.0
#include "pte/method_builder.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace carina::pte {

Result<Tensor> StatePool::variable(const std::string& name, ScalarType type, std::vector<int32_t> sizes,
                                   ByteSpan initial) {
  Tensor tensor;
  tensor.type = type;
  tensor.dimOrder.resize(sizes.size());
  std::iota(tensor.dimOrder.begin(), tensor.dimOrder.end(), uint8_t{0});
  tensor.sizes = std::move(sizes);
  CARINA_CHECK(tensorBytes(tensor) == static_cast<int64_t>(initial.size()),
               "initial contents differ from the tensor's size");
  if (program_.mutableData.empty()) program_.mutableData.emplace_back();
  const auto equal = std::find_if(
      program_.mutableData.begin() + 1, program_.mutableData.end(), [&](const ByteVector& stored) {
        return std::equal(stored.begin(), stored.end(), initial.begin(), initial.end());
      });
  tensor.dataIndex = static_cast<uint32_t>(equal - program_.mutableData.begin());
  if (equal == program_.mutableData.end()) program_.mutableData.emplace_back(initial.begin(), initial.end());
  tensor.extra = ExtraTensorInfo{};
  tensor.extra->name = name;
  if (const auto known = variables_.find(name); known != variables_.end()) {
    tensor.allocation = known->second.allocation;
    if (tensor == known->second) return tensor;
    return fail(Code::InvalidProgram,
                "the state '{}' is {} in one method and {} in another, or has different initial contents",
                name, known->second.str(), tensor.str())
        .withRemedy("give the buffers of this name the same shape and type in the modules of all methods");
  }
  tensor.allocation = Allocation{kMemoryId, static_cast<uint64_t>(bytes_)};
  constexpr int64_t kAlignment = 16;
  bytes_ = roundUp(bytes_ + static_cast<int64_t>(initial.size()), kAlignment);
  variables_.emplace(name, tensor);
  return tensor;
}

void StatePool::finish() {
  if (bytes_ == 0) return;
  for (Method& method : program_.methods) {
    method.pools.resize(std::max<size_t>(method.pools.size(), kMemoryId + 1), 0);
    method.pools[kMemoryId] = bytes_;
  }
}

ValueId MethodBuilder::add(Value value) {
  method_.values.push_back(std::move(value));
  creationIndices_.push_back(position());
  return static_cast<ValueId>(method_.values.size() - 1);
}

ValueId MethodBuilder::activation(ScalarType type, std::vector<int32_t> sizes,
                                  std::vector<uint8_t> dimOrder) {
  Tensor tensor;
  tensor.type = type;
  tensor.dimOrder = std::move(dimOrder);
  if (tensor.dimOrder.empty()) {
    tensor.dimOrder.resize(sizes.size());
    std::iota(tensor.dimOrder.begin(), tensor.dimOrder.end(), uint8_t{0});
  }
  tensor.sizes = std::move(sizes);
  return add(std::move(tensor));
}

ValueId MethodBuilder::input(ScalarType type, std::vector<int32_t> sizes, std::vector<uint8_t> dimOrder) {
  method_.inputs.push_back(activation(type, std::move(sizes), std::move(dimOrder)));
  return method_.inputs.back();
}

ValueId MethodBuilder::constant(ScalarType type, std::vector<int32_t> sizes, ByteSpan bytes) {
  const ValueId id = activation(type, std::move(sizes));
  Tensor& tensor = std::get<Tensor>(method_.values.back());
  CARINA_CHECK(tensorBytes(tensor) == static_cast<int64_t>(bytes.size()),
               "constant bytes differ from the tensor's size");
  const auto equal =
      std::find_if(program_.constants.begin() + 1, program_.constants.end(), [&](const ByteVector& stored) {
        return std::equal(stored.begin(), stored.end(), bytes.begin(), bytes.end());
      });
  tensor.dataIndex = static_cast<uint32_t>(equal - program_.constants.begin());
  if (equal == program_.constants.end()) program_.constants.emplace_back(bytes.begin(), bytes.end());
  return id;
}

ValueId MethodBuilder::view(ValueId of, std::vector<int32_t> sizes) {
  const Tensor& base = tensor(of);
  const auto bytes = tensorBytes(base);
  const uint32_t stored = base.dataIndex;
  const bool stateful = base.allocation.has_value();
  const ValueId id = activation(base.type, std::move(sizes));
  Tensor& view = std::get<Tensor>(method_.values.back());
  CARINA_CHECK(tensorBytes(view) == bytes, "a view has as many bytes as what it shows");
  view.dataIndex = stateful ? 0 : stored;
  aliases_[id] = of;
  return id;
}

ValueId MethodBuilder::integer(int64_t value) {
  return add(value);
}
ValueId MethodBuilder::real(double value) {
  return add(value);
}
ValueId MethodBuilder::boolean(bool value) {
  return add(value);
}
ValueId MethodBuilder::null() {
  return add(Null{});
}

ValueId MethodBuilder::text(std::string value) {
  return add(std::move(value));
}

ValueId MethodBuilder::integers(std::span<const int64_t> values) {
  IntList list;
  for (int64_t value : values) list.items.push_back(integer(value));
  return add(std::move(list));
}

ValueId MethodBuilder::tensors(std::span<const ValueId> values) {
  return add(TensorList{{values.begin(), values.end()}});
}

ValueId MethodBuilder::reals(std::span<const double> values) {
  return add(DoubleList{{values.begin(), values.end()}});
}

ValueId MethodBuilder::optionalTensors(std::span<const ValueId> values) {
  return add(OptionalTensorList{{values.begin(), values.end()}});
}

void MethodBuilder::kernel(std::string_view op, std::vector<ValueId> arguments) {
  const ValueId out = arguments.back();
  arguments.pop_back();
  kernel(op, std::move(arguments), std::span(&out, 1));
}

void MethodBuilder::kernel(std::string_view op, std::vector<ValueId> arguments,
                           std::span<const ValueId> outputs) {
  // The overload follows the first dot after the namespace.
  const size_t colons = op.rfind("::");
  const size_t dot = op.find('.', colons == std::string_view::npos ? 0 : colons);
  Operator entry{std::string(op.substr(0, dot)),
                 dot == std::string_view::npos ? "" : std::string(op.substr(dot + 1))};
  const auto known = std::find(method_.operators.begin(), method_.operators.end(), entry);
  const auto index = static_cast<int32_t>(known - method_.operators.begin());
  if (known == method_.operators.end()) method_.operators.push_back(std::move(entry));
  arguments.insert(arguments.end(), outputs.begin(), outputs.end());
  arguments.push_back(outputs.size() == 1 ? outputs.front() : tensors(outputs));
  if (method_.chains.empty()) method_.chains.emplace_back();
  method_.chains.back().instructions.emplace_back(KernelCall{index, std::move(arguments)});
}

void MethodBuilder::delegate(Delegate delegate, std::span<const ValueId> inputs,
                             std::span<const ValueId> outputs) {
  DelegateCall call{static_cast<int32_t>(method_.delegates.size()), {inputs.begin(), inputs.end()}};
  call.arguments.insert(call.arguments.end(), outputs.begin(), outputs.end());
  method_.delegates.push_back(std::move(delegate));
  if (method_.chains.empty()) method_.chains.emplace_back();
  method_.chains.back().instructions.emplace_back(std::move(call));
}

namespace {
constexpr std::string_view prefix(QuantKernels kernels) {
  return kernels == QuantKernels::CortexM ? "cortex_m::" : "quantized_decomposed::";
}

/// PyTorch multiplies by float(1 / scale), ExecuTorch's kernels by 1 / float(scale). If float32 cannot
/// represent the scale, these differ by a bit, as do the codes of values halfway between two codes. One of
/// its neighbours in float32 mostly gives PyTorch's factor both ways. (Reciprocals of the upper half of a
/// binade have neighbours to spare; of the lower half, every second number has none.)
double scaleForKernels(double scale) {
  const auto nearest = static_cast<float>(scale), wanted = static_cast<float>(1.0 / scale);
  if (1.0f / nearest == wanted) return scale;
  for (float towards : {0.0f, std::numeric_limits<float>::infinity()}) {
    const float neighbour = std::nextafter(nearest, towards);
    if (1.0f / neighbour == wanted) return static_cast<double>(neighbour);
  }
  return scale;
}
}  // namespace

ValueId MethodBuilder::quantize(ValueId from, const QuantParams& params, QuantKernels kernels) {
  const Tensor source = tensor(from);
  const ValueId out = activation(params.type, source.sizes, source.dimOrder);
  const ValueId scale = real(scaleForKernels(params.scale));
  std::vector<ValueId> arguments = {from, scale};
  for (int64_t value : {params.zeroPoint, params.min, params.max, static_cast<int64_t>(params.type)})
    arguments.push_back(integer(value));
  arguments.push_back(out);
  kernel(std::string(prefix(kernels)) + "quantize_per_tensor.out", std::move(arguments));
  return out;
}

ValueId MethodBuilder::dequantize(ValueId from, const QuantParams& params, QuantKernels kernels) {
  const Tensor source = tensor(from);
  const ValueId out = activation(ScalarType::Float32, source.sizes, source.dimOrder);
  const ValueId scale = real(params.scale);
  std::vector<ValueId> arguments = {from, scale};
  for (int64_t value : {params.zeroPoint, params.min, params.max, static_cast<int64_t>(params.type)})
    arguments.push_back(integer(value));
  if (kernels == QuantKernels::QuantizedDecomposed) arguments.push_back(null());
  arguments.push_back(out);
  kernel(std::string(prefix(kernels)) + "dequantize_per_tensor.out", std::move(arguments));
  return out;
}

ValueId MethodBuilder::convert(ValueId from, ScalarType type) {
  const Tensor source = tensor(from);
  const ValueId out = activation(type, source.sizes, source.dimOrder);
  copyInto(out, from);
  return out;
}

void MethodBuilder::copyInto(ValueId to, ValueId from) {
  const std::vector<uint8_t> dimOrder = tensor(to).dimOrder;
  const std::vector<int64_t> order(dimOrder.begin(), dimOrder.end());
  const ValueId blocking = boolean(false);
  const ValueId dims = integers(order);
  kernel("dim_order_ops::_to_dim_order_copy.out", {from, blocking, dims, to});
}

int32_t MethodBuilder::position() const {
  return method_.chains.empty() ? 0 : static_cast<int32_t>(method_.chains.back().instructions.size());
}

int32_t MethodBuilder::jumpIfFalse(ValueId condition) {
  if (method_.chains.empty()) method_.chains.emplace_back();
  method_.chains.back().instructions.emplace_back(JumpFalseCall{condition, 0});
  return position() - 1;
}

void MethodBuilder::land(int32_t jump) {
  auto& instruction = method_.chains.back().instructions[static_cast<size_t>(jump)];
  std::get<JumpFalseCall>(instruction).destination = position();
}

void MethodBuilder::jumpBack(int32_t first) {
  jumpBack(first, boolean(false));
}

void MethodBuilder::jumpBack(int32_t first, ValueId done) {
  const int32_t jump = jumpIfFalse(done);
  auto& instruction = method_.chains.back().instructions[static_cast<size_t>(jump)];
  std::get<JumpFalseCall>(instruction).destination = first;
}

void MethodBuilder::placeAt(ValueId value, ValueId at) {
  CARINA_CHECK(ownsMemory(value) && tensorBytes(tensor(value)) == tensorBytes(tensor(at)),
               "only memory of one size can lie where another does");
  aliases_[value] = at;
}

bool MethodBuilder::ownsMemory(ValueId value) const {
  const auto& inputs = method_.inputs;
  return tensor(value).dataIndex == 0 && !tensor(value).allocation && aliases_.count(value) == 0 &&
         std::find(inputs.begin(), inputs.end(), value) == inputs.end();
}

const Tensor& MethodBuilder::tensor(ValueId id) const {
  CARINA_CHECK(id >= 0 && static_cast<size_t>(id) < method_.values.size(), "value index");
  return std::get<Tensor>(method_.values[static_cast<size_t>(id)]);
}

ValueId MethodBuilder::storage(ValueId id) const {
  for (auto view = aliases_.find(id); view != aliases_.end(); view = aliases_.find(id)) id = view->second;
  return id;
}

Status MethodBuilder::finish(const MemoryPlanOptions& options) {
  if (method_.chains.empty()) method_.chains.emplace_back();
  // The pytree of arguments and results as torch.export describes it: a tuple of tensors, and one tensor or a
  // tuple.
  std::string leaves;
  for (size_t i = 0; i < method_.inputs.size(); ++i) leaves += i == 0 ? "$" : ",$";
  std::string counts;
  for (size_t i = 0; i < method_.inputs.size(); ++i) counts += "#1";
  method_.inputStructure =
      fmt::format("T2#{}#0(T{}{}({}),D0())", method_.inputs.size(), method_.inputs.size(), counts, leaves);
  if (method_.outputs.size() == 1) {
    method_.outputStructure = "$";
  } else {
    std::string outputLeaves, outputCounts;
    for (size_t i = 0; i < method_.outputs.size(); ++i) {
      outputLeaves += i == 0 ? "$" : ",$";
      outputCounts += "#1";
    }
    method_.outputStructure = fmt::format("T{}{}({})", method_.outputs.size(), outputCounts, outputLeaves);
  }
  CARINA_RETURN_IF_ERROR(planMethodMemory(method_, aliases_, options, creationIndices_));
  program_.methods.push_back(std::move(method_));
  return {};
}

}  // namespace carina::pte
