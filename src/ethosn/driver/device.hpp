// SPDX-License-Identifier: Apache-2.0
// An Ethos-N as Arm's driver library presents it: memory that the NPU can access, networks, inferences.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "ethosn/stream/compiled_network.hpp"

namespace carina::ethosn {

/// Values as in the kernel module.
enum class InferenceState : int32_t { Scheduled = 0, Running = 1, Completed = 2, Error = 3 };

/// Memory for one input or output.
class DeviceBuffer {
 public:
  virtual ~DeviceBuffer() = default;
  virtual size_t size() const = 0;
  /// `bytes` must have the size of the buffer.
  virtual Status write(ByteSpan bytes) = 0;
  virtual Status read(std::span<std::byte> bytes) = 0;
};

class DeviceInference {
 public:
  virtual ~DeviceInference() = default;
  /// The state after at most `timeout`. Fails if it cannot be determined.
  virtual Result<InferenceState> wait(std::chrono::milliseconds timeout) = 0;
  /// Of a completed inference.
  virtual Result<uint64_t> cycles() = 0;
};

class DeviceNetwork {
 public:
  virtual ~DeviceNetwork() = default;
  /// Buffers in the order of the compiled network's tables, with the sizes given there; they must outlive the
  /// inference.
  virtual Result<std::unique_ptr<DeviceInference>> schedule(std::span<DeviceBuffer* const> inputs,
                                                            std::span<DeviceBuffer* const> outputs) = 0;
};

/// Must outlive everything that it creates.
class Device {
 public:
  virtual ~Device() = default;
  virtual Result<std::unique_ptr<DeviceBuffer>> createBuffer(uint32_t bytes) = 0;
  /// `network` must outlive the result.
  virtual Result<std::unique_ptr<DeviceNetwork>> createNetwork(const CompiledNetwork& network) = 0;
};

}  // namespace carina::ethosn
