// SPDX-License-Identifier: Apache-2.0
// The model as a device: an inference is complete as soon as it has been scheduled.
#pragma once

#include "ethosn/driver/device.hpp"
#include "ethosn/model/run.hpp"

namespace carina::ethosn {

class ModelDevice final : public Device {
 public:
  explicit ModelDevice(const Target& target, const RunOptions& options = {})
      : target_(target), options_(options) {}

  Result<std::unique_ptr<DeviceBuffer>> createBuffer(uint32_t bytes) override;
  Result<std::unique_ptr<DeviceNetwork>> createNetwork(const CompiledNetwork& network) override;

  /// Result of the last inference, without its outputs.
  const RunResult& last() const { return last_; }

 private:
  class Network;
  Target target_;
  RunOptions options_;
  RunResult last_;
};

}  // namespace carina::ethosn
