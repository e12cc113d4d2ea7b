// SPDX-License-Identifier: Apache-2.0
#include "tflite/model_entries.hpp"

#include <algorithm>

namespace carina::tflite {

using flatbuffers::Offset;

ModelEntries::ModelEntries() {
  buffers_.push_back(fb::CreateBufferEntry(builder_));  // buffer 0 means no data
}

uint32_t ModelEntries::buffer(ByteSpan bytes) {
  bufferBytes_ += bytes.size();
  // Data that does not fit is not added: finish() and npuOperator() report it.
  if (bufferBytes_ > static_cast<uint64_t>(kMaxFileBytes)) return 0;
  builder_.ForceVectorAlignment(bytes.size(), 1, 16);
  const auto data = builder_.CreateVector(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  buffers_.push_back(fb::CreateBufferEntry(builder_, data));
  return static_cast<uint32_t>(buffers_.size() - 1);
}

int32_t ModelEntries::tensor(Offset<fb::TensorEntry> entry, int64_t offset) {
  tensors_.push_back(entry);
  offsets_.push_back(static_cast<int32_t>(offset));
  return static_cast<int32_t>(tensors_.size()) - 1;
}

int32_t ModelEntries::tensor(TensorType type, const std::vector<int32_t>& shape, const std::string& name,
                             uint32_t data, Offset<fb::Quantization> quantization, int64_t offset) {
  const auto shapeVector = builder_.CreateVector(shape);
  return tensor(fb::CreateTensorEntry(builder_, shapeVector, static_cast<int8_t>(type), data,
                                      builder_.CreateString(name), quantization),
                offset);
}

int32_t ModelEntries::constant(const std::string& name, ByteSpan bytes) {
  const uint32_t data = buffer(bytes);
  return tensor(TensorType::UInt8, {static_cast<int32_t>(bytes.size())}, name, data, 0, kNotPlanned);
}

int32_t ModelEntries::memory(const std::string& name, int64_t bytes, int64_t offset) {
  return tensor(TensorType::UInt8, {static_cast<int32_t>(bytes)}, name, 0, 0, offset);
}

Result<Offset<fb::OperatorEntry>> ModelEntries::npuOperator(uint32_t code, const NpuMemory& from,
                                                            const std::vector<int32_t>& inputs,
                                                            const std::vector<int32_t>& outputs,
                                                            const std::string& suffix) {
  if (from.scratchBytes > kMaxFileBytes - std::max<int64_t>(from.scratchOffset, 0) ||
      from.fastScratchBytes > kMaxFileBytes ||
      from.constants.size() + from.payload.size() > static_cast<size_t>(kMaxFileBytes))
    return fail(Code::NotRepresentable, "arena or constants take more than 2 GiB");
  const std::vector<std::byte> none(16);
  std::vector<int32_t> operands = {
      constant("command_stream" + suffix, from.payload),
      constant("constants" + suffix, from.constants.empty() ? ByteSpan(none) : from.constants),
      memory("scratch" + suffix, from.scratchBytes, from.scratchOffset),
      from.fastScratchBytes > 0 ? memory("fast_scratch" + suffix, from.fastScratchBytes, kNotPlanned)
                                : memory("fast_scratch" + suffix, from.scratchBytes, from.scratchOffset)};
  operands.insert(operands.end(), inputs.begin(), inputs.end());
  // A FlexBuffer that holds the number 1: "this operator is for an Ethos-U".
  const std::vector<uint8_t> options = {1, 4, 1};
  const auto optionVector = builder_.CreateVector(options);
  const auto operandVector = builder_.CreateVector(operands), outputVector = builder_.CreateVector(outputs);
  return fb::CreateOperatorEntry(builder_, code, operandVector, outputVector, fb::OperatorOptions::NONE, 0,
                                 optionVector);
}

Offset<fb::OperatorCode> ModelEntries::npuCode() {
  return fb::CreateOperatorCode(builder_, kCustomCode, builder_.CreateString(std::string(kEthosU)), 1,
                                kCustomCode);
}

Offset<fb::SubgraphEntry> ModelEntries::subgraph(const std::vector<int32_t>& inputs,
                                                 const std::vector<int32_t>& outputs,
                                                 const std::vector<Offset<fb::OperatorEntry>>& operators,
                                                 const std::string& name) {
  const auto tensorVector = builder_.CreateVector(tensors_);
  tensors_.clear();
  const auto inputVector = builder_.CreateVector(inputs), outputVector = builder_.CreateVector(outputs);
  const auto operatorVector = builder_.CreateVector(operators);
  return fb::CreateSubgraphEntry(builder_, tensorVector, inputVector, outputVector, operatorVector,
                                 builder_.CreateString(name));
}

Offset<fb::MetadataEntry> ModelEntries::plan() {
  // Version, the subgraph, the number of tensors, then an offset for each tensor, subgraph by subgraph.
  std::vector<int32_t> words = {1, 0, static_cast<int32_t>(offsets_.size())};
  words.insert(words.end(), offsets_.begin(), offsets_.end());
  const uint32_t data = buffer(std::as_bytes(std::span(words)));
  return fb::CreateMetadataEntry(builder_, builder_.CreateString(std::string(kArenaPlan)), data);
}

Result<std::string> ModelEntries::finish(const std::vector<Offset<fb::OperatorCode>>& codes,
                                         const std::vector<Offset<fb::SubgraphEntry>>& subgraphs,
                                         const std::string& description,
                                         const std::vector<Offset<fb::MetadataEntry>>& metadata,
                                         Offset<flatbuffers::Vector<Offset<fb::Signature>>> signatures) {
  if (bufferBytes_ > static_cast<uint64_t>(kMaxFileBytes))
    return fail(Code::NotRepresentable, "the constants of the model take more than 2 GiB");
  const auto codeVector = builder_.CreateVector(codes);
  const auto subgraphVector = builder_.CreateVector(subgraphs);
  const auto descriptionText = builder_.CreateString(description);
  const auto bufferVector = builder_.CreateVector(buffers_);
  const auto metadataVector = builder_.CreateVector(metadata);
  builder_.Finish(fb::CreateRoot(builder_, 3, codeVector, subgraphVector, descriptionText, bufferVector, 0,
                                 metadataVector, signatures),
                  "TFL3");
  return std::string{reinterpret_cast<const char*>(builder_.GetBufferPointer()), builder_.GetSize()};
}

}  // namespace carina::tflite
