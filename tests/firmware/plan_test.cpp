// SPDX-License-Identifier: Apache-2.0
// The contents of images, and why programs do not fit a platform. Nothing here needs the cross compiler.
#include "firmware/plan.hpp"

#include <gmock/gmock.h>

#include <cstring>

#include "base/file.hpp"
#include "images.hpp"
#include "npu/targets/target.hpp"
#include "pte/method_builder.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::firmware {
namespace {

using testing::HasSubstr;

Result<Plan> planFor(const std::string& program, const PlanOptions& options) {
  return makePlan(asBytes(program), options);
}

/// A program that only copies: one kernel, no delegate. Its tensors hold `elements` floats.
std::string copyProgram(int32_t elements, const std::string& op = "aten::clone.out",
                        const std::vector<uint8_t>& dimOrder = {}) {
  pte::Program program;
  pte::MethodBuilder builder(program);
  const std::vector<int32_t> sizes = {1, 2, elements / 2};
  const pte::ValueId x = builder.input(pte::ScalarType::Float32, sizes, dimOrder);
  const pte::ValueId y = builder.activation(pte::ScalarType::Float32, sizes, dimOrder);
  builder.kernel(op, {x, builder.boolean(false), builder.null(), y});
  builder.output(y);
  EXPECT_TRUE(builder.finish().ok());
  return require(pte::writeProgram(program));
}

TEST(Plan, CpuProgramsHaveNoNpu) {
  PlanOptions options;
  options.platform = "corstone-300";
  const auto plan = require(planFor(copyProgram(64), options));
  EXPECT_EQ(plan.target, "cpu");
  EXPECT_FALSE(plan.machine.has_value());
  EXPECT_EQ(plan.temporaryBytes, 0);
  EXPECT_EQ(plan.kernels, std::vector<std::string>{"aten::clone.out"});
  EXPECT_EQ(plan.regionOf("pools"), "SRAM");
  EXPECT_EQ(plan.regionOf("program"), "DDR");
}

TEST(Plan, PoolsThatExceedTheFastMemoryGoToTheLargeOne) {
  PlanOptions options;
  options.platform = "corstone-300";
  const auto plan = require(planFor(copyProgram(2 << 20), options));
  EXPECT_EQ(plan.regionOf("pools"), "DDR");
}

TEST(Plan, BlocksThatFitNowhereAreNamedWithTheirBytes) {
  PlanOptions options;
  options.platform = "corstone-300";
  EXPECT_THAT(errorOf(planFor(copyProgram(80 << 20), options)),
              HasSubstr("for the pools do not fit: DDR of corstone-300 has 2684"));
}

TEST(Plan, UnknownNamesAreRefusedWithTheKnownOnes) {
  PlanOptions options;
  options.platform = "corstone-1000";
  EXPECT_THAT(errorOf(planFor(copyProgram(64), options)), HasSubstr("platforms: corstone-300, corstone-320"));
  options.platform = "corstone-300";
  options.method = "backward";
  EXPECT_THAT(errorOf(planFor(copyProgram(64), options)), HasSubstr("its methods: forward"));
  options.method = "";
  EXPECT_THAT(errorOf(planFor(copyProgram(64, "aten::nobody.out"), options)),
              HasSubstr("calls aten::nobody.out, for which the runtime has no kernel"));
  EXPECT_FALSE(planFor("no program", options).ok());
}

TEST(Plan, TheNpuMustMatchThePlatform) {
  test::TempDir folder;
  ASSERT_TRUE(compileNetwork("dense", "ethos-u85-256", "", folder / "x.pte").ok());
  auto file = require(MappedFile::open(folder / "x.pte"));
  PlanOptions options;
  options.platform = "corstone-300";
  const auto other = makePlan(file->bytes(), options);
  EXPECT_THAT(errorOf(other),
              HasSubstr("compiled for ethos-u85-256, but corstone-300 has Ethos-U55 or Ethos-U65"));
  EXPECT_THAT(errorOf(other), HasSubstr("choose --platform corstone-320"));
  options.platform = "corstone-320";
  options.npuMacs = 512;
  EXPECT_THAT(errorOf(makePlan(file->bytes(), options)), HasSubstr("give --npu-macs 256"));
  options.npuMacs = 256;
  const auto plan = require(makePlan(file->bytes(), options));
  EXPECT_EQ(plan.target, "ethos-u85-256");
  EXPECT_EQ(plan.regionOf("program"), "SRAM");  // Sram_Only
}

Tensor ramp(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(numElements(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  Tensor tensor = Tensor::uninitialized(DType::Float32, shape);
  std::memcpy(tensor.mutableBytes().data(), values.data(), values.size() * sizeof(float));
  return tensor;
}

TEST(Plan, ArraysArePackedInTheProgramsMemoryOrder) {
  PlanOptions options;
  options.platform = "corstone-300";
  options.inputs = {{"in0", ramp({3, 1, 2, 2})}};
  options.expected = {{"out0", ramp({3, 1, 2, 2})}};
  const auto plan = require(planFor(copyProgram(4, "aten::clone.out", {0, 2, 1}), options));
  EXPECT_EQ(plan.samples, 3u);
  ASSERT_EQ(plan.inputs.at(0).size(), 48u);
  std::vector<float> packed(12);
  std::memcpy(packed.data(), plan.inputs[0].data(), 48);
  EXPECT_EQ(packed, (std::vector<float>{0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11}));
  EXPECT_EQ(plan.expected, plan.inputs);
}

TEST(Plan, ArraysMustFitTheProgram) {
  PlanOptions options;
  options.platform = "corstone-300";
  options.inputs = {{"in0", ramp({1, 2, 3})}};
  EXPECT_THAT(errorOf(planFor(copyProgram(4), options)), HasSubstr("in0"));
  options.inputs = {{"in1", ramp({1, 2, 2})}, {"other", ramp({1})}};
  EXPECT_THAT(errorOf(planFor(copyProgram(4), options)), HasSubstr("array 'in0' is missing"));
  options.inputs = {{"in0", ramp({2, 1, 2, 2})}};
  options.expected = {{"out0", ramp({3, 1, 2, 2})}};
  EXPECT_THAT(errorOf(planFor(copyProgram(4), options)), HasSubstr("hold 3 samples, but the inputs hold 2"));
}

TEST(Plan, TimingAdaptersFollowTheSystemConfiguration) {
  const auto machine =
      require(npu::makeMachine("ethos-u55-128", "Ethos_U55_High_End_Embedded", "Shared_Sram"));
  const TimingAdapterValues sram = timingAdapter(machine, 0), flash = timingAdapter(machine, 1);
  // 8 bytes per cycle, and one byte per cycle: 64-bit words in 4000 cycles.
  EXPECT_EQ(sram.bandwidth, 4000u);
  EXPECT_EQ(flash.bandwidth, 500u);
  EXPECT_EQ(sram.pulseOn + sram.pulseOff, 4000u);
  EXPECT_EQ(sram.readLatency, 32u);
  EXPECT_EQ(flash.readLatency, 64u);
}

}  // namespace
}  // namespace carina::firmware
