// SPDX-License-Identifier: Apache-2.0
// Builds the tables of a .tflite: buffers, the tensors of each subgraph with their offsets in the arena, and
// `ethos-u` operators.
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
/// Limit for all constants: leaves space for tables, since a flatbuffer is limited to 2 GiB.
constexpr int64_t kMaxFileBytes = (int64_t{1} << 31) - (int64_t{1} << 26);
constexpr std::string_view kEthosU = "ethos-u";
constexpr std::string_view kArenaPlan = "OfflineMemoryAllocation";

/// The operands of an `ethos-u` operator besides its inputs.
struct NpuMemory {
  ByteSpan payload;           // driver payload
  ByteSpan constants;         // region 0
  int64_t scratchOffset = 0;  // region 1: its offset in the arena
  int64_t scratchBytes = 0;
  int64_t fastScratchBytes = 0;  // region 2; 0: same as region 1
};

class ModelEntries {
 public:
  ModelEntries();

  flatbuffers::FlatBufferBuilder& builder() { return builder_; }

  /// Index of a buffer with these bytes, aligned to 16.
  uint32_t buffer(ByteSpan bytes);
  /// Index of a tensor of the subgraph under construction, at this offset in the arena or kNotPlanned.
  int32_t tensor(flatbuffers::Offset<fb::TensorEntry> entry, int64_t offset);
  int32_t tensor(TensorType type, const std::vector<int32_t>& shape, const std::string& name, uint32_t data,
                 flatbuffers::Offset<fb::Quantization> quantization, int64_t offset);

  /// An `ethos-u` operator; `suffix` distinguishes the names of its memories from those of others. Fails
  /// beyond 2 GiB.
  Result<flatbuffers::Offset<fb::OperatorEntry>> npuOperator(uint32_t code, const NpuMemory& memory,
                                                             const std::vector<int32_t>& inputs,
                                                             const std::vector<int32_t>& outputs,
                                                             const std::string& suffix = "");
  flatbuffers::Offset<fb::OperatorCode> npuCode();
  /// A subgraph of the tensors added since the previous one; the first is the main one.
  flatbuffers::Offset<fb::SubgraphEntry> subgraph(
      const std::vector<int32_t>& inputs, const std::vector<int32_t>& outputs,
      const std::vector<flatbuffers::Offset<fb::OperatorEntry>>& operators, const std::string& name);
  /// The offline memory plan of all tensors added so far.
  flatbuffers::Offset<fb::MetadataEntry> plan();

  /// Finishes the file and returns its bytes; everything that is not passed is filled in. Fails beyond 2 GiB.
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
  std::vector<flatbuffers::Offset<fb::TensorEntry>> tensors_;  // of the subgraph under construction
  std::vector<int32_t> offsets_;                               // of the tensors of all subgraphs
  uint64_t bufferBytes_ = 0;
};

}  // namespace carina::tflite
