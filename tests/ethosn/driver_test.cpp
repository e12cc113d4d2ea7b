// SPDX-License-Identifier: Apache-2.0
// Devices: the model, and a fake of the Linux kernel module that has its interface and runs the model.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "ethosn/compiler/compile.hpp"
#include "ethosn/driver/linux_device.hpp"
#include "ethosn/driver/linux_interface.hpp"
#include "ethosn/driver/model_device.hpp"
#include "ethosn/reference.hpp"
#include "support/require.hpp"

namespace carina::ethosn::test {
namespace {

/// A minimal kernel module: files are numbers, buffers are vectors, and networks are copied out of the
/// request, as by the real module.
class StandInKernel final : public DeviceFiles {
 public:
  explicit StandInKernel(const Target& target) : target_(target) {}

  kernel::ModuleVersion version{6, 1, 0};
  std::map<unsigned long, int> failing;  // error number by request
  bool hangs = false;
  int32_t state = 2;
  int synchronizations = 0;
  size_t openFiles() const { return files_.size(); }

  int open(const char* path) override {
    return std::string(path) == "/dev/ethosn0" ? add({Kind::Device}) : -ENOENT;
  }
  int control(int file, unsigned long request, void* argument) override {
    const auto found = files_.find(file);
    if (found == files_.end()) return -EBADF;
    if (const auto error = failing.find(request); error != failing.end()) return -error->second;
    File& of = found->second;
    if (of.kind == Kind::Device && request == kernel::kGetVersion) {
      std::memcpy(argument, &version, sizeof(version));
      return 0;
    }
    if (of.kind == Kind::Device && request == kernel::kCapabilities) {
      const auto words = capabilities(target_);
      if (argument == nullptr) return static_cast<int>(sizeof(words));
      std::memcpy(argument, words.data(), sizeof(words));
      return 0;
    }
    if (of.kind == Kind::Device && request == kernel::kCreateAllocator) return add({Kind::Allocator});
    if (of.kind == Kind::Allocator && request == kernel::kCreateBuffer) {
      File buffer{Kind::Buffer};
      buffer.bytes.resize(static_cast<const kernel::BufferRequest*>(argument)->size);
      return add(std::move(buffer));
    }
    if (of.kind == Kind::Allocator && request == kernel::kRegisterNetwork) {
      File network{Kind::Network};
      network.network = networkOf(*static_cast<const kernel::NetworkRequest*>(argument));
      return checkBuffers(network.network).ok() ? add(std::move(network)) : -EINVAL;
    }
    if (of.kind == Kind::Network && request == kernel::kScheduleInference)
      return schedule(of.network, *static_cast<const kernel::InferenceRequest*>(argument));
    if (of.kind == Kind::Buffer && (request == kernel::kSyncForCpu || request == kernel::kSyncForDevice))
      return ++synchronizations, 0;
    if (of.kind == Kind::Inference && request == kernel::kCycleCount) {
      std::memcpy(argument, &of.cycles, sizeof(of.cycles));
      return 0;
    }
    return -ENOTTY;
  }
  int map(int file, size_t bytes, void** at) override {
    File& of = files_.at(file);
    if (of.kind != Kind::Buffer || bytes != of.bytes.size()) return -EINVAL;
    *at = of.bytes.data();
    return 0;
  }
  void unmap(void*, size_t) override {}
  int waitReadable(int, int) override { return hangs ? 0 : 1; }
  int64_t read(int file, void* into, size_t bytes) override {
    if (files_.at(file).kind != Kind::Inference || bytes != sizeof(state)) return -EINVAL;
    std::memcpy(into, &state, sizeof(state));
    return sizeof(state);
  }
  void close(int file) override { EXPECT_EQ(files_.erase(file), 1U); }

 private:
  enum class Kind { Device, Allocator, Buffer, Network, Inference };
  struct File {
    Kind kind;
    std::vector<uint8_t> bytes = {};
    CompiledNetwork network = {};
    uint64_t cycles = 0;
  };

  int add(File file) {
    files_.emplace(next_, std::move(file));
    return next_++;
  }

  static std::vector<BufferInfo> infosOf(const kernel::BufferTable& table) {
    std::vector<BufferInfo> infos;
    for (uint32_t i = 0; i < table.count; ++i)
      infos.push_back({table.entries[i].id, table.entries[i].offset, table.entries[i].size, ""});
    return infos;
  }
  static std::vector<uint8_t> bytesOf(const kernel::ConstantData& data) {
    const auto* bytes = static_cast<const uint8_t*>(data.data);
    return {bytes, bytes + data.size};
  }
  static CompiledNetwork networkOf(const kernel::NetworkRequest& request) {
    CompiledNetwork network;
    network.constantDma = bytesOf(request.dmaData);
    network.constantControlUnit = bytesOf(request.controlUnitData);
    network.inputs = infosOf(request.inputs);
    network.outputs = infosOf(request.outputs);
    network.controlUnitBuffers = infosOf(request.controlUnitBuffers);
    network.dmaBuffers = infosOf(request.dmaBuffers);
    network.intermediates = infosOf(request.intermediate.buffers);
    EXPECT_EQ(request.intermediate.kind, kernel::MemoryKind::Allocate);
    EXPECT_EQ(request.intermediate.bytes, intermediateBytes(network));
    return network;
  }

  int schedule(const CompiledNetwork& network, const kernel::InferenceRequest& request) {
    std::vector<ByteSpan> inputs;
    for (uint32_t i = 0; i < request.inputCount; ++i)
      inputs.push_back(std::as_bytes(std::span(files_.at(request.inputs[i]).bytes)));
    const auto run = runNetwork(network, inputs, target_);
    if (!run.ok() || request.outputCount != run->outputs.size()) return -EINVAL;
    for (uint32_t i = 0; i < request.outputCount; ++i) files_.at(request.outputs[i]).bytes = run->outputs[i];
    File inference{Kind::Inference};
    inference.cycles = run->stats.mceCycles;
    return add(std::move(inference));
  }

  Target target_;
  std::map<int, File> files_;
  int next_ = 3;
};

Target targetNamed(std::string_view name) {
  return *makeTarget(**findVariant(name));
}

struct Sample {
  NetworkBuilder builder{DataType::S8, 7};
  CompiledNetwork compiled;

  explicit Sample(const Target& target) {
    const int32_t x = builder.input(12, 10, 20), y = builder.input(12, 10, 24, 0.04F, 3);
    const int32_t made = builder.convolution(x, 3, 3, 24, 1, {1, 1, 1, 1});
    builder.output(builder.binary(Operator::Addition, made, y, 0.9F, 9));
    builder.output(made);
    compiled = *compileNetwork(builder.network(), target);
  }
};

/// The network's outputs, as the device returns them.
Result<std::vector<std::vector<uint8_t>>> runOn(Device& device, const CompiledNetwork& network,
                                                const std::vector<std::vector<uint8_t>>& inputs) {
  CARINA_TRY(const auto loaded, device.createNetwork(network));
  std::vector<std::unique_ptr<DeviceBuffer>> buffers;
  std::vector<DeviceBuffer*> in, out;
  for (const std::vector<uint8_t>& input : inputs) {
    CARINA_TRY(auto buffer, device.createBuffer(static_cast<uint32_t>(input.size())));
    CARINA_RETURN_IF_ERROR(buffer->write(std::as_bytes(std::span(input))));
    in.push_back(buffer.get());
    buffers.push_back(std::move(buffer));
  }
  for (const BufferInfo& info : network.outputs) {
    CARINA_TRY(auto buffer, device.createBuffer(info.size));
    out.push_back(buffer.get());
    buffers.push_back(std::move(buffer));
  }
  CARINA_TRY(const auto inference, loaded->schedule(in, out));
  CARINA_TRY(const InferenceState state, inference->wait(std::chrono::milliseconds(10)));
  if (state != InferenceState::Completed) return fail(Code::NpuFault, "state {}", static_cast<int>(state));
  CARINA_TRY(const uint64_t cycles, inference->cycles());
  EXPECT_GT(cycles, 0U);
  std::vector<std::vector<uint8_t>> outputs;
  for (DeviceBuffer* buffer : out) {
    outputs.emplace_back(buffer->size());
    CARINA_RETURN_IF_ERROR(buffer->read(std::as_writable_bytes(std::span(outputs.back()))));
  }
  return outputs;
}

TEST(EthosNDriver, ModelAndKernelGiveTheSameOutputs) {
  const Target target = targetNamed("ethos-n78-4tops-2ple");
  Sample sample(target);
  const auto inputs = sample.builder.randomInputs();
  const auto expected = computeReference(sample.builder.network(), inputs);
  ModelDevice model(target);
  const auto modelled = require(runOn(model, sample.compiled, inputs));
  EXPECT_EQ(modelled, expected);
  StandInKernel standIn(target);
  {
    const auto device = require(LinuxDevice::open(standIn, "/dev/ethosn0"));
    EXPECT_EQ(device->target().variant, target.variant);
    const auto outputs = require(runOn(*device, sample.compiled, inputs));
    EXPECT_EQ(outputs, expected);
    EXPECT_EQ(standIn.synchronizations, 8);  // two around each use of two inputs and two outputs
  }
  EXPECT_EQ(standIn.openFiles(), 0U);
}

std::string messageOf(StandInKernel& standIn, const Sample& sample, NetworkBuilder& builder) {
  const auto device = LinuxDevice::open(standIn, "/dev/ethosn0");
  if (!device.ok()) return device.error().str();
  return errorOf(runOn(**device, sample.compiled, builder.randomInputs()));
}

TEST(EthosNDriver, KernelErrorsAreReported) {
  const Target target = targetNamed("ethos-n78-4tops-2ple");
  Sample sample(target);
  const auto expect = [&](const std::function<void(StandInKernel&)>& change, const std::string& text) {
    StandInKernel standIn(target);
    change(standIn);
    const std::string message = messageOf(standIn, sample, sample.builder);
    EXPECT_NE(message.find(text), std::string::npos) << message;
    EXPECT_EQ(standIn.openFiles(), 0U) << text;
  };
  expect([](StandInKernel& k) { k.version.major = 5; }, "version 5.1.0, expected 6.1");
  expect([](StandInKernel& k) { k.failing[kernel::kCapabilities] = EIO; }, "report the capabilities");
  expect([](StandInKernel& k) { k.failing[kernel::kCreateAllocator] = EBUSY; }, "allocate NPU memory");
  expect([](StandInKernel& k) { k.failing[kernel::kRegisterNetwork] = EINVAL; }, "accept the network");
  expect([](StandInKernel& k) { k.failing[kernel::kCreateBuffer] = ENOMEM; }, "Cannot allocate memory");
  expect([](StandInKernel& k) { k.failing[kernel::kSyncForDevice] = EIO; }, "synchronize a buffer");
  expect([](StandInKernel& k) { k.failing[kernel::kScheduleInference] = EIO; }, "schedule an inference");
  expect([](StandInKernel& k) { k.hangs = true; }, "state 1");
  expect([](StandInKernel& k) { k.state = 3; }, "state 3");
  expect([](StandInKernel& k) { k.state = 9; }, "unknown state 9");
  StandInKernel other(targetNamed("ethos-n78-8tops-2ple"));
  EXPECT_NE(messageOf(other, sample, sample.builder).find("the NPU is ethos-n78-8tops-2ple"),
            std::string::npos);
}

TEST(EthosNDriver, NoDevice) {
  StandInKernel standIn(targetNamed("ethos-n78-4tops-2ple"));
  const auto device = LinuxDevice::open(standIn, "/dev/none");
  ASSERT_FALSE(device.ok());
  EXPECT_NE(device.error().str().find("cannot be opened"), std::string::npos);
  // The real system calls, on a file that is not such a device.
  const std::string null = errorOf(LinuxDevice::open(linuxFiles(), "/dev/null"));
  EXPECT_NE(null.find("report its version"), std::string::npos) << null;
}

}  // namespace
}  // namespace carina::ethosn::test
