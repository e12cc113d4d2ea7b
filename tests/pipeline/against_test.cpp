// SPDX-License-Identifier: Apache-2.0
// Programs compared with the graphs that they came from: sound ones are equal, otherwise the wrong operation
// is named.
#include "pipeline/against.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.hpp"
#include "npu/isa/payload.hpp"
#include "npu/isa/stream.hpp"
#include "pipeline/pipeline.hpp"
#include "pipeline/value_search.hpp"
#include "pte/delegate_blob.hpp"
#include "report/against.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::pipeline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Tensor counting(const Shape& shape, int64_t first) {
  Tensor tensor = Tensor::uninitialized(DType::Int16, shape);
  for (int64_t i = 0; i < tensor.numElements(); ++i) tensor.setIntegerAt(i, first + i);
  return tensor;
}

std::vector<int64_t> elementsOf(const Tensor& tensor) {
  std::vector<int64_t> elements;
  for (int64_t i = 0; i < tensor.numElements(); ++i) elements.push_back(tensor.integerAt(i));
  return elements;
}

TEST(ValueSearch, FindsWholeValuesInAnyOrder) {
  ValueSearch search;
  search.add(counting({1, 2, 2, 8}, 0));
  search.add(counting({1, 2, 2, 8}, 100));
  EXPECT_THAT(search.found({2, 2, 8}, elementsOf(counting({32}, 100))), ElementsAre(1));
  std::vector<int64_t> backwards = elementsOf(counting({32}, 0));
  std::reverse(backwards.begin(), backwards.end());
  EXPECT_FALSE(search.appears(0));
  EXPECT_THAT(search.found({4, 1, 8}, backwards), ElementsAre(0));
  EXPECT_TRUE(search.appears(0));
  EXPECT_THAT(search.found({2, 2, 8}, elementsOf(counting({32}, 1))), IsEmpty());
}

TEST(ValueSearch, AssemblesPieces) {
  // 4x2x16, written as rows 0 to 2 with the lower channels, then the upper ones, then row 3.
  ValueSearch search;
  search.add(counting({1, 4, 2, 16}, 0));
  const auto piece = [](int64_t y0, int64_t y1, int64_t c0, int64_t c1) {
    std::vector<int64_t> elements;
    for (int64_t y = y0; y < y1; ++y) {
      for (int64_t x = 0; x < 2; ++x) {
        for (int64_t c = c0; c < c1; ++c) elements.push_back((y * 2 + x) * 16 + c);
      }
    }
    return elements;
  };
  EXPECT_THAT(search.found({3, 2, 8}, piece(0, 3, 0, 8)), ElementsAre(0));
  EXPECT_THAT(search.found({3, 2, 8}, piece(0, 3, 8, 16)), ElementsAre(0));
  EXPECT_FALSE(search.appears(0));
  EXPECT_THAT(search.found({2, 1, 16}, piece(3, 4, 0, 16)), ElementsAre(0)) << "its columns seen as rows";
  EXPECT_TRUE(search.appears(0));
}

/// digits8 compiled, as a program and as the graph of its one NPU part.
class AgainstDigits : public testing::Test {
 protected:
  void SetUp() override {
    Options options;
    options.model = test::modelFile("digits8.pt2");
    options.calibration = test::modelFile("digits8.npz");
    options.target = "ethos-u55-128";
    options.memoryMode = "Sram_Only";  // weights are read in place
    auto built = require(build(options));
    ASSERT_TRUE(writeOutput(built, folder_ / "digits8.pte").ok());
    ASSERT_TRUE(writeOutput(built, folder_ / "digits8.tosa").ok());
    program_ = std::move(built.program);
  }

  Result<Against> run(const NamedTensors& arrays = {}) {
    return verifyAgainst({folder_ / "digits8.pte", {folder_ / "digits8.tosa"}, 2}, arrays);
  }

  test::TempDir folder_;
  pte::Program program_;
};

TEST_F(AgainstDigits, ASoundProgramComputesItsGraph) {
  const auto noise = require(run());
  ASSERT_EQ(noise.parts.size(), 1u);
  EXPECT_TRUE(noise.ok());
  EXPECT_EQ(noise.parts[0].samples, 2u);
  EXPECT_EQ(noise.parts[0].elements, 20);
  EXPECT_GT(noise.parts[0].seen, 8u);
  EXPECT_FALSE(noise.parts[0].first);
  EXPECT_THAT(noise.parts[0].findings, IsEmpty());
  // The program's own inputs are float: it runs to obtain those of its NPU part.
  const auto floats = require(run({{"in0", Tensor::zeros(DType::Float32, {3, 1, 1, 8, 8})}}));
  EXPECT_TRUE(floats.ok());
  EXPECT_EQ(floats.parts[0].samples, 3u);
}

TEST_F(AgainstDigits, NamesTheOperationWhoseResultIsWrong) {
  // A bias of the third convolution with weights, changed in the constants.
  pte::Delegate& delegate = program_.methods[0].delegates[0];
  auto blob = require(pte::parseDelegateBlob(delegate.blob));
  const auto payload = require(npu::readPayload(blob.payload));
  const npu::Target& target = **npu::payloadTarget(payload);
  const auto operations = require(npu::decodeStream(payload.words, target));
  uint32_t offset = 0;
  int convolutions = 0;
  for (const npu::PlacedOperation& placed : operations) {
    const auto* op = std::get_if<npu::KernelOperation>(&placed.operation);
    if (op == nullptr || !op->weights || ++convolutions != 3) continue;
    offset = placed.offset;
    ASSERT_EQ(op->weights->scaleRegion, 0);
    blob.constants[op->weights->scales[0].address + 1] ^= std::byte{0x10};
  }
  ASSERT_NE(offset, 0u);
  delegate.blob = pte::buildDelegateBlob(blob);
  const auto bytes = require(pte::writeProgram(program_));
  ASSERT_TRUE(writeFile(folder_ / "digits8.pte", bytes).ok());
  const auto result = require(run());
  EXPECT_FALSE(result.ok());
  const PartAgainst& part = result.parts[0];
  ASSERT_TRUE(part.first);
  EXPECT_EQ(part.first->offset, offset);
  EXPECT_EQ(part.first->writtenAt, offset);
  EXPECT_THAT(part.first->op, HasSubstr("CONV2D"));
  EXPECT_GT(part.first->mismatches, 0);
  EXPECT_LT(part.first->mismatches, part.first->elements) << "one channel is wrong";
  const std::string text = report::againstText(result);
  EXPECT_THAT(text, HasSubstr("first operation whose value never appears: " + part.first->op));
  EXPECT_THAT(text, HasSubstr(fmt::format("NPU operation at {:#x}: ", offset)));
}

TEST_F(AgainstDigits, AGraphOfAnotherNetworkMatchesNoPart) {
  Options options;
  options.model = test::modelFile("dense.pt2");
  options.calibration = test::modelFile("dense.npz");
  options.target = "ethos-u55-128";
  const auto built = require(build(options));
  ASSERT_TRUE(writeOutput(built, folder_ / "digits8.tosa").ok());
  EXPECT_THAT(errorOf(run()), HasSubstr("no NPU part of"));
}

struct Miscompiled {
  const char* program;
  uint32_t offset;
  const char* op;
  const char* finding;
};

TEST(AgainstVectors, FindsMiscompiledOperations) {
  CARINA_NEED_FIXTURES(fixtures);
  const Miscompiled all[] = {
      {"lstm/ethos-u85-256_a16w8/lstm.pte", 0x1cf8, "tosa.TABLE", "offset 0x1cf8: table: "},
      {"transformer/ethos-u55-128/transformer.pte", 0x2ebc, "tosa.CONV2D",
       "offset 0x2ebc: padding: 12 of 16 rows"},
  };
  for (const Miscompiled& wrong : all) {
    const std::filesystem::path program = fixtures / "vectors/executorch" / wrong.program;
    SCOPED_TRACE(program.string());
    const auto result = require(verifyAgainst({program, {program.parent_path() / "delegate0.tosa"}, 1}, {}));
    ASSERT_TRUE(result.parts[0].first);
    EXPECT_EQ(result.parts[0].first->offset, wrong.offset);
    EXPECT_EQ(result.parts[0].first->op, wrong.op);
    EXPECT_THAT(result.parts[0].findings, ElementsAre(HasSubstr(wrong.finding)));
  }
}

TEST(AgainstVectors, SoundProgramsOfExecuTorchComputeTheirGraphs) {
  CARINA_NEED_FIXTURES(fixtures);
  int programs = 0;
  for (const auto& program : test::filesIn(fixtures / "vectors/executorch", ".pte")) {
    if (test::isMiscompiled(program)) continue;
    SCOPED_TRACE(program.string());
    const auto graphs = test::filesIn(program.parent_path(), ".tosa");
    const auto result = require(verifyAgainst({program, graphs, 1}, {}));
    EXPECT_TRUE(result.ok());
    ++programs;
  }
  EXPECT_GE(programs, 100);
}

}  // namespace
}  // namespace carina::pipeline
