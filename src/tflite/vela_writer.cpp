// SPDX-License-Identifier: Apache-2.0
#include "tflite/vela_writer.hpp"

#include <cstring>
#include <limits>

#include "tflite/model.hpp"
#include "tflite/schema.hpp"

namespace carina::tflite {
namespace {

using flatbuffers::Offset;

constexpr int32_t kCustom = 32, kNotPlanned = -1;
constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

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
      return fail(Code::NotRepresentable, "a .tflite has no tensors of type {} for an NPU", dtypeName(dtype));
  }
}

class Writer {
 public:
  explicit Writer(const NpuModel& model) : model_(model) {}

  Result<std::string> write() {
    buffers_.push_back(fb::CreateBufferEntry(builder_));  // buffer 0 stands for no data
    if (model_.arenaBytes > kMost || model_.fastScratchBytes > kMost ||
        model_.constants.size() + model_.payload.size() > static_cast<size_t>(kMost))
      return fail(Code::NotRepresentable, "arena or constants take more than 2 GiB");
    const std::vector<std::byte> none(16);
    std::vector<int32_t> operands = {
        constant("command_stream", model_.payload),
        constant("constants", model_.constants.empty() ? ByteSpan(none) : model_.constants),
        memory("scratch", model_.arenaBytes, 0),
        model_.fastScratchBytes > 0 ? memory("fast_scratch", model_.fastScratchBytes, kNotPlanned)
                                    : memory("fast_scratch", model_.arenaBytes, 0)};
    CARINA_TRY(const std::vector<int32_t> inputs, placed(model_.inputs));
    CARINA_TRY(const std::vector<int32_t> outputs, placed(model_.outputs));
    operands.insert(operands.end(), inputs.begin(), inputs.end());
    return finished(operands, inputs, outputs);
  }

 private:
  int32_t buffer(ByteSpan bytes) {
    builder_.ForceVectorAlignment(bytes.size(), 1, 16);
    const auto data = builder_.CreateVector(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    buffers_.push_back(fb::CreateBufferEntry(builder_, data));
    return static_cast<int32_t>(buffers_.size()) - 1;
  }

  int32_t add(TensorType type, const std::vector<int32_t>& shape, const std::string& name, int32_t data,
              Offset<fb::Quantization> quantization, int64_t offset) {
    const auto shapeVector = builder_.CreateVector(shape);
    tensors_.push_back(fb::CreateTensorEntry(builder_, shapeVector, static_cast<int8_t>(type),
                                             static_cast<uint32_t>(data), builder_.CreateString(name),
                                             quantization));
    offsets_.push_back(static_cast<int32_t>(offset));
    return static_cast<int32_t>(tensors_.size()) - 1;
  }

  int32_t constant(const std::string& name, ByteSpan bytes) {
    const int32_t data = buffer(bytes);
    return add(TensorType::UInt8, {static_cast<int32_t>(bytes.size())}, name, data, 0, kNotPlanned);
  }
  int32_t memory(const std::string& name, int64_t bytes, int64_t offset) {
    return add(TensorType::UInt8, {static_cast<int32_t>(bytes)}, name, 0, 0, offset);
  }

  Result<std::vector<int32_t>> placed(const std::vector<PlacedTensor>& tensors) {
    std::vector<int32_t> indices;
    for (const PlacedTensor& tensor : tensors) {
      auto type = typeOf(tensor.type.dtype);
      if (!type) return std::move(type).error().at(tensor.name);
      Offset<fb::Quantization> quantization;
      if (tensor.quantization) {
        const auto scale =
            builder_.CreateVector(std::vector<float>{static_cast<float>(tensor.quantization->scales[0])});
        const auto zero = builder_.CreateVector(std::vector<int64_t>{tensor.quantization->zeroPoints[0]});
        quantization = fb::CreateQuantization(builder_, 0, 0, scale, zero);
      }
      const std::vector<int32_t> shape(tensor.type.shape.begin(), tensor.type.shape.end());
      indices.push_back(add(*type, shape, tensor.name, 0, quantization, tensor.offset));
    }
    return indices;
  }

  std::string finished(const std::vector<int32_t>& operands, const std::vector<int32_t>& inputs,
                       const std::vector<int32_t>& outputs) {
    // Version, the subgraph meant, and an offset for each of its tensors.
    std::vector<int32_t> plan = {1, 0, static_cast<int32_t>(offsets_.size())};
    plan.insert(plan.end(), offsets_.begin(), offsets_.end());
    const int32_t planBuffer = buffer(std::as_bytes(std::span(plan)));
    // A FlexBuffer that holds the number 1: "this operator is for an Ethos-U".
    const std::vector<uint8_t> options = {1, 4, 1};
    const auto optionVector = builder_.CreateVector(options);
    const auto operandVector = builder_.CreateVector(operands), outputVector = builder_.CreateVector(outputs);
    const std::vector<Offset<fb::OperatorEntry>> operators = {fb::CreateOperatorEntry(
        builder_, 0, operandVector, outputVector, fb::OperatorOptions::NONE, 0, optionVector)};
    const std::vector<Offset<fb::OperatorCode>> codes = {
        fb::CreateOperatorCode(builder_, kCustom, builder_.CreateString("ethos-u"), 1, kCustom)};
    const auto tensorVector = builder_.CreateVector(tensors_);
    const auto inputVector = builder_.CreateVector(inputs), resultVector = builder_.CreateVector(outputs);
    const auto operatorVector = builder_.CreateVector(operators);
    const std::vector<Offset<fb::SubgraphEntry>> subgraphs = {
        fb::CreateSubgraphEntry(builder_, tensorVector, inputVector, resultVector, operatorVector,
                                builder_.CreateString(model_.name))};
    const std::vector<Offset<fb::MetadataEntry>> metadata = {fb::CreateMetadataEntry(
        builder_, builder_.CreateString("OfflineMemoryAllocation"), static_cast<uint32_t>(planBuffer))};
    const auto codeVector = builder_.CreateVector(codes);
    const auto subgraphVector = builder_.CreateVector(subgraphs);
    const auto description = builder_.CreateString("compiled by Carina");
    const auto bufferVector = builder_.CreateVector(buffers_);
    const auto metadataVector = builder_.CreateVector(metadata);
    builder_.Finish(
        fb::CreateRoot(builder_, 3, codeVector, subgraphVector, description, bufferVector, 0, metadataVector),
        "TFL3");
    return {reinterpret_cast<const char*>(builder_.GetBufferPointer()), builder_.GetSize()};
  }

  const NpuModel& model_;
  flatbuffers::FlatBufferBuilder builder_;
  std::vector<Offset<fb::BufferEntry>> buffers_;
  std::vector<Offset<fb::TensorEntry>> tensors_;
  std::vector<int32_t> offsets_;
};

}  // namespace

Result<std::string> writeNpuModel(const NpuModel& model) {
  return Writer(model).write();
}

}  // namespace carina::tflite
