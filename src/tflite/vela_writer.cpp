// SPDX-License-Identifier: Apache-2.0
#include "tflite/vela_writer.hpp"

#include "tflite/model_entries.hpp"

namespace carina::tflite {
namespace {

Result<TensorType> typeOf(DType dtype) {
  switch (dtype) {
    case DType::Int8:
      return TensorType::Int8;
    case DType::UInt8:
      return TensorType::UInt8;
    case DType::Int16:
      return TensorType::Int16;
    case DType::Int32:
      return TensorType::Int32;
    case DType::Bool:
      return TensorType::Bool;
    default:
      return fail(Code::NotRepresentable, "a .tflite cannot hold tensors of type {} for an NPU",
                  dtypeName(dtype));
  }
}

Result<std::vector<int32_t>> placed(ModelEntries& entries, const std::vector<PlacedTensor>& tensors) {
  flatbuffers::FlatBufferBuilder& builder = entries.builder();
  std::vector<int32_t> indices;
  for (const PlacedTensor& tensor : tensors) {
    auto type = typeOf(tensor.type.dtype);
    if (!type) return std::move(type).error().at(tensor.name);
    flatbuffers::Offset<fb::Quantization> quantization;
    if (tensor.quantization) {
      const auto scale =
          builder.CreateVector(std::vector<float>{static_cast<float>(tensor.quantization->scales[0])});
      const auto zero = builder.CreateVector(std::vector<int64_t>{tensor.quantization->zeroPoints[0]});
      quantization = fb::CreateQuantization(builder, 0, 0, scale, zero);
    }
    const std::vector<int32_t> shape(tensor.type.shape.begin(), tensor.type.shape.end());
    indices.push_back(entries.tensor(*type, shape, tensor.name, 0, quantization, tensor.offset));
  }
  return indices;
}

}  // namespace

Result<std::string> writeNpuModel(const NpuModel& model) {
  ModelEntries entries;
  CARINA_TRY(const std::vector<int32_t> inputs, placed(entries, model.inputs));
  CARINA_TRY(const std::vector<int32_t> outputs, placed(entries, model.outputs));
  const NpuMemory memory{model.payload, model.constants, 0, model.arenaBytes, model.fastScratchBytes};
  CARINA_TRY(const auto call, entries.npuOperator(0, memory, inputs, outputs));
  const auto subgraph = entries.subgraph(inputs, outputs, {call}, model.name);
  const auto plan = entries.plan();
  return entries.finish({entries.npuCode()}, {subgraph}, "compiled by Carina", {plan});
}

}  // namespace carina::tflite
