// SPDX-License-Identifier: Apache-2.0
// The ioctl interface of the Linux kernel module for Ethos-N (6.1): request numbers and layouts, as seen by
// 64-bit programs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace carina::ethosn::kernel {

inline constexpr uint32_t kMajor = 6, kMinor = 1;

/// Requests without data, and with an argument of `bytes` that the kernel reads or writes (Linux: _IO, _IOW,
/// _IOR).
constexpr unsigned long request(uint32_t number) {
  return 0x01UL << 8 | number;
}
constexpr unsigned long requestWith(uint32_t number, size_t bytes) {
  return 0x40000000UL | static_cast<unsigned long>(bytes) << 16 | request(number);
}
constexpr unsigned long requestFor(uint32_t number, size_t bytes) {
  return 0x80000000UL | static_cast<unsigned long>(bytes) << 16 | request(number);
}

struct BufferEntry {
  uint32_t id, offset, size;
};
struct BufferTable {
  uint32_t count;
  const BufferEntry* entries;
};
struct ConstantData {
  uint32_t size;
  const void* data;
};
struct ImportedMemory {
  uint32_t file, flags;
  size_t size;
};
enum class MemoryKind : uint32_t { Allocate = 0, Import = 1 };
struct IntermediateMemory {
  MemoryKind kind;
  union {
    uint32_t bytes;
    ImportedMemory imported;
  };
  BufferTable buffers;
};
struct NetworkRequest {
  BufferTable dmaBuffers;
  ConstantData dmaData;
  BufferTable controlUnitBuffers;
  ConstantData controlUnitData;
  IntermediateMemory intermediate;
  BufferTable inputs, outputs;
};
struct InferenceRequest {
  uint32_t inputCount;
  const int* inputs;
  uint32_t outputCount;
  const int* outputs;
};
struct BufferRequest {
  uint32_t size, flags;
};
struct AllocatorRequest {
  uint8_t isProtected;
};
struct ModuleVersion {
  uint32_t major, minor, patch;
};

static_assert(sizeof(BufferEntry) == 12 && sizeof(BufferTable) == 16 && sizeof(ConstantData) == 16);
static_assert(sizeof(IntermediateMemory) == 40 && offsetof(IntermediateMemory, buffers) == 24);
static_assert(sizeof(NetworkRequest) == 136 && sizeof(InferenceRequest) == 32);

inline constexpr uint32_t kReadWrite = 2;  // a buffer that host and NPU write

inline constexpr unsigned long kCreateBuffer = requestWith(0x0, sizeof(BufferRequest));
inline constexpr unsigned long kRegisterNetwork = requestWith(0x1, sizeof(NetworkRequest));
inline constexpr unsigned long kScheduleInference = requestWith(0x2, sizeof(InferenceRequest));
inline constexpr unsigned long kCapabilities = requestFor(0x3, sizeof(void*));
inline constexpr unsigned long kGetVersion = request(0xa);
inline constexpr unsigned long kSyncForCpu = request(0xb);
inline constexpr unsigned long kSyncForDevice = request(0xc);
inline constexpr unsigned long kCreateAllocator = requestWith(0xe, sizeof(AllocatorRequest));
inline constexpr unsigned long kCycleCount = requestWith(0xf, sizeof(void*));

}  // namespace carina::ethosn::kernel
