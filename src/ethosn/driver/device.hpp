// SPDX-License-Identifier: Apache-2.0
// An Ethos-N as Arm's driver library shows it: memory that the NPU can reach, networks, inferences.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "ethosn/stream/compiled_network.hpp"

namespace carina::ethosn {

/// In the numbers of the kernel module.
enum class InferenceState : int32_t { Scheduled = 0, Running = 1, Completed = 2, Error = 3 };

/// Memory for one input or output.
class DeviceBuffer {
 public:
  virtual ~DeviceBuffer() = default;
  virtual size_t size() const = 0;
  /// `bytes` are as many as the buffer has.
  virtual Status write(ByteSpan bytes) = 0;
  virtual Status read(std::span<std::byte> bytes) = 0;
};

class DeviceInference {
 public:
  virtual ~DeviceInference() = default;
  /// Where it stands at the latest after `timeout`. Fails where that cannot be found out.
  virtual Result<InferenceState> wait(std::chrono::milliseconds timeout) = 0;
  /// Of a completed inference.
  virtual Result<uint64_t> cycles() = 0;
};

class DeviceNetwork {
 public:
  virtual ~DeviceNetwork() = default;
  /// Buffers in the order of the compiled network's tables, each of the size there; they outlive the
  /// inference.
  virtual Result<std::unique_ptr<DeviceInference>> schedule(std::span<DeviceBuffer* const> inputs,
                                                            std::span<DeviceBuffer* const> outputs) = 0;
};

/// What it makes must not outlive it.
class Device {
 public:
  virtual ~Device() = default;
  virtual Result<std::unique_ptr<DeviceBuffer>> createBuffer(uint32_t bytes) = 0;
  /// `network` outlives what comes back.
  virtual Result<std::unique_ptr<DeviceNetwork>> createNetwork(const CompiledNetwork& network) = 0;
};

}  // namespace carina::ethosn
