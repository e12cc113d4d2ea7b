// SPDX-License-Identifier: Apache-2.0
// Malformed programs and blobs: each gives an error code and text, and none causes accesses outside its
// bytes.
#include <gtest/gtest.h>

#include "format/delegate_blob.hpp"
#include "pte/delegate_blob.hpp"
#include "pte/method_builder.hpp"
#include "pte/shared_parts.hpp"
#include "runtime/program_support.hpp"
#include "support/require.hpp"

namespace carina::rt {
namespace {

using pte::ValueId;
using PteType = pte::ScalarType;

pte::DelegateBlob goodBlob() {
  pte::DelegateBlob blob;
  const uint32_t words[9] = {0x31504f43, 0x00100001, 0x00001807, 0x10060000, 5, 5, 5, 0x00010002, 0xffff0000};
  blob.payload.assign(reinterpret_cast<const std::byte*>(words),
                      reinterpret_cast<const std::byte*>(words) + sizeof(words));
  blob.constants.resize(20);
  blob.scratchBytes = 64;
  blob.inputs = {pte::BlobIo::of({4}, 1, 0)};
  blob.outputs = {pte::BlobIo::of({4}, 1, 16)};
  return blob;
}

/// Delegate, kernel, constant, lists and a jump; in a segment, so that there is an extended header.
pte::Program sample(bool inSegment = true) {
  pte::Program program;
  pte::MethodBuilder builder(program);
  const ValueId x = builder.input(PteType::Float32, {4});
  const ValueId q = builder.quantize(x, {0.5, 0, -128, 127, PteType::Int8}, pte::QuantKernels::CortexM);
  const ValueId d = builder.activation(PteType::Int8, {4});
  builder.delegate({"EthosUBackend", pte::buildDelegateBlob(goodBlob()), inSegment,
                    pte::ethosUCompileSpecs({"ethos-u55-128", "", "", false})},
                   std::vector{q}, std::vector{d});
  const std::byte bytes[4] = {};
  builder.constant(PteType::Int8, {4}, bytes);
  builder.tensors(std::vector{q, d});
  const ValueId p = builder.activation(PteType::Int8, {4});
  builder.kernel("aten::permute_copy.out", {d, builder.integers(std::vector<int64_t>{0}), p});
  builder.output(p);
  EXPECT_TRUE(builder.finish().ok());
  pte::Method& method = program.methods[0];
  method.values.emplace_back(true);
  method.chains[0].instructions.emplace_back(
      pte::JumpFalseCall{static_cast<int32_t>(method.values.size() - 1), 3});
  return program;
}
std::string write(const pte::Program& program) {
  return require(pte::writeProgram(program));
}

/// Does everything that is possible with a program without an NPU.
Status exercise(const std::string& bytes) {
  Aligned file(bytes);
  Program program;
  CARINA_RT_TRY(Program::load(file.span(), &program));
  CARINA_RT_TRY(program.verify());
  EthosUDelegate npu(nullptr);
  Backend* backends[] = {&npu};
  Environment environment;
  environment.kernels = allKernels();
  environment.backends = Span<Backend* const>(backends);
  environment.maxInstructions = 1000;
  for (uint32_t index = 0; index < program.methodCount(); ++index) {
    Requirements needs;
    CARINA_RT_TRY(Method::require(program, index, environment, &needs));
    if (needs.methodBytes > 1 << 20 || needs.temporaryBytes > 1 << 20 || needs.poolCount > 64)
      return failure(Code::OutOfMemory, "too much");
    Aligned memory(needs.methodBytes), temporary(needs.temporaryBytes);
    std::vector<std::unique_ptr<Aligned>> pools;
    std::vector<MutableBytes> spans;
    for (uint32_t i = 0; i < needs.poolCount; ++i) {
      size_t size = 0;
      CARINA_RT_TRY(Method::poolBytes(program, index, i, &size));
      if (size > 1 << 20) return failure(Code::OutOfMemory, "too much");
      pools.push_back(std::make_unique<Aligned>(size));
      spans.push_back(pools.back()->span());
    }
    Method method;
    CARINA_RT_TRY(
        method.load(program, index, environment,
                    {memory.span(), Span<MutableBytes>(spans.data(), spans.size()), temporary.span()}));
    const Status status = method.execute();
    if (status.code != Code::InvalidState) CARINA_RT_TRY(status);  // the delegate has no driver here
  }
  return Status{};
}

TEST(Malformed, TheSampleItselfIsValid) {
  const Status status = exercise(write(sample()));
  EXPECT_TRUE(status.ok()) << textOf(status);
}

TEST(Malformed, Truncated) {
  const std::string file = write(sample());
  for (size_t length = 0; length < file.size(); ++length) {
    const Status status = exercise(file.substr(0, length));
    EXPECT_FALSE(status.ok()) << length;
    EXPECT_NE(status.what, nullptr);
  }
}

TEST(Malformed, AnyWordOverwritten) {
  for (const bool inSegment : {false, true}) {
    const std::string file = write(sample(inSegment));
    for (size_t at = 0; at + 4 <= file.size(); ++at) {
      for (const uint32_t value : {0u, 1u, 0xffffffffu, 0x7ffffff0u, 0x80000000u, 0x100u}) {
        std::string damaged = file;
        std::memcpy(damaged.data() + at, &value, 4);
        const Status status = exercise(damaged);
        EXPECT_TRUE(status.ok() || status.what != nullptr);
      }
    }
  }
}

TEST(Malformed, Misaligned) {
  const std::string file = write(sample());
  Aligned shifted(file, 8);
  Program program;
  EXPECT_EQ(Program::load(shifted.span(), &program).code, Code::Misaligned);
}

TEST(Malformed, EmptyListsMayBeAnywhere) {
  for (const size_t length : {1, 4, 8, 12}) {  // shifts everything that follows
    pte::Program program = sample(false);
    auto& values = program.methods[0].values;
    values.emplace_back(std::string(length, 'x'));
    values.emplace_back(pte::IntList{});
    values.emplace_back(pte::DoubleList{});
    const Status expected = exercise(write(sample(false)));
    EXPECT_EQ(exercise(write(program)).code, expected.code);
  }
}

TEST(Malformed, NotAProgram) {
  std::string file = write(sample());
  file[4] = 'B';
  EXPECT_EQ(exercise(file).code, Code::NotAProgram);
  EXPECT_EQ(exercise("short").code, Code::Truncated);
}

/// Replaces `from`, which occurs once, in the written bytes.
std::string patched(const std::string& file, const std::string& from, const std::string& to) {
  const size_t at = file.find(from);
  EXPECT_NE(at, std::string::npos);
  EXPECT_EQ(file.find(from, at + 1), std::string::npos) << "ambiguous patch";
  std::string result = file;
  result.replace(at, from.size(), to);
  return result;
}
std::string words(std::initializer_list<int32_t> values) {
  std::string text;
  for (int32_t value : values) text.append(reinterpret_cast<const char*>(&value), 4);
  return text;
}

TEST(Malformed, OversizedTensor) {
  pte::Program program = sample();
  auto& tensor = std::get<pte::Tensor>(program.methods[0].values[0]);
  tensor.sizes = {1, 1, 4, 1};
  tensor.dimOrder = {0, 1, 2, 3};
  const std::string file = write(program);
  const std::string sizes = words({4, 1, 1, 4, 1});
  EXPECT_EQ(exercise(patched(file, sizes, words({4, 0x10000, 0x10000, 0x10000, 0x10000}))).code,
            Code::Corrupt);
  EXPECT_EQ(exercise(patched(file, sizes, words({4, 1, 1, -4, 1}))).code, Code::Corrupt);
  EXPECT_EQ(exercise(patched(file, sizes, words({4, 1, 1, 4000, 1}))).code, Code::Corrupt)
      << "beyond its pool";
}

TEST(Malformed, CyclicList) {
  pte::Program program = sample();
  program.methods[0].values.emplace_back(pte::TensorList{{0, 0, 0, 0, 0, 0, 0}});
  const auto self = static_cast<int32_t>(program.methods[0].values.size() - 1);
  const std::string file = write(program);
  const Status status =
      exercise(patched(file, words({7, 0, 0, 0, 0, 0, 0, 0}), words({7, 0, 0, 0, self, 0, 0, 0})));
  EXPECT_EQ(status.code, Code::Corrupt);
  EXPECT_NE(textOf(status).find("no earlier tensor"), std::string::npos);
}

TEST(Malformed, DynamicShapesAreRefused) {
  pte::Program program = sample();
  std::get<pte::Tensor>(program.methods[0].values[0]).dynamism = pte::ShapeDynamism::DynamicBound;
  const Status status = exercise(write(program));
  EXPECT_EQ(status.code, Code::Unsupported);
  EXPECT_NE(textOf(status).find("dynamic shape"), std::string::npos);
}

/// Prepares one blob as the delegate does at load time.
Status prepare(const pte::ByteVector& bytes) {
  class NoData final : public NamedData {
   public:
    ~NoData() = default;
    Status find(Text, Bytes*) const override { return failure(Code::NotFound, "no named data of this key"); }
  } none;
  Aligned blob(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  EthosUDelegate npu(nullptr);
  std::vector<uint64_t> state(npu.stateBytes() / 8 + 1);
  size_t temporary = 0;
  return npu.prepare(blob.span(), none, state.data(), &temporary);
}

TEST(Malformed, DelegateBlobs) {
  const pte::ByteVector good = pte::buildDelegateBlob(goodBlob());
  ASSERT_TRUE(prepare(good).ok());
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(prepare(pte::ByteVector(good.begin(), good.begin() + static_cast<ptrdiff_t>(length))).ok())
        << length;
  }
  const auto refused = [](const char* why, auto&& change) {
    pte::DelegateBlob blob = goodBlob();
    change(blob);
    const Status status = prepare(pte::buildDelegateBlob(blob));
    EXPECT_FALSE(status.ok()) << why;
    EXPECT_NE(textOf(status).find(why), std::string::npos) << textOf(status);
  };
  refused("beyond the scratch arena", [](pte::DelegateBlob& b) { b.inputs[0].offset = 61; });
  refused("beyond the scratch arena", [](pte::DelegateBlob& b) { b.outputs[0].offset = -16; });
  refused("out of range",
          [](pte::DelegateBlob& b) { b.outputs[0].shape = {1 << 30, 1 << 30, 1 << 30, 1, 1, 1}; });
  refused("out of range", [](pte::DelegateBlob& b) { b.outputs[0].shape = {0, 5, 1, 1, 1, 1 << 28}; });
  refused("out of range", [](pte::DelegateBlob& b) { b.outputs[0].shape = {0, 1 << 30, 1 << 30, 16, 1, 1}; });
  refused("odd size", [](pte::DelegateBlob& b) { b.outputs[0].elementBytes = 3; });
  refused("neither COP1 nor COP2", [](pte::DelegateBlob& b) { b.payload[0] = std::byte{0}; });
  refused("ends inside", [](pte::DelegateBlob& b) { b.payload.resize(32); });
  refused("no named data", [](pte::DelegateBlob& b) { b.constantsKey = std::string(64, 'k'); });
  refused("not 64 characters", [](pte::DelegateBlob& b) { b.constantsKey = "k"; });
  pte::ByteVector unknown = good;
  std::memcpy(unknown.data() + 32, "cmd_dada", 8);
  EXPECT_NE(textOf(prepare(unknown)).find("unknown name"), std::string::npos);
}

/// Loads a call that stores 4 bytes of the arena to a tensor of `sizes`.
Status loadWithOutput(pte::ScalarType type, const std::vector<int32_t>& sizes) {
  pte::Program program;
  pte::MethodBuilder builder(program);
  const ValueId x = builder.input(PteType::Int8, {4});
  const ValueId d = builder.activation(type, sizes);
  builder.delegate({"EthosUBackend", pte::buildDelegateBlob(goodBlob()), false,
                    pte::ethosUCompileSpecs({"ethos-u55-128", "", "", false})},
                   std::vector{x}, std::vector{d});
  builder.output(d);
  EXPECT_TRUE(builder.finish().ok());
  return exercise(write(program));
}

TEST(Malformed, CallsThatDoNotMatchTheirBlobAreFoundAtLoad) {
  EXPECT_TRUE(loadWithOutput(PteType::Int8, {4}).ok());
  EXPECT_TRUE(loadWithOutput(PteType::Int16, {2}).ok());
  EXPECT_TRUE(loadWithOutput(PteType::Int8, {3}).ok()) << "padding is dropped";
  EXPECT_TRUE(loadWithOutput(PteType::Int8, {8}).ok()) << "nibbles";
  EXPECT_EQ(loadWithOutput(PteType::UInt8, {8}).code, Code::ShapeMismatch);
  EXPECT_EQ(loadWithOutput(PteType::Int8, {5}).code, Code::ShapeMismatch);
  EXPECT_EQ(loadWithOutput(PteType::Int8, {0}).code, Code::ShapeMismatch);
  EXPECT_EQ(loadWithOutput(PteType::Int8, {1 << 10, 1 << 9}).code, Code::ShapeMismatch);
}

/// A method with an input, a constant, two activations and an output, and one move.
Status withMove(size_t from, size_t to) {
  pte::Program program;
  pte::MethodBuilder builder(program);
  const std::byte bytes[4] = {};
  const ValueId input = builder.input(PteType::Int8, {4});
  const ValueId constant = builder.constant(PteType::Int8, {4}, bytes);
  const ValueId a = builder.activation(PteType::Int8, {4});
  const ValueId b = builder.activation(PteType::Int8, {4});
  const ValueId output = builder.activation(PteType::Int8, {4});
  builder.kernel("aten::relu.out", {input, a});
  builder.kernel("aten::relu.out", {input, b});
  builder.kernel("aten::relu.out", {a, output});
  builder.output(output);
  EXPECT_TRUE(builder.finish().ok());
  const ValueId ids[] = {input, constant, a, b, output};
  program.methods[0].chains[0].instructions.emplace_back(
      pte::MoveCall{static_cast<int32_t>(ids[from]), static_cast<int32_t>(ids[to])});
  return exercise(write(program));
}

TEST(Malformed, MovesMustNotOverwriteInputsOutputsAndConstants) {
  constexpr size_t kInput = 0, kConstant = 1, kA = 2, kB = 3, kOutput = 4;
  const auto moved = [](size_t from, size_t to) { return textOf(withMove(from, to)); };
  EXPECT_NE(moved(kA, kInput).find("a move overwrites an input"), std::string::npos) << moved(kA, kInput);
  EXPECT_NE(moved(kA, kOutput).find("a move overwrites an output"), std::string::npos);
  EXPECT_NE(moved(kA, kConstant).find("a move overwrites a constant"), std::string::npos);
  // Moves out of them are allowed: the value is checked again when it is used.
  EXPECT_EQ(withMove(kA, kB).what, nullptr);
  EXPECT_EQ(withMove(kConstant, kB).what, nullptr);
  EXPECT_EQ(withMove(kOutput, kB).what, nullptr);
}

TEST(Malformed, ConstantsAreNoInputs) {
  pte::Program program = sample();
  pte::Method& method = program.methods[0];
  for (size_t i = 0; i < method.values.size(); ++i) {
    const auto* tensor = std::get_if<pte::Tensor>(&method.values[i]);
    if (tensor != nullptr && tensor->dataIndex != 0) method.inputs.push_back(static_cast<int32_t>(i));
  }
  ASSERT_EQ(method.inputs.size(), 2u);
  const Status status = exercise(write(program));
  EXPECT_NE(textOf(status).find("an input of the method is a constant"), std::string::npos) << textOf(status);
}

TEST(Malformed, SegmentsDoNotBeginInsideTheProgram) {
  std::string file = write(sample());
  const uint64_t base = 16;
  std::memcpy(file.data() + 8 + 16, &base, sizeof(base));  // segment_base_offset of the extended header
  const Status status = exercise(file);
  EXPECT_EQ(status.code, Code::Corrupt);
  EXPECT_NE(textOf(status).find("segments begin inside"), std::string::npos) << textOf(status);
}

TEST(Malformed, PartsThatAreSharedTooOften) {
  for (const std::string& file : {pte::SharedParts(3000).arguments(), pte::SharedParts(3000).integers(),
                                  pte::SharedParts(3000).names()}) {
    const Status status = exercise(file);
    EXPECT_EQ(status.code, Code::Unsupported) << textOf(status);
    EXPECT_NE(textOf(status).find("more steps than its size allows"), std::string::npos);
  }
  // A small number of uses is accepted.
  EXPECT_EQ(exercise(pte::SharedParts(10).integers()).what, nullptr);
}

}  // namespace
}  // namespace carina::rt
