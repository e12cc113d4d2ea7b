// SPDX-License-Identifier: Apache-2.0
// When each event of a program starts and ends: kernels in sequence, NPU jobs in the model's cycles.
#include <gtest/gtest.h>

#include "base/file.hpp"
#include "device/run.hpp"
#include "npu/isa/payload.hpp"
#include "npu/model/small_program.hpp"
#include "pte/delegate_blob.hpp"
#include "pte/method_builder.hpp"
#include "support/require.hpp"

namespace carina {
namespace {

/// A copy of 16 bytes on the NPU.
pte::Delegate copyDelegate() {
  test::SmallProgram program("ethos-u55-128");
  const npu::KernelOperation op = program.copy(1, 1, 16, npu::ElementType::Int8, std::vector<int64_t>(16, 0));
  program.add(op);
  program.add(npu::Stop{});
  const auto payload = require(npu::buildPayload(program.target(), program.words()));
  const ByteSpan bytes = std::as_bytes(std::span(payload));
  pte::DelegateBlob blob;
  blob.payload = {bytes.begin(), bytes.end()};
  blob.constants = pte::ByteVector(16);
  blob.scratchBytes = static_cast<uint32_t>(program.arena().size());
  blob.inputs.push_back(pte::BlobIo::of({1, 16}, 1, static_cast<int64_t>(op.ifm.base[0])));
  blob.outputs.push_back(pte::BlobIo::of({1, 16}, 1, static_cast<int64_t>(op.ofm.base[0])));
  return {"EthosUBackend", pte::buildDelegateBlob(blob), false,
          pte::ethosUCompileSpecs({"ethos-u55-128", "", "", false})};
}

TEST(Profile, RecordsWhenEverythingStartsAndEnds) {
  pte::Program program;
  pte::MethodBuilder builder(program);
  const pte::ValueId x = builder.input(pte::ScalarType::Int8, {1, 16});
  const pte::ValueId y = builder.activation(pte::ScalarType::Int8, {1, 16});
  const pte::ValueId z = builder.activation(pte::ScalarType::Int8, {1, 16});
  builder.delegate(copyDelegate(), std::vector{x}, std::vector{y});
  builder.kernel("aten::neg.out", {y, z});
  builder.output(z);
  ASSERT_TRUE(builder.finish().ok());
  const auto file = require(pte::writeProgram(program));
  device::RunOptions options;
  options.keepEvents = true;
  const auto outcome = require(
      device::runProgram(asBytes(file), std::vector<Tensor>{Tensor::zeros(DType::Int8, {1, 16})}, options));

  const std::vector<pte::ProfileEvent>& events = outcome.stats.events;
  std::vector<std::string> names;
  names.reserve(events.size());
  for (const pte::ProfileEvent& event : events) names.push_back(event.name);
  ASSERT_EQ(names, (std::vector<std::string>{"NPU operation", "+EthosUBackend::execute()NPU", "DELEGATE_CALL",
                                             "native_call_neg.out", "OPERATOR_CALL", "Method::execute"}));
  EXPECT_EQ(events[0].delegatePlace.substr(0, 15), "operation at 0x");
  EXPECT_EQ(events[2].instruction, 0);
  EXPECT_EQ(events[4].instruction, 1);
  EXPECT_EQ(events[5].instruction, -1);
  // 500 MHz: two nanoseconds a cycle.
  const auto cycles = static_cast<uint64_t>(outcome.stats.npuCycles);
  EXPECT_GT(cycles, 0u);
  EXPECT_EQ(events[2].end - events[2].start, 2 * cycles);
  EXPECT_GE(events[3].start, events[2].end);
  EXPECT_GE(events[4].end, events[4].start);
  EXPECT_GE(events[5].end, events[4].end);

  options.keepEvents = false;
  const auto without = require(
      device::runProgram(asBytes(file), std::vector<Tensor>{Tensor::zeros(DType::Int8, {1, 16})}, options));
  EXPECT_TRUE(without.stats.events.empty());
}

}  // namespace
}  // namespace carina
