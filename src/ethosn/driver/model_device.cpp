// SPDX-License-Identifier: Apache-2.0
#include "ethosn/driver/model_device.hpp"

#include <algorithm>

namespace carina::ethosn {
namespace {

class ModelBuffer final : public DeviceBuffer {
 public:
  explicit ModelBuffer(uint32_t bytes) : bytes_(bytes) {}
  size_t size() const override { return bytes_.size(); }
  Status write(ByteSpan bytes) override {
    if (bytes.size() != size())
      return fail(Code::InputMismatch, "{} bytes for a buffer of {}", bytes.size(), size());
    std::copy(bytes.begin(), bytes.end(), bytes_.begin());
    return {};
  }
  Status read(std::span<std::byte> bytes) override {
    if (bytes.size() != size())
      return fail(Code::InputMismatch, "{} bytes from a buffer of {}", bytes.size(), size());
    std::copy(bytes_.begin(), bytes_.end(), bytes.begin());
    return {};
  }
  ByteSpan contents() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

class ModelInference final : public DeviceInference {
 public:
  explicit ModelInference(uint64_t cycles) : cycles_(cycles) {}
  Result<InferenceState> wait(std::chrono::milliseconds) override { return InferenceState::Completed; }
  Result<uint64_t> cycles() override { return cycles_; }

 private:
  uint64_t cycles_;
};

}  // namespace

class ModelDevice::Network final : public DeviceNetwork {
 public:
  Network(ModelDevice& device, const CompiledNetwork& network) : device_(device), network_(network) {}

  Result<std::unique_ptr<DeviceInference>> schedule(std::span<DeviceBuffer* const> inputs,
                                                    std::span<DeviceBuffer* const> outputs) override {
    if (inputs.size() != network_.inputs.size() || outputs.size() != network_.outputs.size()) {
      return fail(Code::InputMismatch, "{} inputs and {} outputs for a network of {} and {}", inputs.size(),
                  outputs.size(), network_.inputs.size(), network_.outputs.size());
    }
    std::vector<ByteSpan> bytes;
    for (DeviceBuffer* input : inputs) bytes.push_back(static_cast<ModelBuffer*>(input)->contents());
    CARINA_TRY(RunResult result, runNetwork(network_, bytes, device_.target_, device_.options_));
    for (size_t i = 0; i < outputs.size(); ++i)
      CARINA_RETURN_IF_ERROR(outputs[i]->write(std::as_bytes(std::span(result.outputs[i]))));
    result.outputs.clear();
    device_.last_ = std::move(result);
    const RunStats& stats = device_.last_.stats;
    return std::make_unique<ModelInference>(std::max(stats.mceCycles, stats.pleCycles));
  }

 private:
  ModelDevice& device_;
  const CompiledNetwork& network_;
};

Result<std::unique_ptr<DeviceBuffer>> ModelDevice::createBuffer(uint32_t bytes) {
  return std::make_unique<ModelBuffer>(bytes);
}

Result<std::unique_ptr<DeviceNetwork>> ModelDevice::createNetwork(const CompiledNetwork& network) {
  CARINA_RETURN_IF_ERROR(checkBuffers(network));
  return std::make_unique<Network>(*this, network);
}

}  // namespace carina::ethosn
