// SPDX-License-Identifier: Apache-2.0
// The tables of a .tflite in the making: buffers, and subgraph by subgraph tensors by index, each with its
// place in the arena, and what an `ethos-u` operator consists of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "tflite/model.hpp"
#include "tflite/schema.hpp"

namespace carina::tflite {

constexpr int32_t kCustomCode = 32;  // built-in code of custom operators
constexpr int32_t kNotPlanned = -1;  // in place of an offset in the arena
/// Of all constants: room is left for tables, since a flatbuffer ends at 2 GiB.
constexpr int64_t kMostFileBytes = (int64_t{1} << 31) - (int64_t{1} << 26);
constexpr std::string_view kEthosU = "ethos-u";
constexpr std::string_view kArenaPlan = "OfflineMemoryAllocation";

/// What an `ethos-u` operator takes besides its inputs.
struct NpuMemory {
  ByteSpan payload;           // driver payload
  ByteSpan constants;         // region 0
  int64_t scratchOffset = 0;  // region 1: its place in the arena
  int64_t scratchBytes = 0;
  int64_t fastScratchBytes = 0;  // region 2; 0: it is region 1
};

class ModelEntries {
 public:
  ModelEntries();

  flatbuffers::FlatBufferBuilder& builder() { return builder_; }

  /// Index of a buffer with these bytes, aligned to 16.
  uint32_t buffer(ByteSpan bytes);
  /// Index of a tensor of the subgraph in the making, at this place of the arena, or kNotPlanned.
  int32_t tensor(flatbuffers::Offset<fb::TensorEntry> entry, int64_t offset);
  int32_t tensor(TensorType type, const std::vector<int32_t>& shape, const std::string& name, uint32_t data,
                 flatbuffers::Offset<fb::Quantization> quantization, int64_t offset);

  /// An `ethos-u` operator; `suffix` tells the names of its memories from those of others. Error: more than
  /// 2 GiB.
  Result<flatbuffers::Offset<fb::OperatorEntry>> npuOperator(uint32_t code, const NpuMemory& memory,
                                                             const std::vector<int32_t>& inputs,
                                                             const std::vector<int32_t>& outputs,
                                                             const std::string& suffix = "");
  flatbuffers::Offset<fb::OperatorCode> npuCode();
  /// A subgraph of the tensors since the one before it; the first is the main one.
  flatbuffers::Offset<fb::SubgraphEntry> subgraph(
      const std::vector<int32_t>& inputs, const std::vector<int32_t>& outputs,
      const std::vector<flatbuffers::Offset<fb::OperatorEntry>>& operators, const std::string& name);
  /// The offline memory plan of all tensors made so far.
  flatbuffers::Offset<fb::MetadataEntry> plan();

  /// Everything but what is given is filled in. Error: more than 2 GiB.
  Result<std::string> finish(
      const std::vector<flatbuffers::Offset<fb::OperatorCode>>& codes,
      const std::vector<flatbuffers::Offset<fb::SubgraphEntry>>& subgraphs, const std::string& description,
      const std::vector<flatbuffers::Offset<fb::MetadataEntry>>& metadata,
      flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::Signature>>> signatures = 0);

 private:
  int32_t constant(const std::string& name, ByteSpan bytes);
  int32_t memory(const std::string& name, int64_t bytes, int64_t offset);

  flatbuffers::FlatBufferBuilder builder_;
  std::vector<flatbuffers::Offset<fb::BufferEntry>> buffers_;
  std::vector<flatbuffers::Offset<fb::TensorEntry>> tensors_;  // of the subgraph in the making
  std::vector<int32_t> offsets_;                               // of the tensors of all subgraphs
  uint64_t bufferBytes_ = 0;
};

}  // namespace carina::tflite
