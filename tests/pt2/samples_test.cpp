// SPDX-License-Identifier: Apache-2.0
// The sample archives (models/pt2_samples.py): what is read from them, and that it computes what torch
// computed.
#include <gtest/gtest.h>

#include <cmath>

#include "aten/executor.hpp"
#include "base/npy.hpp"
#include "ir/printer.hpp"
#include "pt2/edited_archive.hpp"
#include "pt2/exported_program.hpp"
#include "support/contents.hpp"
#include "support/golden.hpp"
#include "support/require.hpp"

namespace carina::pt2 {
namespace {

ExportedProgram readSample(const std::string& name, const ReadOptions& options = {}) {
  return require(readExportedProgram(test::dataDir() / "pt2" / (name + ".pt2"), options));
}

const StateTensor& stateNamed(const ExportedProgram& program, const std::string& name) {
  for (const StateTensor& state : program.state) {
    if (state.name == name) return state;
  }
  CARINA_UNREACHABLE("the sample has no such tensor");
}

void expectClose(const Tensor& actual, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(actual.shape(), expected.shape()) << what;
  for (int64_t i = 0; i < expected.numElements(); ++i) {
    if (actual.realAt(i) == expected.realAt(i)) continue;  // infinities have no difference
    ASSERT_NEAR(actual.realAt(i), expected.realAt(i), 1e-5 * (1 + std::abs(expected.realAt(i))))
        << what << " element " << i;
  }
}

class Sample : public ::testing::TestWithParam<std::string> {};

TEST_P(Sample, ComputesWhatTorchComputed) {
  const ExportedProgram program = readSample(GetParam());
  const std::string reference = GetParam().substr(0, 6) == "state_" ? "state" : GetParam();
  const auto arrays = require(readNpz(test::dataDir() / "pt2" / (reference + ".npz")));
  const auto results = require(aten::execute(program.graph, test::arraysNamed(arrays, "in")));
  const auto expected = test::arraysNamed(arrays, "out");
  ASSERT_EQ(results.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    expectClose(results[i], expected[i], "out" + std::to_string(i));
}

INSTANTIATE_TEST_SUITE_P(Pt2, Sample,
                         ::testing::Values("state", "state_pickled", "state_flat", "writes", "copies",
                                           "inplace", "inplace_operators", "numbers", "numbers_decomposed",
                                           "modes", "constants_inf", "tied_embedding", "complex_arithmetic",
                                           "complex_arithmetic_decomposed", "complex_transforms",
                                           "complex_transforms_decomposed", "complex_frames",
                                           "complex_frames_decomposed"),
                         [](const auto& sample) { return sample.param; });

TEST(Container, AllThreeGenerationsGiveTheSameGraph) {
  const ExportedProgram raw = readSample("state"), pickled = readSample("state_pickled"),
                        flat = readSample("state_flat");
  EXPECT_EQ(raw.container, Container::RawState);
  EXPECT_EQ(pickled.container, Container::PickledState);
  EXPECT_EQ(flat.container, Container::FlatZip);
  EXPECT_EQ(ir::print(pickled.graph), ir::print(raw.graph));
  EXPECT_EQ(ir::print(flat.graph), ir::print(raw.graph));
}

TEST(Container, Torch26IsReadFromItsOwnFiles) {
  const ExportedProgram program = readSample("tied_embedding");
  EXPECT_EQ(program.container, Container::FlatZip);
  EXPECT_EQ(program.torchVersion.substr(0, 3), "2.6");
  EXPECT_EQ(program.schemaMinor, 2);
}

TEST(Golden, StateIsReadWithAllItsTypesAndStrides) {
  EXPECT_TRUE(test::matchesGolden("pt2/state.txt", ir::print(readSample("state").graph)));
}
TEST(Golden, WritesThroughViewsBecomeFunctional) {
  EXPECT_TRUE(test::matchesGolden("pt2/writes.txt", ir::print(readSample("writes").graph)));
}
TEST(Golden, NumbersStayNumbers) {
  EXPECT_TRUE(test::matchesGolden("pt2/numbers.txt", ir::print(readSample("numbers").graph)));
}
TEST(Golden, ModesAreInlined) {
  ir::PrintOptions options;
  options.locations = true;
  EXPECT_TRUE(test::matchesGolden("pt2/modes.txt", ir::print(readSample("modes").graph, options)));
}

TEST(State, KnowsKindsAndSharing) {
  const ExportedProgram program = readSample("state");
  EXPECT_EQ(stateNamed(program, "tied").kind, StateKind::Parameter);
  EXPECT_EQ(stateNamed(program, "transposed").kind, StateKind::Buffer);
  EXPECT_EQ(stateNamed(program, "constant").kind, StateKind::Constant);
  EXPECT_TRUE(stateNamed(program, "window").persistent);
  EXPECT_FALSE(stateNamed(program, "volatile").persistent);
  EXPECT_EQ(stateNamed(program, "unused").value, nullptr);
  ASSERT_NE(stateNamed(program, "transposed").value, nullptr);
  const Tensor& transposed = stateNamed(program, "transposed").value->constant();
  EXPECT_EQ(transposed.shape(), (Shape{4, 6}));
  EXPECT_EQ(transposed.realAt(1), 4.0);
  EXPECT_EQ(stateNamed(program, "window").value->constant().realAt(0), 5.0);
}

TEST(State, DenseWeightsBorrowTheFile) {
  const auto file = require(MappedFile::open(test::dataDir() / "pt2" / "state.pt2"));
  const auto program = require(readExportedProgram(file->bytes(), file));
  const auto inFile = [&](const Tensor& tensor) {
    return tensor.bytes().data() >= file->bytes().data() &&
           tensor.bytes().data() < file->bytes().data() + file->bytes().size();
  };
  EXPECT_TRUE(inFile(stateNamed(program, "window").value->constant()));
  EXPECT_TRUE(inFile(stateNamed(program, "t_f16").value->constant()));
  EXPECT_FALSE(inFile(stateNamed(program, "transposed").value->constant()));
}

TEST(State, OutlivesTheFile) {
  const ExportedProgram program = readSample("state");
  EXPECT_EQ(stateNamed(program, "t_f64").value->constant().realAt(5), 5.0);
}

TEST(Signature, InputsAndOutputsWithTheirConstants) {
  const ExportedProgram program = readSample("state");
  ASSERT_EQ(program.inputs.size(), 2u);
  EXPECT_EQ(program.inputs[0].name, "x");
  EXPECT_EQ(program.inputs[1].name, "scale_factor");
  EXPECT_EQ(program.inputs[1].value, program.graph.inputs()[1]);
  ASSERT_EQ(program.outputs.size(), 4u);
  EXPECT_EQ(program.outputs[0].graphOutput, 0u);
  EXPECT_EQ(program.outputs[1].graphOutput, 1u);
  EXPECT_EQ(program.outputs[2].constant, "7");
  EXPECT_EQ(program.outputs[3].constant, "None");
}

TEST(Writes, StateIsRefusedWithTheBuffersName) {
  for (const char* name : {"counter.pt2", "counter_decomposed.pt2"}) {
    const auto program = readExportedProgram(test::dataDir() / "pt2" / name);
    ASSERT_FALSE(program.ok());
    EXPECT_NE(program.error().str().find("'total': keeps state from call to call"), std::string::npos)
        << program.error().str();
    EXPECT_EQ(program.error().diagnostics().size(), 1u);  // nothing reads 'calls'
  }
}

TEST(Writes, StateCanBeExposed) {
  for (const char* name : {"counter", "counter_decomposed"}) {
    ReadOptions options;
    options.state = StatePolicy::Expose;
    const ExportedProgram program = readSample(name, options);
    ASSERT_EQ(program.exposedBuffers.size(), 1u);
    const ExposedBuffer& total = program.exposedBuffers[0];
    EXPECT_EQ(total.name, "total");
    EXPECT_EQ(total.graphInput, 1u);
    EXPECT_EQ(total.graphOutput, 1u);
    ASSERT_EQ(program.graph.inputs().size(), 2u);
    EXPECT_EQ(stateNamed(program, "total").value, program.graph.inputs()[1]);
    ASSERT_EQ(program.warnings.size(), 1u);
    EXPECT_EQ(program.warnings[0].place, "'calls'");
    // Two calls by hand: the caller carries the state.
    const Tensor x = Tensor::from<float>({3}, std::vector<float>{1, 2, 3});
    auto first = require(aten::execute(program.graph, std::vector<Tensor>{x, total.initial}));
    auto second = require(aten::execute(program.graph, std::vector<Tensor>{x, first[1]}));
    EXPECT_EQ(second[0].as<float>()[2], 12.0f);
  }
}

TEST(Writes, ABufferThatIsFilledBeforeItIsReadIsNoState) {
  test::EditedArchive archive("counter.pt2");
  archive.replace("model.json", "aten.add_.Tensor", "aten.copy_.default")
      .replace("model.json", "\"name\": \"other\"", "\"name\": \"src\"");
  const auto program = require(archive.read());
  EXPECT_EQ(program.warnings.size(), 2u);
  const auto results = require(aten::execute(
      program.graph, std::vector<Tensor>{Tensor::from<float>({3}, std::vector<float>{1, 2, 3})}));
  EXPECT_EQ(results[0].as<float>()[2], 6.0f);
}

TEST(Models, OneOfSeveralIsChosenByName) {
  const auto names = require(modelNames(test::dataDir() / "pt2" / "modes.pt2"));
  EXPECT_EQ(names, std::vector<std::string>{"model"});
  ReadOptions options;
  options.model = "other";
  const auto program = readExportedProgram(test::dataDir() / "pt2" / "modes.pt2", options);
  ASSERT_FALSE(program.ok());
  EXPECT_NE(program.error().str().find("no program named 'other'\n  It holds 'model'"), std::string::npos);
}

TEST(Weights, NanIsReadAsItIs) {
  test::EditedArchive archive("modes.pt2");
  archive.member("data/weights/weight_0").replace(0, 4, std::string("\0\0\xc0\x7f", 4));
  const auto program = require(archive.read());
  EXPECT_TRUE(std::isnan(stateNamed(program, "fc.weight").value->constant().realAt(0)));
}

/// Unused random numbers are not drawn; those that a result depends on are refused.
TEST(Samples, UnusedRandomNumbers) {
  const auto withDice = [](const std::string& reader) {
    test::EditedArchive archive("numbers.pt2");
    archive.replace("model.json", "\"nodes\": [",
                    "\"nodes\": [{\"target\": \"torch.ops.aten.rand.default\", \"inputs\": [{\"name\": "
                    "\"size\", \"arg\": {\"as_ints\": []}, \"kind\": 1}], \"outputs\": [{\"as_tensor\": "
                    "{\"name\": \"dice\"}}], \"metadata\": {}, \"is_hop_single_tensor_return\": null, "
                    "\"name\": \"dice\"}, ");
    archive.replace("model.json", "\"tensor_values\": {",
                    "\"tensor_values\": {\"dice\": {\"dtype\": 7, \"sizes\": [], \"requires_grad\": false, "
                    "\"device\": {\"type\": \"cpu\", \"index\": null}, \"strides\": [], \"storage_offset\": "
                    "{\"as_int\": 0}, \"layout\": 7}, ");
    if (!reader.empty())
      archive.replace("model.json", "{\"as_tensor\": {\"name\": \"" + reader + "\"}}",
                      "{\"as_tensor\": {\"name\": \"dice\"}}");
    return archive;
  };
  const auto unused = require(withDice("").read());
  EXPECT_EQ(ir::print(unused.graph), ir::print(readSample("numbers").graph));
  EXPECT_NE(withDice("rsub").error().find("rand returns random numbers"), std::string::npos);
}

}  // namespace
}  // namespace carina::pt2
