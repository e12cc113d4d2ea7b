// SPDX-License-Identifier: Apache-2.0
#include "tflite/file_builder.hpp"

#include <algorithm>

#include "tflite/schema.hpp"

namespace carina::test {

namespace fb = tflite::fb;
using flatbuffers::Offset;

std::string TfliteFile::bytes() const {
  flatbuffers::FlatBufferBuilder builder;
  const auto data = [&](const std::string& bytes) {
    builder.ForceVectorAlignment(bytes.size(), 1, 16);
    return fb::CreateBufferEntry(
        builder, builder.CreateVector(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
  };
  std::vector<Offset<fb::BufferEntry>> buffers = {fb::CreateBufferEntry(builder)};
  std::vector<Offset<fb::TensorEntry>> tensorTable;
  for (const Tensor& tensor : tensors) {
    uint32_t buffer = 0;
    if (!tensor.data.empty()) {
      buffer = static_cast<uint32_t>(buffers.size());
      buffers.push_back(data(tensor.data));
    }
    const auto name = builder.CreateString(tensor.name);
    const auto shape = builder.CreateVector(tensor.shape);
    const auto scale = builder.CreateVector(tensor.scales);
    const auto zero = builder.CreateVector(tensor.zeroPoints);
    const auto quantization =
        fb::CreateQuantization(builder, 0, 0, scale, zero, 0, 0, tensor.quantizedDimension);
    tensorTable.push_back(
        fb::CreateTensorEntry(builder, shape, static_cast<int8_t>(tensor.type), buffer, name, quantization));
  }
  std::vector<Offset<fb::OperatorCode>> codes;
  std::vector<Offset<fb::OperatorEntry>> operatorTable;
  for (const Operator& op : operators) {
    const auto custom = builder.CreateString(op.custom);
    const int32_t builtin = op.custom.empty() ? op.builtin : 32;
    const auto narrow = static_cast<int8_t>(std::min(builtin, 127));
    codes.push_back(fb::CreateOperatorCode(builder, narrow, custom, 1, builtin));
    const auto ins = builder.CreateVector(op.inputs), outs = builder.CreateVector(op.outputs);
    const Offset<void> options = op.options.make ? op.options.make(builder) : Offset<void>();
    operatorTable.push_back(fb::CreateOperatorEntry(builder, static_cast<uint32_t>(codes.size() - 1), ins,
                                                    outs, op.options.type, options));
  }
  std::vector<Offset<fb::MetadataEntry>> metadata;
  if (plan) {
    std::vector<int32_t> words = {0, 1,
                                  planEntries != 0 ? planEntries : static_cast<int32_t>(tensors.size())};
    for (const Tensor& tensor : tensors) words.push_back(tensor.offset);
    buffers.push_back(data({reinterpret_cast<const char*>(words.data()), words.size() * 4}));
    const auto name = builder.CreateString("OfflineMemoryAllocation");
    metadata.push_back(fb::CreateMetadataEntry(builder, name, static_cast<uint32_t>(buffers.size() - 1)));
  }
  const auto tensorVector = builder.CreateVector(tensorTable);
  const auto inputVector = builder.CreateVector(inputs), outputVector = builder.CreateVector(outputs);
  const auto operatorVector = builder.CreateVector(operatorTable);
  const std::vector<Offset<fb::SubgraphEntry>> subgraphs = {fb::CreateSubgraphEntry(
      builder, tensorVector, inputVector, outputVector, operatorVector, builder.CreateString("main"))};
  const auto codeVector = builder.CreateVector(codes);
  const auto subgraphVector = builder.CreateVector(subgraphs);
  const auto description = builder.CreateString("made by a test");
  const auto bufferVector = builder.CreateVector(buffers);
  const auto metadataVector = builder.CreateVector(metadata);
  builder.Finish(fb::CreateRoot(builder, version, codeVector, subgraphVector, description, bufferVector, 0,
                                metadataVector),
                 "TFL3");
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

TfliteFile npuFile(const std::string& payload, const std::string& constants, int32_t scratchBytes,
                   int32_t input, int32_t inputAt, int32_t output, int32_t outputAt) {
  using tflite::TensorType;
  TfliteFile file;
  file.tensors = {{"commands", TensorType::UInt8, {static_cast<int32_t>(payload.size())}, payload, -1},
                  {"constants", TensorType::UInt8, {static_cast<int32_t>(constants.size())}, constants, -1},
                  {"scratch", TensorType::UInt8, {scratchBytes}, "", 0},
                  {"fast", TensorType::UInt8, {scratchBytes}, "", 0},
                  {"x", TensorType::Int8, {1, input}, "", inputAt},
                  {"y", TensorType::Int8, {1, output}, "", outputAt}};
  file.operators = {{"ethos-u", 0, {0, 1, 2, 3, 4}, {5}}};
  file.inputs = {4};
  file.outputs = {5};
  return file;
}

}  // namespace carina::test
