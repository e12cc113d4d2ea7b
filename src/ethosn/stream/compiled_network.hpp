// SPDX-License-Identifier: Apache-2.0
// A compiled network (container ENCN 2.0.0): constants, the command stream, and the tables of the buffers
// that the stream references by id.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "ethosn/stream/command_stream.hpp"

namespace carina::ethosn {

inline constexpr uint32_t kNetworkMajor = 2, kNetworkMinor = 0, kNetworkPatch = 0;
inline constexpr uint32_t kBufferAlignment = 64;

/// One DRAM buffer. Offsets of constants are relative to their data, those of intermediates to one common
/// allocation; those of inputs and outputs are informational, as each is a separate allocation.
struct BufferInfo {
  uint32_t id = 0, offset = 0, size = 0;  // size and offset in bytes
  std::string name;                       // for debugging; need not be UTF-8
  friend bool operator==(const BufferInfo&, const BufferInfo&) = default;
};

enum class BufferKind : uint8_t { Input, Output, ConstantControlUnit, ConstantDma, Intermediate };
const char* bufferKindName(BufferKind kind);  // "input"

struct CompiledNetwork {
  std::vector<uint8_t> constantDma;          // weights and constant tensors
  std::vector<uint8_t> constantControlUnit;  // the command stream
  std::vector<BufferInfo> inputs, outputs, controlUnitBuffers, dmaBuffers, intermediates;

  friend bool operator==(const CompiledNetwork&, const CompiledNetwork&) = default;
};

std::vector<uint8_t> writeCompiledNetwork(const CompiledNetwork& network);
bool isCompiledNetwork(ByteSpan bytes);  // by its first bytes

/// Reads untrusted bytes: form only (see checkBuffers). Errors name the byte offset.
Result<CompiledNetwork> readCompiledNetwork(ByteSpan bytes);

/// Checks what a loader requires of the tables: ids 0, 1, 2, ... each once over all tables, id 0 for the only
/// command stream, aligned offsets, constants within their data and without overlap, sizes above 0.
Status checkBuffers(const CompiledNetwork& network);

/// The bytes of the command stream: buffer 0. Fails if there is not exactly one, or if it exceeds the data.
Result<ByteSpan> commandStreamBytes(const CompiledNetwork& network);

struct FoundBuffer {
  BufferKind kind;
  const BufferInfo* info;
};
/// By id; empty if no table has it.
std::optional<FoundBuffer> findBuffer(const CompiledNetwork& network, uint32_t id);

/// Size of the one allocation that holds all intermediates.
uint64_t intermediateBytes(const CompiledNetwork& network);

}  // namespace carina::ethosn
