// SPDX-License-Identifier: Apache-2.0
// Reading and writing .tosa files: the bytes of the format, names, damaged files, version 0.80.
#include "base/file.hpp"

#include <gtest/gtest.h>

#include <array>
#include <fstream>

#include "ir/printer.hpp"
#include "support/fixtures.hpp"
#include "support/golden.hpp"
#include "support/require.hpp"
#include "tosa/float_rules.hpp"
#include "tosa/graph_helpers.hpp"
#include "tosa/interpreter.hpp"
#include "tosa/vector_files.hpp"
#include "tosa_0_80_generated.h"
#include "tosa_1_x_generated.h"
#include "tosa_io/tosa_reader.hpp"
#include "tosa_io/tosa_writer.hpp"

namespace carina::test {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> vectorsIn(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::path& file : filesIn(folder, ".tosa")) {
    if (file.parent_path() == folder) files.push_back(file);
  }
  return files;
}

fs::path arraysOf(fs::path tosa) {
  return tosa.replace_extension(".npz");
}

TEST(TosaVectors, SelectedVectorsAreBitExactAndRoundTrip) {
  const auto files = vectorsIn(dataDir() / "tosa");
  ASSERT_GE(files.size(), 70u);
  for (const fs::path& file : files) {
    EXPECT_TRUE(reproduces(file, arraysOf(file))) << file;
    EXPECT_TRUE(survivesRoundTrip(file, arraysOf(file))) << file;
  }
}

TEST(TosaVectors, SelectedFloatVectorsAreWithinTolerance) {
  const auto files = vectorsIn(dataDir() / "tosa" / "fp32");
  ASSERT_GE(files.size(), 40u);
  for (const fs::path& file : files) EXPECT_TRUE(withinTolerance(file, arraysOf(file))) << file;
}

TEST(TosaVectors, InvalidGraphsAreRefusedByTheirRule) {
  std::ifstream list(dataDir() / "tosa" / "invalid" / "rules.txt");
  std::string name, rule;
  int count = 0;
  while (list >> name >> rule) {
    const std::string error = errorOf(tosa_io::readTosa(dataDir() / "tosa" / "invalid" / (name + ".tosa")));
    EXPECT_NE(error.find("(" + rule + ")"), std::string::npos) << name << ": " << error;
    ++count;
  }
  EXPECT_GE(count, 80);
}

TEST(TosaVectors, ADifferentResultIsDetected) {
  const fs::path folder = dataDir() / "tosa";
  const auto files = vectorsIn(folder);
  const fs::path abs = *std::find_if(
      files.begin(), files.end(), [](const fs::path& f) { return f.filename().string().starts_with("abs"); });
  const fs::path clz = *std::find_if(
      files.begin(), files.end(), [](const fs::path& f) { return f.filename().string().starts_with("clz"); });
  EXPECT_FALSE(reproduces(abs, arraysOf(clz)));
}

/// y = MUL(RESCALE(x), c).
ir::Graph smallGraph() {
  ir::Graph graph = rescaleGraph({.from = DType::Int8, .to = DType::Int32, .shift = 20, .inputZero = 3}, 4);
  ir::Builder b(graph);
  ir::Value* factor = b.constant(list(DType::Int32, {2}));
  ir::Value* shift = b.constant(list(DType::Int8, {1}));
  const auto op = tosa::Mul::create(b, graph.outputs()[0], factor, shift);
  graph.setOutputs({op.output()});
  return graph;
}

TEST(TosaPrinter, Golden) {
  EXPECT_TRUE(matchesGolden("tosa/rescale_mul.txt", ir::print(smallGraph())));
}

TEST(TosaPrinter, ControlFlowGolden) {
  for (const fs::path& file : vectorsIn(dataDir() / "tosa")) {
    if (!file.filename().string().starts_with("while_loop")) continue;
    const auto graph = require(tosa_io::readTosa(file));
    EXPECT_TRUE(matchesGolden("tosa/while_loop.txt", ir::print(graph)));
    return;
  }
  FAIL() << "no WHILE_LOOP among the vectors";
}

TEST(TosaWriter, NamesConstantsAndAlignment) {
  const auto bytes = require(tosa_io::writeTosa(smallGraph()));
  EXPECT_EQ(bytes.substr(4, 4), "TOSA");
  EXPECT_EQ(bytes, *tosa_io::writeTosa(smallGraph()));  // deterministic
  const auto owner = std::make_shared<const std::string>(bytes);
  const auto graph = require(tosa_io::readTosa(asBytes(*owner), owner));
  for (const auto& constant : graph.constants()) {
    EXPECT_FALSE(constant->name.empty());
    EXPECT_GE(reinterpret_cast<const char*>(constant->constant().bytes().data()), owner->data());
    EXPECT_LT(reinterpret_cast<const char*>(constant->constant().bytes().data()),
              owner->data() + owner->size());
  }
  const auto results = require(tosa::interpret(graph, std::vector<Tensor>{list(DType::Int8, {3, 4, 5, -3})}));
  EXPECT_EQ(valuesOf(results[0]), (std::vector<int64_t>{0, 1024, 2048, -6144}));
}

TEST(TosaWriter, OnlyTosaIsWritten) {
  ir::Graph graph;
  graph.setOutputs({graph.addInput({DType::Float64, {1}}, "x")});
  EXPECT_NE(errorOf(tosa_io::writeTosa(graph)).find("f64"), std::string::npos);
}

TEST(TosaReader, DamagedFilesAreRefused) {
  const std::string bytes = *tosa_io::writeTosa(smallGraph());
  const auto refused = [](std::string text) {
    const auto owner = std::make_shared<const std::string>(std::move(text));
    return !tosa_io::readTosa(asBytes(*owner), owner).ok();
  };
  EXPECT_TRUE(refused(""));
  EXPECT_TRUE(refused("TOSA"));
  EXPECT_TRUE(refused(std::string(64, '\0')));
  for (size_t size = 0; size < bytes.size(); size += 7) EXPECT_TRUE(refused(bytes.substr(0, size))) << size;
  // For any changed byte, reading ends with a graph or an error.
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x5a);
    (void)refused(std::move(changed));
  }
}

namespace fb = tosa_io::wire080;

/// A file of version 0.80: CLAMP(RESCALE(FULLY_CONNECTED(x))).
std::string fileOfVersion080(int minor) {
  flatbuffers::FlatBufferBuilder b;
  std::vector<flatbuffers::Offset<fb::TosaTensor>> tensors;
  const auto tensor = [&](const char* name, const std::vector<int32_t>& shape, fb::DType type,
                          const std::vector<uint8_t>& data = {}) {
    tensors.push_back(fb::CreateTosaTensorDirect(b, name, &shape, type, data.empty() ? nullptr : &data));
  };
  tensor("x", {1, 2}, fb::DType::INT8);
  tensor("w", {2, 2}, fb::DType::INT8, {1, 2, 3, 0xff});  // the last is -1
  tensor("bias", {2}, fb::DType::INT32, {10, 0, 0, 0, 20, 0, 0, 0});
  tensor("sum", {1, 2}, fb::DType::INT32);
  tensor("scaled", {1, 2}, fb::DType::INT8);
  tensor("y", {1, 2}, fb::DType::INT8);
  std::vector<flatbuffers::Offset<fb::TosaOperator>> operators;
  const auto add = [&](fb::Op op, fb::Attribute tag, flatbuffers::Offset<void> attribute,
                       const std::vector<std::string>& inputs, const std::string& output) {
    const auto ins = b.CreateVectorOfStrings(inputs);
    const auto outs = b.CreateVectorOfStrings({output});
    operators.push_back(fb::CreateTosaOperator(b, op, tag, attribute, ins, outs));
  };
  add(fb::Op::CONST, fb::Attribute::NONE, 0, {}, "w");
  add(fb::Op::CONST, fb::Attribute::NONE, 0, {}, "bias");
  add(fb::Op::FULLY_CONNECTED, fb::Attribute::FullyConnectedAttribute,
      fb::CreateFullyConnectedAttribute(b, 1, 0).Union(), {"x", "w", "bias"}, "sum");
  const std::vector<int32_t> multiplier{1 << 30}, shift{31};
  const auto rescale =
      fb::CreateRescaleAttributeDirect(b, 0, -4, &multiplier, &shift, true, true, false, false, false);
  add(fb::Op::RESCALE, fb::Attribute::RescaleAttribute, rescale.Union(), {"sum"}, "scaled");
  add(fb::Op::CLAMP, fb::Attribute::ClampAttribute, fb::CreateClampAttribute(b, -4, 5).Union(), {"scaled"},
      "y");
  const auto ins = b.CreateVectorOfStrings({"x"});
  const auto outs = b.CreateVectorOfStrings({"y"});
  const auto name = b.CreateString("main");
  const std::vector blocks{
      fb::CreateTosaBasicBlock(b, name, b.CreateVector(operators), b.CreateVector(tensors), ins, outs)};
  const std::vector regions{fb::CreateTosaRegionDirect(b, "main", &blocks)};
  fb::FinishTosaGraphBuffer(b,
                            fb::CreateTosaGraphDirect(b, fb::CreateVersion(b, 0, minor, 0, false), &regions));
  return std::string(reinterpret_cast<const char*>(b.GetBufferPointer()), b.GetSize());
}

TEST(TosaReader, Version080BecomesVersion1) {
  const auto owner = std::make_shared<const std::string>(fileOfVersion080(80));
  const auto graph = require(tosa_io::readTosa(asBytes(*owner), owner));
  EXPECT_TRUE(matchesGolden("tosa/version_0_80.txt", ir::print(graph)));
  const auto results =
      require(tosa::interpret(graph, std::vector<Tensor>{integers(DType::Int8, {1, 2}, {3, 2})}));
  // sum = {2*1 + 1*2 + 10, 2*3 - 1 + 20} = {14, 25}; halved, less 4: {3, 9}; clamped to 5.
  EXPECT_EQ(valuesOf(results[0]), (std::vector<int64_t>{3, 5}));
}

/// A list of 1,000 references to one string.
template <typename Name>
std::vector<flatbuffers::Offset<flatbuffers::String>> sameName(flatbuffers::FlatBufferBuilder& builder,
                                                               Name name) {
  return std::vector<flatbuffers::Offset<flatbuffers::String>>(1000, builder.CreateString(name));
}

/// Files of both versions in which all operators share one list of 1,000 names.
std::array<flatbuffers::FlatBufferBuilder, 2> filesOfSharedNames(size_t operators) {
  const std::string name(1000, 'n');
  std::array<flatbuffers::FlatBufferBuilder, 2> files;
  auto& [newer, older] = files;
  {
    const auto names = newer.CreateVector(sameName(newer, name));
    const auto op = tosa_io::wire::CreateTosaOperator(newer, tosa_io::wire::Op::ADD, {}, 0, names, names);
    const auto block =
        tosa_io::wire::CreateTosaBasicBlock(newer, 0, newer.CreateVector(std::vector(operators, op)));
    const auto region = tosa_io::wire::CreateTosaRegion(newer, 0, newer.CreateVector(&block, 1));
    const auto version = tosa_io::wire::CreateVersion(newer, 1, 0, 0, false);
    tosa_io::wire::FinishTosaGraphBuffer(
        newer, tosa_io::wire::CreateTosaGraph(newer, version, newer.CreateVector(&region, 1)));
  }
  {
    const auto names = older.CreateVector(sameName(older, name));
    const auto op =
        tosa_io::wire080::CreateTosaOperator(older, tosa_io::wire080::Op::ADD, {}, 0, names, names);
    const auto block =
        tosa_io::wire080::CreateTosaBasicBlock(older, 0, older.CreateVector(std::vector(operators, op)));
    const auto region = tosa_io::wire080::CreateTosaRegion(older, 0, older.CreateVector(&block, 1));
    const auto version = tosa_io::wire080::CreateVersion(older, 0, 80, 0, false);
    tosa_io::wire080::FinishTosaGraphBuffer(
        older, tosa_io::wire080::CreateTosaGraph(older, version, older.CreateVector(&region, 1)));
  }
  return files;
}

void expectRefused(const flatbuffers::FlatBufferBuilder& file, std::string_view why) {
  const ByteSpan bytes(reinterpret_cast<const std::byte*>(file.GetBufferPointer()), file.GetSize());
  const std::string error = errorOf(tosa_io::readTosa(bytes, nullptr));
  EXPECT_NE(error.find(why), std::string::npos) << error;
}

TEST(TosaReader, CopiesOfSharedTextsAreBounded) {
  for (const auto& file : filesOfSharedNames(1000)) expectRefused(file, "share their contents");
}

TEST(TosaReader, SharedListsOfNamesAreCountedBeforeTheyAreVerified) {
  for (const auto& file : filesOfSharedNames(5000)) expectRefused(file, "share their lists of names");
}

TEST(TosaReader, DevelopmentVersionsAreRefused) {
  const auto owner = std::make_shared<const std::string>(fileOfVersion080(90));
  EXPECT_NE(errorOf(tosa_io::readTosa(asBytes(*owner), owner)).find("version 0.90.0 is not supported"),
            std::string::npos);
}

/// A complete file by another writer: y = ADD(x, c) on i32[2], c = {1, -2}.
TEST(TosaReader, KnownBytes) {
  const fs::path file = dataDir() / "tosa" / "known_add.bin";
  const auto graph = require(tosa_io::readTosa(file));
  EXPECT_EQ(
      ir::print(graph),
      "graph @main(%x: i32[2]) -> (%y) {\n  %c: i32[2] = [1, -2]\n  %y: i32[2] = tosa.ADD(%x, %c)\n}\n");
}

}  // namespace
}  // namespace carina::test
