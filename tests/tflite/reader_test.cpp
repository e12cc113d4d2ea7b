// SPDX-License-Identifier: Apache-2.0
// Reading TFLite files: their contents, and that damaged files do no harm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/file.hpp"
#include "support/require.hpp"
#include "tflite/file_builder.hpp"

namespace carina::tflite {
namespace {

using test::TfliteFile;
using testing::HasSubstr;

TfliteFile example() {
  TfliteFile file;
  file.tensors = {{"x", TensorType::Int8, {1, 8, 8, 3}, "", -1},
                  {"weights", TensorType::Int8, {2, 2}, "abcd", -1},
                  {"y", TensorType::Float32, {1, 10}, "", -1}};
  file.operators = {{"", 3, {0, 1, -1}, {2}}, {"", 150, {2}, {2}}, {"my-op", 0, {2}, {2}}};
  file.inputs = {0};
  file.outputs = {2};
  return file;
}

Result<Model> read(const std::string& bytes) {
  return readModel(asBytes(bytes));
}

TEST(TfliteReader, ReadsTensorsAndOperators) {
  const std::string bytes = example().bytes();
  const auto model = require(read(bytes));
  EXPECT_EQ(model.description, "made by a test");
  ASSERT_EQ(model.subgraphs.size(), 1u);
  const Subgraph& main = model.subgraphs[0];
  EXPECT_EQ(main.name, "main");
  EXPECT_EQ(main.tensors[0].str(), "int8[1,8,8,3]");
  EXPECT_EQ(main.tensors[0].scales, std::vector<float>{0.5F});
  EXPECT_EQ(main.tensors[0].zeroPoints, std::vector<int64_t>{-3});
  EXPECT_EQ(asText(main.tensors[1].data), "abcd");
  EXPECT_EQ(tensorBytes(main.tensors[2]), 40);
  EXPECT_EQ(main.operators[0].name, "CONV_2D");
  EXPECT_EQ(main.operators[0].inputs, (std::vector<int32_t>{0, 1, -1}));
  EXPECT_EQ(main.operators[1].name, "GELU");  // beyond the narrow code
  EXPECT_EQ(main.operators[2].name, "my-op");
  EXPECT_TRUE(main.operators[2].custom);
  const std::string text = printModel(model);
  EXPECT_THAT(text, HasSubstr("subgraph 0 main: inputs [%0] outputs [%2]\n"));
  EXPECT_THAT(text, HasSubstr("  %0 = int8[1,8,8,3] \"x\" scale 0.5 zero point -3\n"));
  EXPECT_THAT(text, HasSubstr("    0: %2 = CONV_2D(%0, %1, none)\n"));
}

TEST(TfliteReader, RefusesInconsistentFiles) {
  const auto refused = [](const TfliteFile& file, const char* why) {
    const std::string bytes = file.bytes();
    EXPECT_THAT(errorOf(read(bytes)), HasSubstr(why)) << why;
  };
  TfliteFile file = example();
  file.outputs = {3};
  refused(file, "an output names tensor 3, but there are 3");
  file = example();
  file.inputs = {-1};
  refused(file, "an input names tensor -1");
  file = example();
  file.operators[0].inputs = {-2};
  refused(file, "operator 0 (CONV_2D) names tensor -2");
  file = example();
  file.version = 2;
  refused(file, "only version 3");
  EXPECT_THAT(readModel(asBytes("PK\x03\x04 something else")).error().str(), HasSubstr("TFL3"));
}

TEST(TfliteReader, CopiesOfSharedVectorsAreBounded) {
  // `count` tensors and operators that share one long text and one long vector.
  const auto shared = [](uint32_t count) {
    flatbuffers::FlatBufferBuilder builder;
    const auto name = builder.CreateString(std::string(20000, 'n'));
    const auto list = builder.CreateVector(std::vector<int32_t>(20000, 0));
    const auto tensor = fb::CreateTensorEntry(builder, 0, 9, 0, name);
    const auto op = fb::CreateOperatorEntry(builder, 0, list, list);
    const auto one = builder.CreateVector(std::vector<int32_t>{0});
    const auto subgraph = fb::CreateSubgraphEntry(builder, builder.CreateVector(std::vector(count, tensor)),
                                                  one, one, builder.CreateVector(std::vector(count, op)));
    const auto code = fb::CreateOperatorCode(builder, 0, 0, 1, 0);
    const auto buffer = fb::CreateBufferEntry(builder);
    builder.Finish(fb::CreateRoot(builder, 3, builder.CreateVector(&code, 1),
                                  builder.CreateVector(&subgraph, 1), 0, builder.CreateVector(&buffer, 1)),
                   "TFL3");
    return std::string(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
  };
  require(read(shared(10)));
  EXPECT_THAT(errorOf(read(shared(5000))), HasSubstr("share their contents"));
}

TEST(TfliteReader, DamagedFilesAreRefusedOrHarmless) {
  const std::string file = example().bytes();
  for (size_t length = 0; length < file.size(); ++length) {
    const std::string cut = file.substr(0, length);
    if (const auto model = read(cut)) printModel(*model);
  }
  for (size_t at = 0; at + 4 <= file.size(); ++at) {  // nothing may be read outside the bytes
    for (const uint32_t value : {0u, 0xffffffffu, 0x7fffffffu, 0x10000u}) {
      std::string damaged = file;
      std::memcpy(damaged.data() + at, &value, 4);
      if (const auto model = read(damaged)) printModel(*model);
    }
  }
}

}  // namespace
}  // namespace carina::tflite
