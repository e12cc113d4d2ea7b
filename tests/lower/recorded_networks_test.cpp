// SPDX-License-Identifier: Apache-2.0
// Networks of the larger suites: graphs that PyTorch quantized against PyTorch's results, and float networks
// after Carina's quantizer against the fake-quant executor.
#include <gtest/gtest.h>

#include "aten/executor.hpp"
#include "base/npy.hpp"
#include "decompose/decompose.hpp"
#include "program_runner.hpp"
#include "pt2/exported_program.hpp"
#include "quantize/quantize.hpp"
#include "support/contents.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"

namespace carina::lower::test {
namespace {

namespace fs = std::filesystem;

std::string refusalText(const partition::Partitioned& program) {
  std::string text;
  for (const auto& refusal : program.refusals)
    text += refusal.op + " (" + refusal.node + "): " + refusal.reason + "\n";
  return text;
}

TEST(RecordedNetworks, QuantizedByPyTorch) {
  CARINA_NEED_FIXTURES(fixtures);
  int cases = 0;
  for (const fs::path& path : carina::test::filesIn(fixtures / "vectors/executorch", "qdq.pt2")) {
    SCOPED_TRACE(path.string());
    auto program = require(pt2::readExportedProgram(path));
    ASSERT_TRUE(decompose::forNpu(program.graph).ok());
    ASSERT_TRUE(quantize::carriesQuantization(program.graph));
    auto partitioned = require(partition::partition(std::move(program.graph), {}));
    EXPECT_TRUE(partitioned.wholly) << refusalText(partitioned);
    auto arrays = require(readNpz(path.parent_path() / "io.npz"));
    auto outputs = require(runProgram(partitioned, carina::test::arraysNamed(arrays, "input")));
    const std::vector<Tensor> expected = carina::test::arraysNamed(arrays, "output");
    ASSERT_EQ(outputs.size(), expected.size());
    for (size_t o = 0; o < expected.size(); ++o) {
      const auto difference = compareInQuanta(outputs[o], expected[o], outputQuantum(partitioned.graph, o));
      EXPECT_EQ(difference.overOne, 0)
          << "largest " << difference.largest << " quanta of " << difference.elements;
    }
    ++cases;
  }
  EXPECT_GT(cases, 40);
}

class FloatNetwork : public testing::TestWithParam<const char*> {};

TEST_P(FloatNetwork, IntegerResultsEqualTheFakeQuantSimulation) {
  CARINA_NEED_FIXTURES(fixtures);
  const fs::path base = fixtures / "fixtures/models" / GetParam();
  auto program = require(pt2::readExportedProgram(base.string() + ".pt2"));
  auto arrays = require(readNpz(base.string() + ".npz"));
  ASSERT_TRUE(decompose::forNpu(program.graph).ok());
  auto samples = require(quantize::samplesFromArrays(program.graph, arrays));
  auto quantized = require(quantize::quantize(std::move(program.graph), {}, samples));
  const ir::Graph simulation = quantized.graph.clone();
  auto partitioned = require(partition::partition(std::move(quantized.graph), {}));
  EXPECT_TRUE(partitioned.wholly) << refusalText(partitioned);
  int64_t elements = 0, over = 0;
  const size_t count = std::min<size_t>(samples.size(), 2);
  for (size_t s = 0; s < count; ++s) {
    auto expected = require(aten::execute(simulation, samples[s]));
    auto actual = require(runProgram(partitioned, samples[s]));
    for (size_t o = 0; o < actual.size(); ++o) {
      const auto difference = compareInQuanta(actual[o], expected[o], outputQuantum(partitioned.graph, o));
      elements += difference.elements;
      over += difference.overOne;
    }
  }
  EXPECT_LE(static_cast<double>(over), 0.001 * static_cast<double>(elements));
}

INSTANTIATE_TEST_SUITE_P(Models, FloatNetwork,
                         testing::Values("digits_cnn", "keyword_ds_cnn", "resnet8", "autoencoder",
                                         "mobilenet_v2"));

}  // namespace
}  // namespace carina::lower::test
