// SPDX-License-Identifier: Apache-2.0
#include "device/recording_backend.hpp"

#include <cstring>

#include "pte/program.hpp"

namespace carina::device {
namespace {

/// Calls `visit(memoryIndex)` for each element in logical (row-major) order.
template <typename Visit>
void inLogicalOrder(const rt::Tensor& tensor, Visit&& visit) {
  std::vector<int64_t> stride(tensor.rank), index(tensor.rank, 0);
  int64_t step = 1;
  for (size_t k = tensor.rank; k-- > 0;) {
    stride[tensor.dimOrder[k]] = step;
    step *= tensor.sizes[tensor.dimOrder[k]];
  }
  int64_t at = 0;
  for (int64_t n = step; n > 0; --n) {
    visit(at);
    for (size_t d = tensor.rank; d-- > 0;) {
      at += stride[d];
      if (++index[d] < tensor.sizes[d]) break;
      at -= stride[d] * tensor.sizes[d];
      index[d] = 0;
    }
  }
}

bool isRowMajor(const rt::Tensor& tensor) {
  for (size_t d = 0; d < tensor.rank; ++d) {
    if (tensor.dimOrder[d] != d) return false;
  }
  return true;
}

}  // namespace

std::vector<npu::InitializedRange> inputRanges(const pte::DelegateBlob& blob) {
  std::vector<npu::InitializedRange> ranges;
  for (const pte::BlobIo& io : blob.inputs) {
    if (io.region < 0 || io.region > 7 || io.offset < 0) continue;
    ranges.push_back({static_cast<uint8_t>(io.region), static_cast<uint64_t>(io.offset),
                      static_cast<uint64_t>(io.bytes())});
  }
  return ranges;
}

Result<Runner::Io> describe(const rt::Tensor& tensor) {
  const auto dtype = pte::toDType(tensor.type);
  if (!dtype)
    return fail(Code::UnsupportedProgram, "tensors of type {} cannot cross the program boundary",
                rt::scalarTypeText(tensor.type));
  return Runner::Io{*dtype, Shape(tensor.sizes, tensor.sizes + tensor.rank)};
}

Result<Tensor> copyOut(const rt::Tensor& tensor) {
  CARINA_TRY(const Runner::Io io, describe(tensor));
  Tensor out = Tensor::uninitialized(io.dtype, io.shape);
  if (tensor.bytes == 0) return out;
  if (tensor.data == nullptr) return fail(Code::UnsupportedProgram, "a tensor has no memory");
  auto* target = reinterpret_cast<uint8_t*>(out.mutableBytes().data());
  const auto* source = static_cast<const uint8_t*>(tensor.data);
  if (isRowMajor(tensor)) {
    std::memcpy(target, source, tensor.bytes);
    return out;
  }
  const size_t size = rt::elementSize(tensor.type);
  inLogicalOrder(tensor, [&](int64_t at) {
    std::memcpy(target, source + static_cast<size_t>(at) * size, size);
    target += size;
  });
  return out;
}

void copyIn(const Tensor& tensor, const rt::Tensor& into) {
  CARINA_CHECK(tensor.bytes().size() == into.bytes, "the tensors have as many bytes");
  if (into.bytes == 0) return;
  const auto* source = reinterpret_cast<const uint8_t*>(tensor.bytes().data());
  auto* target = static_cast<uint8_t*>(into.data);
  if (isRowMajor(into)) {
    std::memcpy(target, source, into.bytes);
    return;
  }
  const size_t size = rt::elementSize(into.type);
  inLogicalOrder(into, [&](int64_t at) {
    std::memcpy(target + static_cast<size_t>(at) * size, source, size);
    source += size;
  });
}

rt::Status RecordingBackend::prepare(rt::Bytes blob, const rt::NamedData& named, void* state,
                                     size_t* temporaryBytes) {
  const rt::Status status = delegate_.prepare(blob, named, state, temporaryBytes);
  if (!status.ok()) return status;
  const auto parsed = pte::parseDelegateBlob({reinterpret_cast<const std::byte*>(blob.data), blob.size});
  if (parsed) inputs_[state] = inputRanges(*parsed);
  return status;
}

rt::Status RecordingBackend::execute(void* state, rt::Span<rt::Value> values,
                                     rt::Span<const int32_t> arguments, rt::Arena& temporary) {
  // Copied before the call: the planner may assign an input's memory to an output.
  std::vector<Tensor> before;
  for (int32_t argument : arguments) {
    const rt::Value& value = values[static_cast<size_t>(argument)];
    if (!keepIo_ || value.kind != rt::ValueKind::Tensor || value.tensor.data == nullptr) continue;
    if (auto copy = copyOut(value.tensor)) before.push_back(std::move(*copy));
  }
  device_.npu().setInitialized(inputs_[state]);
  const rt::Status status = delegate_.execute(state, values, arguments, temporary);
  if (!status.ok()) return status;
  DelegateRun run;
  run.instruction = instruction_;
  run.stats = device_.stats();
  run.findings = device_.findings();
  run.pmuCycles = driver_.pmu().cycles;
  if (keepIo_ && before.size() == arguments.size) {
    const uint32_t inputs = delegate_.inputCount(state);
    for (uint32_t i = 0; i < arguments.size; ++i) {
      if (i < inputs) {
        run.inputs.push_back(std::move(before[i]));
      } else if (auto copy = copyOut(values[static_cast<size_t>(arguments[i])].tensor)) {
        run.outputs.push_back(std::move(*copy));
      }
    }
  }
  runs_.push_back(std::move(run));
  return status;
}

}  // namespace carina::device
