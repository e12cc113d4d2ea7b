// SPDX-License-Identifier: Apache-2.0
// Loading and executing methods: memory, control flow, delegates mixed with kernels, errors and their texts.
#include <gmock/gmock.h>

#include <span>

#include "pte/method_builder.hpp"
#include "runtime/program_support.hpp"
#include "support/require.hpp"

namespace carina::rt {
namespace {

using pte::MethodBuilder;
using pte::ValueId;
using PteType = pte::ScalarType;
using testing::ElementsAreArray;

pte::Delegate plusOne() {
  return {"PlusOne", pte::ByteVector(8), false, {}};
}
std::string programBytes(const pte::Program& program) {
  return require(pte::writeProgram(program));
}

/// float -> quantize -> delegate -> relu -> dequantize -> float.
pte::Program mixed(pte::MemoryPlanOptions plan = {}) {
  pte::Program program;
  MethodBuilder builder(program);
  const ValueId x = builder.input(PteType::Float32, {4});
  const pte::QuantParams params{0.5, 0, -128, 127, PteType::Int8};
  const ValueId q = builder.quantize(x, params, pte::QuantKernels::CortexM);
  const ValueId d = builder.activation(PteType::Int8, {4});
  builder.delegate(plusOne(), std::vector{q}, std::vector{d});
  const ValueId r = builder.activation(PteType::Int8, {4});
  builder.kernel("aten::relu.out", {d, r});
  builder.output(builder.dequantize(r, params, pte::QuantKernels::QuantizedDecomposed));
  EXPECT_TRUE(builder.finish(plan).ok());
  return program;
}
const float kInput[4] = {1.0f, -3.0f, 0.2f, 2.0f};
const float kExpected[4] = {1.5f, 0.0f, 0.5f, 2.5f};
std::span<const float> floatsAt(const void* data) {
  return {static_cast<const float*>(data), 4};
}
Bytes inputBytes() {
  return {reinterpret_cast<const uint8_t*>(kInput), sizeof(kInput)};
}

TEST(Method, KernelsAndDelegates) {
  Loaded loaded(programBytes(mixed()));
  ASSERT_TRUE(loaded.open().ok());
  EXPECT_EQ(loaded.needs.temporaryBytes, 32u);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(loaded.method.setInput(0, inputBytes()).ok());
    const Status status = loaded.method.execute();
    ASSERT_TRUE(status.ok()) << textOf(status);
    EXPECT_THAT(floatsAt(loaded.method.output(0).tensor.data), ElementsAreArray(kExpected));
  }
  EXPECT_EQ(loaded.plusOne.calls, 3);
}

TEST(Method, MemoryIsExact) {
  const std::string file = programBytes(mixed());
  EXPECT_EQ(Loaded(file).open(0, 1, 0, 0).code, Code::OutOfMemory);
  EXPECT_EQ(Loaded(file).open(0, 0, 1, 0).code, Code::OutOfMemory);
  EXPECT_EQ(Loaded(file).open(0, 0, 0, 1).code, Code::OutOfMemory);
}

TEST(Method, UnplannedInputsAndOutputsUseTheCallersMemory) {
  pte::MemoryPlanOptions plan;
  plan.planInputs = plan.planOutputs = false;
  Loaded loaded(programBytes(mixed(plan)));
  ASSERT_TRUE(loaded.open().ok());
  EXPECT_EQ(loaded.method.execute().code, Code::InvalidState) << "input not set";
  alignas(16) float out[4] = {};
  ASSERT_TRUE(loaded.method.setInput(0, inputBytes()).ok());
  ASSERT_TRUE(loaded.method.bindOutput(0, {reinterpret_cast<uint8_t*>(out), sizeof(out)}).ok());
  ASSERT_TRUE(loaded.method.execute().ok());
  EXPECT_THAT(out, ElementsAreArray(kExpected));
  Loaded planned(programBytes(mixed()));
  ASSERT_TRUE(planned.open().ok());
  EXPECT_EQ(planned.method.bindOutput(0, {reinterpret_cast<uint8_t*>(out), sizeof(out)}).code,
            Code::InvalidState);
  EXPECT_EQ(planned.method.setInput(0, inputBytes().size > 4 ? Bytes(inputBytes().data, 4) : Bytes()).code,
            Code::ShapeMismatch);
  EXPECT_EQ(planned.method.setInput(1, inputBytes()).code, Code::InvalidArgument);
}

TEST(Method, ErrorsNameWhatIsMissing) {
  pte::Program program = mixed();
  program.methods[0].operators[1].name = "aten::erfinv";
  Loaded noKernel(programBytes(program));
  const Status kernel = noKernel.open();
  EXPECT_EQ(kernel.code, Code::MissingKernel);
  EXPECT_EQ(textOf(kernel),
            "missing kernel: the kernel table has no kernel for an operator (aten::erfinv, at 1)");
  Loaded noBackend(programBytes(mixed()));
  noBackend.withPlusOne = false;
  const Status backend = noBackend.open();
  EXPECT_EQ(backend.code, Code::MissingBackend);
  EXPECT_NE(textOf(backend).find("PlusOne"), std::string::npos);
  program = mixed();
  program.methods[0].delegates[0].blob[0] = std::byte{0xff};
  EXPECT_EQ(Loaded(programBytes(program)).open().code, Code::CorruptDelegate);
}

/// relu of an input or of a constant, chosen by a boolean tensor input.
TEST(Method, JumpsAndMoves) {
  pte::Program program;
  MethodBuilder builder(program, "choose");
  const ValueId condition = builder.input(PteType::Bool, {2});
  const int8_t stored[3] = {4, -5, 6};
  const ValueId c = builder.constant(PteType::Int8, {3}, std::as_bytes(std::span(stored)));
  const ValueId a = builder.input(PteType::Int8, {3});
  const ValueId which = builder.activation(PteType::Int8, {3});
  const ValueId out = builder.activation(PteType::Int8, {3});
  builder.kernel("aten::relu.out", {which, out});
  builder.output(out);
  ASSERT_TRUE(builder.finish().ok());
  pte::Method& method = program.methods[0];
  const pte::Instruction relu = method.chains[0].instructions[0];
  method.values.emplace_back(false);
  const auto never = static_cast<int32_t>(method.values.size() - 1);
  method.chains[0].instructions = {pte::JumpFalseCall{condition, 3}, pte::MoveCall{a, which},
                                   pte::JumpFalseCall{never, 4}, pte::MoveCall{c, which}, relu};
  const std::string file = programBytes(program);
  for (const uint8_t second : {uint8_t{0}, uint8_t{1}}) {
    Loaded loaded(file);
    ASSERT_TRUE(loaded.open().ok());
    const uint8_t flags[2] = {1, second};
    const int8_t given[3] = {-1, 2, -3};
    ASSERT_TRUE(loaded.method.setInput(0, {flags, 2}).ok());
    ASSERT_TRUE(loaded.method.setInput(1, {reinterpret_cast<const uint8_t*>(given), 3}).ok());
    const Status status = loaded.method.execute();
    ASSERT_TRUE(status.ok()) << textOf(status);
    const int8_t expected[2][3] = {{4, 0, 6}, {0, 2, 0}};  // any false element chooses the constant
    EXPECT_EQ(0, std::memcmp(loaded.method.output(0).tensor.data, expected[second], 3));
  }
}

TEST(Method, EndlessLoopsAreStopped) {
  pte::Program program;
  pte::Method method;
  method.values = {false};
  method.chains.push_back({{}, {}, {pte::JumpFalseCall{0, 0}}});
  program.methods.push_back(method);
  Loaded loaded(programBytes(program));
  ASSERT_TRUE(loaded.open().ok());
  EXPECT_EQ(loaded.method.execute().code, Code::InstructionLimit);
}

TEST(Method, ConstantsAreReadOnly) {
  pte::Program program = mixed();
  MethodBuilder builder(program, "bad");
  const ValueId x = builder.input(PteType::Int8, {2});
  const std::byte bytes[2] = {};
  const ValueId c = builder.constant(PteType::Int8, {2}, bytes);
  builder.kernel("aten::relu.out", {x, c});
  ASSERT_TRUE(builder.finish().ok());
  Loaded loaded(programBytes(program));
  uint32_t index = 0;
  ASSERT_TRUE(loaded.program.findMethod("bad", &index).ok());
  EXPECT_EQ(index, 1u);
  EXPECT_EQ(loaded.program.findMethod("worse", &index).code, Code::NotFound);
  ASSERT_TRUE(loaded.open(1).ok());
  const Status status = loaded.method.execute();
  EXPECT_EQ(status.code, Code::InvalidArgument);
  EXPECT_NE(textOf(status).find("aten::relu"), std::string::npos) << "the operator is named";
}

TEST(Method, InitialValuesFillPlannedMemory) {
  pte::Program program;
  pte::Method method;
  pte::Tensor state;
  state.type = PteType::Int16;
  state.sizes = {2};
  state.dimOrder = {0};
  state.allocation = pte::Allocation{1, 16};
  state.dataIndex = 1;
  method.values = {state};
  method.outputs = {0};
  method.chains.emplace_back();
  method.pools = {0, 32};
  program.methods.push_back(method);
  program.mutableData = {{}, {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}}};
  Loaded loaded(programBytes(program));
  ASSERT_TRUE(loaded.open().ok());
  ASSERT_TRUE(loaded.method.execute().ok());
  EXPECT_EQ(loaded.method.output(0).tensor.as<int16_t>()[1], 0x0403);
}

TEST(Method, ReportsEvents) {
  struct Events final : Profiler {
    ~Events() = default;
    void event(EventKind kind, uint32_t instruction, Text name) override {
      log += std::to_string(static_cast<int>(kind)) + std::to_string(instruction) +
             std::string(name.data, name.size) + " ";
    }
    std::string log;
  } events;
  Loaded loaded(programBytes(mixed()));
  loaded.environment.profiler = &events;
  ASSERT_TRUE(loaded.open().ok());
  ASSERT_TRUE(loaded.method.setInput(0, inputBytes()).ok());
  ASSERT_TRUE(loaded.method.execute().ok());
  EXPECT_EQ(events.log,
            "40forward 00cortex_m::quantize_per_tensor 10cortex_m::quantize_per_tensor 21PlusOne 31PlusOne "
            "02aten::relu 12aten::relu 03quantized_decomposed::dequantize_per_tensor "
            "13quantized_decomposed::dequantize_per_tensor 50forward ");
}

TEST(Status, TextIsTruncated) {
  const Status status =
      failureNamed(Code::NotFound, "the program has no method of this name", "forward", 7, 12);
  char small[10];
  EXPECT_EQ(statusText(status, small, sizeof(small)), 9u);
  EXPECT_STREQ(small, "not found");
  EXPECT_EQ(textOf(status), "not found: the program has no method of this name (forward, at 12)");
}

}  // namespace
}  // namespace carina::rt
