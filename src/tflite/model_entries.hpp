// SPDX-License-Identifier: Apache-2.0
// The tables of a .tflite in the making: buffers and tensors by index, each tensor with its place in the
// arena, and what an `ethos-u` operator consists of.
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
  size_t tensorCount() const { return tensors_.size(); }

  /// Index of a buffer with these bytes, aligned to 16.
  uint32_t buffer(ByteSpan bytes);
  /// Index of a tensor at this place of the arena, or kNotPlanned.
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
  /// The main subgraph.
  flatbuffers::Offset<fb::SubgraphEntry> subgraph(
      const std::vector<int32_t>& inputs, const std::vector<int32_t>& outputs,
      const std::vector<flatbuffers::Offset<fb::OperatorEntry>>& operators, const std::string& name);
  /// The offline memory plan: the tensors made so far, then `others` that have no place in it.
  flatbuffers::Offset<fb::MetadataEntry> plan(size_t others = 0);

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
  std::vector<flatbuffers::Offset<fb::TensorEntry>> tensors_;
  std::vector<int32_t> offsets_;
  uint64_t bufferBytes_ = 0;
};

}  // namespace carina::tflite
