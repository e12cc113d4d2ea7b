// SPDX-License-Identifier: Apache-2.0
// Programs whose tensors and delegate data are in other files (.ptd).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.hpp"
#include "device/run.hpp"
#include "npu/isa/payload.hpp"
#include "npu/model/small_program.hpp"
#include "pipeline/check.hpp"
#include "pte/delegate_blob.hpp"
#include "pte/method_builder.hpp"
#include "support/require.hpp"

namespace carina {
namespace {

using testing::HasSubstr;

pte::ByteVector bytesOf(std::initializer_list<float> values) {
  const ByteSpan bytes = std::as_bytes(std::span(values.begin(), values.size()));
  return {bytes.begin(), bytes.end()};
}

/// A method that returns a constant that the program itself does not contain.
pte::Program constantProgram(bool planned) {
  pte::Tensor tensor;
  tensor.sizes = {3};
  tensor.dimOrder = {0};
  tensor.extra = pte::ExtraTensorInfo{0, "weight", true};
  if (planned) tensor.allocation = pte::Allocation{1, 16};
  pte::Method method;
  method.values = {tensor};
  method.outputs = {0};
  method.chains.push_back({});
  method.pools = {0, 32};
  pte::Program program;
  program.methods.push_back(method);
  return program;
}

pte::TensorData weightData(const pte::ByteVector& bytes) {
  pte::TensorData data;
  data.entries.push_back(
      {"weight", pte::TensorLayout{pte::ScalarType::Float32, {static_cast<int32_t>(bytes.size() / 4)}, {0}},
       bytes});
  return data;
}

TEST(ExternalData, TensorsComeFromTensorDataFiles) {
  for (const bool planned : {false, true}) {
    const auto file = require(pte::writeProgram(constantProgram(planned)));
    device::RunOptions options;
    options.tensorData = {weightData(bytesOf({1.5F, -2.0F, 3.0F}))};
    const auto outcome = require(device::runProgram(asBytes(file), {}, options));
    EXPECT_EQ(outcome.outputs[0].as<float>()[1], -2.0F);
    EXPECT_THAT(errorOf(device::runProgram(asBytes(file), {}, {})), HasSubstr("weight"));
    options.tensorData = {weightData(bytesOf({1.5F}))};
    EXPECT_THAT(errorOf(device::runProgram(asBytes(file), {}, options)),
                HasSubstr("expects 'weight' as float32[3], but its file has float32[1]"));
    options.tensorData[0].entries[0].layout.reset();
    EXPECT_THAT(device::runProgram(asBytes(file), {}, options).error().str(), HasSubstr("another size"));
    options.tensorData = {weightData(bytesOf({1, 2, 3})), weightData(bytesOf({1, 2, 3}))};
    EXPECT_THAT(device::runProgram(asBytes(file), {}, options).error().str(),
                HasSubstr("is in two tensor data files"));
  }
}

TEST(ExternalData, CheckNamesWhatIsMissing) {
  const auto file = require(pte::writeProgram(constantProgram(false)));
  const auto alone = require(pipeline::checkProgram(asBytes(file)));
  ASSERT_EQ(alone.problems.size(), 1u);
  EXPECT_THAT(alone.problems[0], HasSubstr("which was not given (weight"));
  const std::vector<pte::TensorData> files{weightData(bytesOf({1, 2, 3}))};
  const auto whole = require(pipeline::checkProgram(asBytes(file), files));
  EXPECT_TRUE(whole.ok()) << whole.problems[0];
}

TEST(ExternalData, ContradictionsAreRefused) {
  pte::Program program = constantProgram(true);
  auto& tensor = std::get<pte::Tensor>(program.methods[0].values[0]);
  tensor.extra->name.clear();
  EXPECT_THAT(pte::writeProgram(program).error().str(), HasSubstr("no name"));
  tensor.extra->name = "weight";
  tensor.allocation->offset = 32;
  EXPECT_THAT(pte::writeProgram(program).error().str(), HasSubstr("reaches beyond"));
  tensor.allocation->offset = 16;
  tensor.extra->deviceType = 1;
  const auto file = require(pte::writeProgram(program));
  device::RunOptions options;
  options.tensorData = {weightData(bytesOf({1, 2, 3}))};
  EXPECT_THAT(device::runProgram(asBytes(file), {}, options).error().str(), HasSubstr("another device"));
}

TEST(ProgramInputs, ScalarsKeepTheirExportedValues) {
  pte::Program program;
  pte::MethodBuilder builder(program);
  const pte::ValueId x = builder.input(pte::ScalarType::Float32, {2});
  const pte::ValueId y = builder.activation(pte::ScalarType::Float32, {2});
  const pte::ValueId factor = builder.real(2.5);
  builder.kernel("aten::mul.Scalar_out", {x, factor, y});
  builder.output(y);
  ASSERT_TRUE(builder.finish().ok());
  program.methods[0].inputs = {factor, x};
  const auto file = require(pte::writeProgram(program));
  const std::vector<Tensor> inputs{Tensor::from({2}, std::vector<float>{1.0F, -4.0F})};
  const auto outcome = require(device::runProgram(asBytes(file), inputs, {}));
  EXPECT_EQ(outcome.outputs[0].as<float>()[1], -10.0F);
}

TEST(ExternalData, DelegatesFindCommandsAndConstantsByKey) {
  test::SmallProgram npuProgram("ethos-u55-128");
  const npu::KernelOperation op =
      npuProgram.copy(1, 1, 16, npu::ElementType::Int8, std::vector<int64_t>(16, 0));
  npuProgram.add(op);
  npuProgram.add(npu::Stop{});
  const auto payload = require(npu::buildPayload(npuProgram.target(), npuProgram.words()));
  pte::DelegateBlob blob;
  blob.payloadKey = std::string(64, 'p');
  blob.constantsKey = std::string(64, 'c');
  blob.scratchBytes = static_cast<uint32_t>(npuProgram.arena().size());
  blob.inputs.push_back(pte::BlobIo::of({1, 16}, 1, static_cast<int64_t>(op.ifm.base[0])));
  blob.outputs.push_back(pte::BlobIo::of({1, 16}, 1, static_cast<int64_t>(op.ofm.base[0])));

  pte::Program program;
  pte::MethodBuilder builder(program);
  const pte::ValueId x = builder.input(pte::ScalarType::Int8, {1, 16});
  const pte::ValueId y = builder.activation(pte::ScalarType::Int8, {1, 16});
  pte::Delegate delegate;
  delegate.id = "EthosUBackend";
  delegate.blob = pte::buildDelegateBlob(blob);
  delegate.specs = pte::ethosUCompileSpecs({"ethos-u55-128", "", "", true});
  builder.delegate(delegate, std::vector{x}, std::vector{y});
  builder.output(y);
  ASSERT_TRUE(builder.finish().ok());
  const auto file = require(pte::writeProgram(program));

  pte::TensorData data;
  const ByteSpan bytes = std::as_bytes(std::span(payload));
  data.entries.push_back({blob.payloadKey, std::nullopt, {bytes.begin(), bytes.end()}});
  data.entries.push_back({blob.constantsKey, std::nullopt, pte::ByteVector(16)});
  device::RunOptions options;
  options.tensorData = {data};
  const Tensor input =
      Tensor::from({1, 16}, std::vector<int8_t>{1, 2, 3, 4, 5, 6, 7, 8, -1, -2, -3, -4, -5, -6, -7, -8});
  const auto outcome = require(device::runProgram(asBytes(file), std::vector<Tensor>{input}, options));
  for (int64_t i = 0; i < 16; ++i) EXPECT_EQ(outcome.outputs[0].integerAt(i), input.integerAt(i));
  EXPECT_FALSE(device::runProgram(asBytes(file), std::vector<Tensor>{input}, {}).ok());
}

}  // namespace
}  // namespace carina
