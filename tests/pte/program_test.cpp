// SPDX-License-Identifier: Apache-2.0
// The container round-trips through values and bytes, and programs that a loader would refuse are not
// written.
#include <gtest/gtest.h>

#include <cstring>

#include "base/file.hpp"
#include "pte/delegate_blob.hpp"
#include "pte/method_builder.hpp"
#include "pte/shared_parts.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"

namespace carina::pte {
namespace {

ByteVector pattern(size_t size, int seed) {
  ByteVector bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + static_cast<size_t>(seed));
  return bytes;
}
Delegate delegateOf(int seed, bool inSegment) {
  DelegateBlob blob;
  blob.payload = pattern(48, seed);
  blob.constants = pattern(100, seed + 1);
  blob.scratchBytes = 256;
  blob.inputs = {BlobIo::of({1, 8}, 1, 0)};
  blob.outputs = {BlobIo::of({1, 8}, 1, 16)};
  return {"EthosUBackend", buildDelegateBlob(blob), inSegment,
          ethosUCompileSpecs({"ethos-u55-128", "Ethos_U55_High_End_Embedded", "Shared_Sram", false})};
}

/// Every kind of value and instruction, two methods, constants, initial values, named data.
Program everything(bool inSegment) {
  Program program;
  MethodBuilder builder(program);
  const ValueId x = builder.input(ScalarType::Float32, {1, 8});
  const ValueId q = builder.quantize(x, {0.5, 3, -128, 127, ScalarType::Int8}, QuantKernels::CortexM);
  const ValueId y = builder.activation(ScalarType::Int8, {1, 8});
  builder.delegate(delegateOf(1, inSegment), std::vector{q}, std::vector{y});
  const ValueId f =
      builder.dequantize(y, {0.25, 0, -128, 127, ScalarType::Int8}, QuantKernels::QuantizedDecomposed);
  const ValueId c = builder.constant(ScalarType::Float32, {3}, pattern(12, 9));
  builder.constant(ScalarType::Int32, {3}, pattern(12, 9));  // equal bytes are stored once
  const ValueId list = builder.tensors(std::vector{f, c});
  const ValueId out = builder.activation(ScalarType::Float32, {1, 11});
  builder.kernel("aten::cat.out", {list, builder.integer(1), out});
  builder.kernel("aten::view_copy.out",
                 {f, builder.integers(std::vector<int64_t>{2, 4}), builder.view(f, {2, 4})});
  builder.output(out);
  EXPECT_TRUE(builder.finish().ok());

  Method control;
  control.name = "control";
  Tensor state;
  state.type = ScalarType::Int8;
  state.sizes = {8};
  state.dimOrder = {0};
  state.allocation = Allocation{1, 0};
  state.dataIndex = 1;
  state.extra = ExtraTensorInfo{0, "state", false, 1, 2};
  control.values = {Value(true),
                    state,
                    Value(2.5),
                    Value(std::string("same")),
                    DoubleList{{1.0, -2.0}},
                    BoolList{{1, 0, 1}},
                    OptionalTensorList{{1, -1}},
                    None{},
                    Null{}};
  control.inputs = {0};
  control.outputs = {1};
  control.chains.push_back({{}, {}, {JumpFalseCall{0, 2}, MoveCall{1, 1}, FreeCall{1}}});
  control.chains[0].stacktraces = {
      {{"model.py", 12, "forward", "x = x + 1"}, {"main.py", 3, "main", ""}}, {}, {}};
  control.pools = {0, 16};
  control.poolDevices = {{1, 1, 0}};
  control.delegates.push_back(delegateOf(1, inSegment));
  program.methods.push_back(control);
  program.mutableData = {{}, pattern(8, 4)};
  program.namedData = {{"weights", pattern(33, 5)}, {"again", pattern(33, 5)}};
  return program;
}

class RoundTrip : public testing::TestWithParam<bool> {};

TEST_P(RoundTrip, ReadsBackAsTheSameValueAndBytes) {
  const Program program = everything(GetParam());
  const auto file = require(writeProgram(program));
  FileLayout layout;
  const auto read = require(readProgram(asBytes(file), &layout));
  EXPECT_EQ(printProgram(read), printProgram(program));
  EXPECT_EQ(read, program);
  const auto again = require(writeProgram(read));
  EXPECT_EQ(again, file);
  EXPECT_TRUE(layout.extendedHeader);
  EXPECT_EQ(program.constants.size(), 2u);
  // Constants, initial values, the blob if it is in a segment, and the bytes that both keys name.
  EXPECT_EQ(layout.segments.size(), GetParam() ? 4u : 3u);
  for (const auto& segment : layout.segments) EXPECT_EQ((layout.segmentBase + segment.offset) % 128, 0u);
}
INSTANTIATE_TEST_SUITE_P(DelegateInSegment, RoundTrip, testing::Bool());

TEST(PteProgram, FullyDelegatedNeedsNoHeader) {
  Program program;
  MethodBuilder builder(program);
  const ValueId x = builder.input(ScalarType::Int8, {1, 8});
  const ValueId y = builder.activation(ScalarType::Int8, {1, 8});
  const Delegate delegate = delegateOf(3, false);
  builder.delegate(delegate, std::vector{x}, std::vector{y});
  builder.output(y);
  ASSERT_TRUE(builder.finish().ok());
  EXPECT_EQ(program.methods[0].inputStructure, "T2#1#0(T1#1($),D0())");
  EXPECT_EQ(program.methods[0].outputStructure, "$");
  EXPECT_EQ(program.methods[0].pools, (std::vector<int64_t>{0, 32}));
  const auto file = require(writeProgram(program));
  EXPECT_EQ(file.substr(4, 4), "ET12");
  FileLayout layout;
  require(readProgram(asBytes(file), &layout));
  EXPECT_FALSE(layout.extendedHeader);
  ASSERT_EQ(layout.segments.size(), 1u);
  EXPECT_EQ(layout.segments[0].size, 0u);
  // The blob is 16-byte aligned in the file, where the NPU reads it in place.
  const std::string_view blob(reinterpret_cast<const char*>(delegate.blob.data()), delegate.blob.size());
  const size_t at = file.find(blob);
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(at % 16, 0u);
}

TEST(PteProgram, RefusesInvalidPrograms) {
  const auto refused = [](const char* why, auto&& change) {
    Program program = everything(false);
    change(program);
    const std::string error = errorOf(writeProgram(program));
    EXPECT_NE(error.find(why), std::string::npos) << why << ": " << error;
  };
  const auto tensor = [](Program& program) -> Tensor& {
    return std::get<Tensor>(program.methods[0].values[0]);
  };
  refused("not a permutation", [&](Program& p) { tensor(p).dimOrder = {1, 1}; });
  refused("too large sizes", [&](Program& p) { tensor(p).sizes = {-1, 8}; });
  refused("reaches beyond", [&](Program& p) { tensor(p).allocation->offset = 1 << 20; });
  refused("does not exist", [&](Program& p) { tensor(p).allocation->memoryId = 7; });
  refused("not aligned", [&](Program& p) { tensor(p).allocation->offset = 2; });
  refused("names value 99", [](Program& p) { p.methods[0].outputs = {99}; });
  refused("calls operator 9", [](Program& p) {
    p.methods[0].chains[0].instructions.push_back(KernelCall{9, {}});
  });
  refused("jumps to instruction", [](Program& p) {
    p.methods[1].chains[0].instructions[0] = JumpFalseCall{0, 9};
  });
  refused("two methods", [](Program& p) { p.methods[1].name = "forward"; });
  refused("not an earlier tensor", [](Program& p) { p.methods[1].values[6] = OptionalTensorList{{8}}; });
  refused("longer than 99", [](Program& p) { p.methods[0].operators[0].name = std::string(120, 'x'); });
  refused("stored data", [](Program& p) { p.constants.resize(1); });
}

TEST(PteProgram, DamagedFilesAreRefusedOrHarmless) {
  const std::string file = *writeProgram(everything(true));
  for (size_t length = 0; length < file.size(); length += 13) {
    const auto read = readProgram(asBytes(std::string_view(file).substr(0, length)));
    EXPECT_FALSE(read.ok()) << length;
  }
  for (size_t at = 0; at + 4 <= file.size();
       at += 3) {  // whatever happens, nothing is read outside the bytes
    for (uint32_t value : {0u, 0xffffffffu, 0x7fffffffu, 0x10000u}) {
      std::string damaged = file;
      std::memcpy(damaged.data() + at, &value, 4);
      if (const auto read = readProgram(asBytes(damaged))) printProgram(*read);
    }
  }
  EXPECT_NE(readProgram(asBytes("PK\x03\x04 not a program")).error().str().find("ET12"), std::string::npos);
}

TEST(PteProgram, ReadsWhatExecutorchWrites) {
  CARINA_NEED_FIXTURES(fixtures);
  const auto files = test::filesIn(fixtures / "vectors" / "executorch", ".pte");
  ASSERT_FALSE(files.empty());
  for (const auto& path : files) {
    SCOPED_TRACE(path);
    const auto mapped = require(MappedFile::open(path));
    const auto program = require(readProgram(mapped->bytes()));
    EXPECT_TRUE(verifyProgram(program).ok());
    const auto file = require(writeProgram(program));
    const auto read = require(readProgram(asBytes(file)));
    EXPECT_EQ(read, program);
    EXPECT_EQ(*writeProgram(read), file);
    for (const Delegate& delegate : program.methods[0].delegates) {
      const auto blob = require(parseDelegateBlob(delegate.blob));
      EXPECT_EQ(buildDelegateBlob(blob), delegate.blob);
      const EthosUSettings settings = ethosUSettings(delegate.specs);
      EXPECT_NE(path.string().find(settings.target), std::string::npos) << settings.target;
      EXPECT_FALSE(settings.systemConfig.empty());
      EXPECT_FALSE(settings.memoryMode.empty());
    }
  }
}

TEST(DelegateBlob, SettingsRoundTrip) {
  const EthosUSettings settings{"ethos-u85-256", "Ethos_U85_SYS_DRAM_Mid", "Sram_Only", true};
  const auto specs = ethosUCompileSpecs(settings);
  const EthosUSettings read = ethosUSettings(specs);
  EXPECT_EQ(read.target, settings.target);
  EXPECT_EQ(read.systemConfig, settings.systemConfig);
  EXPECT_EQ(read.memoryMode, settings.memoryMode);
  EXPECT_TRUE(read.quantizedIo);
  EXPECT_EQ(specs[0].value, "TOSA-1.0+INT+int16+int4+cf");
}

TEST(DelegateBlob, ExternalBlocksAndErrors) {
  DelegateBlob blob;
  blob.payloadKey = std::string(64, 'a');
  blob.constants = pattern(5, 1);
  const ByteVector bytes = buildDelegateBlob(blob);
  EXPECT_EQ(bytes.size() % 16, 0u);
  const auto read = require(parseDelegateBlob(bytes));
  EXPECT_EQ(read, blob);
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(parseDelegateBlob(ByteSpan(bytes).first(length)).ok()) << length;
  ByteVector twice = bytes;
  std::memcpy(twice.data() + 32, "weight_data\0\0\0\0", 16);
  const std::string repeated = errorOf(parseDelegateBlob(twice));
  EXPECT_NE(repeated.find("twice"), std::string::npos) << repeated;
}

TEST(PteProgram, PartsThatAreSharedTooOftenAreNotCopied) {
  for (const std::string& file : {SharedParts(5000).arguments(), SharedParts(5000).integers()}) {
    const std::string error = errorOf(readProgram(std::as_bytes(std::span(file))));
    EXPECT_NE(error.find("64 times its size"), std::string::npos) << error;
  }
  const std::string small = SharedParts(50).integers();
  EXPECT_TRUE(readProgram(std::as_bytes(std::span(small))).ok());
}

}  // namespace
}  // namespace carina::pte
