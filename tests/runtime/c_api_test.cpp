// SPDX-License-Identifier: Apache-2.0
// The runtime used from a C file: same results and errors as with the C++ interface.
#include <gtest/gtest.h>

#include <cstring>

#include "base/file.hpp"
#include "base/npy.hpp"
#include "c_client.h"
#include "device/host_device.hpp"
#include "device/run.hpp"
#include "pipeline/verify.hpp"
#include "program_support.hpp"
#include "pte/method_builder.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::rt {
namespace {

std::string reluProgram() {
  pte::Program program;
  pte::MethodBuilder builder(program);
  const pte::ValueId x = builder.input(pte::ScalarType::Float32, {4});
  const pte::ValueId y = builder.activation(pte::ScalarType::Float32, {4});
  builder.kernel("aten::relu.out", {x, y});
  builder.output(y);
  EXPECT_TRUE(builder.finish().ok());
  return require(pte::writeProgram(program));
}

std::string textOf(const carina_status& status) {
  char text[256];
  carina_status_text(status, text, sizeof(text));
  return text;
}

TEST(CInterface, RunsKernels) {
  const Aligned program(reluProgram());
  const float input[4] = {1.0f, -2.0f, 0.5f, -0.25f};
  float output[4] = {};
  uint64_t cycles = 0;
  const carina_status status = run_from_c(program.data(), program.span().size, "forward", nullptr, input,
                                          sizeof(input), output, sizeof(output), &cycles);
  ASSERT_EQ(status.code, CARINA_OK) << textOf(status);
  EXPECT_EQ(std::vector<float>(output, output + 4), (std::vector<float>{1.0f, 0.0f, 0.5f, 0.0f}));
}

/// x * `name`, which is not in the program.
std::string productProgram(const char* name) {
  pte::Program program;
  pte::MethodBuilder builder(program);
  const pte::ValueId x = builder.input(pte::ScalarType::Float32, {4});
  const pte::ValueId y = builder.activation(pte::ScalarType::Float32, {4});
  builder.kernel("aten::mul.out", {x, x, y});
  builder.output(y);
  EXPECT_TRUE(builder.finish().ok());
  pte::Tensor weight;
  weight.sizes = {4};
  weight.dimOrder = {0};
  weight.extra = pte::ExtraTensorInfo{0, name, true};
  pte::Method& method = program.methods[0];
  std::get<pte::KernelCall>(method.chains[0].instructions[0]).arguments[1] =
      static_cast<int32_t>(method.values.size());
  method.values.emplace_back(weight);
  return require(pte::writeProgram(program));
}

TEST(CInterface, AcceptsDataOfOtherFiles) {
  const Aligned program(productProgram("weight")), unknown(productProgram("bias"));
  const float input[4] = {1.0f, -2.0f, 0.5f, -1.0f};
  float output[4] = {};
  uint64_t cycles = 0;
  const carina_status status = run_from_c(program.data(), program.span().size, "forward", nullptr, input,
                                          sizeof(input), output, sizeof(output), &cycles);
  ASSERT_EQ(status.code, CARINA_OK) << textOf(status);
  EXPECT_EQ(std::vector<float>(output, output + 4), (std::vector<float>{2.0f, -6.0f, 2.0f, -5.0f}));
  const carina_status missing = run_from_c(unknown.data(), unknown.span().size, "forward", nullptr, input,
                                           sizeof(input), output, sizeof(output), &cycles);
  EXPECT_EQ(missing.code, CARINA_NOT_FOUND);
  EXPECT_EQ(textOf(missing),
            "not found: the data of a tensor are in another file, which was not given (bias, at 2)");
}

TEST(CInterface, ReturnsNumbers) {
  pte::Tensor tensor;
  tensor.sizes = {4};
  tensor.dimOrder = {0};
  tensor.allocation = pte::Allocation{1, 0};
  const float input[4] = {};
  const auto run = [&](const pte::Value& value) {
    pte::Method method;
    method.values = {tensor, value};
    method.inputs = {0};
    method.outputs = {1};
    method.chains.push_back({});
    method.pools = {0, 16};
    pte::Program program;
    program.methods.push_back(method);
    const auto bytes = pte::writeProgram(program);
    EXPECT_TRUE(bytes.ok());
    const Aligned file(bytes.ok() ? *bytes : "");
    carina_number number = {};
    uint64_t cycles = 0;
    const carina_status status = run_from_c(file.data(), file.span().size, "forward", nullptr, input,
                                            sizeof(input), &number, sizeof(number), &cycles);
    return std::pair(status, number);
  };
  EXPECT_EQ(run(int64_t{-7}).second.integer, -7);
  EXPECT_EQ(run(2.5).second.kind, CARINA_REAL);
  EXPECT_EQ(run(2.5).second.real, 2.5);
  EXPECT_EQ(run(true).second.kind, CARINA_BOOLEAN);
  EXPECT_EQ(run(true).second.integer, 1);
  EXPECT_EQ(run(std::string("text")).first.code, CARINA_TYPE_MISMATCH);
}

TEST(CInterface, ReturnsTheErrorsOfTheRuntime) {
  const Aligned program(reluProgram());
  const float input[4] = {};
  float output[4];
  uint64_t cycles = 0;
  const auto run = [&](const void* bytes, size_t size, const char* name, size_t inputSize) {
    return run_from_c(bytes, size, name, nullptr, input, inputSize, output, sizeof(output), &cycles);
  };
  const size_t size = program.span().size;
  EXPECT_EQ(run(program.data(), 4, "forward", 16).code, CARINA_TRUNCATED);
  EXPECT_EQ(run(input, sizeof(input), "forward", 16).code, CARINA_NOT_A_PROGRAM);
  const carina_status unknown = run(program.data(), size, "backward", 16);
  EXPECT_EQ(unknown.code, CARINA_NOT_FOUND);
  EXPECT_EQ(textOf(unknown), "not found: the program has no method of this name (backward)");
  EXPECT_EQ(run(program.data(), size, "forward", 12).code, CARINA_SHAPE_MISMATCH);
}

/// The NPU model behind C functions.
carina_device deviceOf(device::HostDevice& host) {
  carina_device device = {};
  device.context = &host;
  device.read32 = [](void* context, uint32_t offset) {
    return static_cast<device::HostDevice*>(context)->read32(offset);
  };
  device.write32 = [](void* context, uint32_t offset, uint32_t value) {
    static_cast<device::HostDevice*>(context)->write32(offset, value);
  };
  device.map = [](void* context, const void* memory, size_t bytes, carina_access access, uint64_t* address) {
    return static_cast<int>(
        static_cast<device::HostDevice*>(context)->map(memory, bytes, static_cast<Access>(access), address));
  };
  device.unmap = [](void* context, const void* memory, size_t bytes) {
    static_cast<device::HostDevice*>(context)->unmap(memory, bytes);
  };
  device.wait = [](void* context, uint32_t milliseconds) {
    return static_cast<int>(static_cast<device::HostDevice*>(context)->wait(milliseconds) == Wait::Interrupt);
  };
  return device;
}

TEST(CInterface, RunsDelegatesOnTheNpu) {
  pipeline::Options options;
  options.model = test::modelFile("dense.pt2");
  options.calibration = test::modelFile("dense.npz");
  options.target = "ethos-u55-128";
  auto build = require(pipeline::build(options));
  auto bytes = require(pte::writeProgram(build.program));
  auto arrays = require(readNpz(options.calibration));
  auto samples = require(pipeline::verificationSamples(build, arrays));
  auto expected = require(device::runProgram(asBytes(bytes), samples.front()));

  auto machine = require(npu::makeMachine(options.target, "", ""));
  device::HostDevice host(machine, {});
  const carina_device device = deviceOf(host);
  const Aligned program(bytes);
  const ByteSpan input = samples.front().front().bytes();
  std::vector<std::byte> output(expected.outputs.front().bytes().size());
  uint64_t cycles = 0;
  const carina_status status = run_from_c(program.data(), program.span().size, "forward", &device,
                                          input.data(), input.size(), output.data(), output.size(), &cycles);
  ASSERT_EQ(status.code, CARINA_OK) << textOf(status);
  EXPECT_EQ(std::memcmp(output.data(), expected.outputs.front().bytes().data(), output.size()), 0);
  EXPECT_EQ(cycles, static_cast<uint64_t>(expected.stats.npuCycles));
  EXPECT_GT(cycles, 0u);
  EXPECT_STREQ(events_from_c, "xkKdDkKX");  // quantize, the NPU, dequantize

  uint64_t none = 0;
  const carina_status missing = run_from_c(program.data(), program.span().size, "forward", nullptr,
                                           input.data(), input.size(), output.data(), output.size(), &none);
  EXPECT_EQ(missing.code, CARINA_MISSING_BACKEND) << textOf(missing);
}

}  // namespace
}  // namespace carina::rt
