// SPDX-License-Identifier: Apache-2.0
// Programs that an Ethos-N78 shares with the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "base/npy.hpp"
#include "device/run.hpp"
#include "ethosn/stream/program_blob.hpp"
#include "pipeline/check.hpp"
#include "pipeline/ethosn_profile.hpp"
#include "pipeline/operators.hpp"
#include "pipeline/sweep.hpp"
#include "pipeline/verify.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::pipeline {
namespace {

Options optionsFor(const std::filesystem::path& model, const std::string& target) {
  Options options;
  options.model = model;
  options.target = target;
  options.calibration = std::filesystem::path(model).replace_extension(".npz");
  return options;
}

/// Compiles and verifies a sample: NPU operations against TOSA, CPU kernels against the executor.
void expectVerified(const std::filesystem::path& model, const std::string& target, bool wholly) {
  SCOPED_TRACE(model.filename().string() + " " + target);
  const auto built = require(build(optionsFor(model, target)));
  EXPECT_FALSE(built.ethosNParts.empty());
  EXPECT_EQ(built.partitioned.wholly, wholly);
  NamedTensors arrays = *readArrays(std::filesystem::path(model).replace_extension(".npz"));
  auto samples = require(verificationSamples(built, arrays));
  samples.resize(1);
  const auto verified = require(verify(built, samples));
  EXPECT_TRUE(verified.ok());
  for (const LayerResult& layer : verified.layers)
    EXPECT_EQ(layer.mismatches, 0) << layer.value << " " << layer.op;
  EXPECT_FALSE(verified.layers.empty());
  for (const std::string& finding : verified.findings) ADD_FAILURE() << finding;
  EXPECT_GT(verified.cycles, 0);
  const auto program = require(pte::writeProgram(built.program));
  const auto check = require(checkProgram(asBytes(program)));
  for (const std::string& problem : check.problems) ADD_FAILURE() << problem;
  EXPECT_EQ(check.commandStreams, built.ethosNParts.size());
}

TEST(EthosNProgram, UnsupportedOperatorsRunOnTheCpu) {
  CARINA_NEED_FIXTURES(fixtures);
  const std::filesystem::path folder = fixtures / "fixtures/models";
  expectVerified(folder / "digits_cnn.pt2", "ethos-n78-1tops-4ple", true);
  expectVerified(folder / "keyword_ds_cnn.pt2", "ethos-n78-4tops-4ple", false);
}

// Its whole softmax runs on the CPU, including what the NPU could compute.
TEST(EthosNProgram, OperatorsAreNotSplit) {
  CARINA_NEED_FIXTURES(fixtures);
  const auto built =
      require(build(optionsFor(fixtures / "fixtures/models/keyword_ds_cnn.pt2", "ethos-n78-4tops-4ple")));
  EXPECT_EQ(built.ethosNParts.size(), 1U);
}

TEST(EthosNProgram, SmallNetworks) {
  expectVerified(test::modelFile("mixed.pt2"), "ethos-n78-4tops-2ple", true);
  expectVerified(test::modelFile("residual.pt2"), "ethos-n78-8tops-2ple", true);
}

// Gates, products of feature maps, sums and products with constants, as passes of PLE and MCE. A GRU is one
// part; the LSTM's states leave it where they are computed.
TEST(EthosNProgram, ProductsAndGates) {
  expectVerified(test::dataDir() / "aten/glu.pt2", "ethos-n78-1tops-4ple", true);
  expectVerified(test::dataDir() / "aten/gru_cell.pt2", "ethos-n78-4tops-4ple", false);
  expectVerified(test::dataDir() / "aten/lstm.pt2", "ethos-n78-8tops-2ple", false);
}

// Only parts that are worth their call are kept: those of per-pixel activations, products and pooling stay
// whole.
TEST(EthosNProgram, SqueezeAndExciteStaysInOnePart) {
  CARINA_NEED_FIXTURES(fixtures);
  const std::filesystem::path folder = fixtures / "fixtures/ops";
  for (const char* name :
       {"mul_same", "mul_broadcast_channel", "hardswish", "hardsigmoid", "silu", "sub_same"})
    expectVerified(folder / (std::string(name) + ".pt2"), "ethos-n78-4tops-4ple", true);
}

// Networks of one operator, as torch.export writes them: what the NPU runs of each computes the same as TOSA.
TEST(EthosNProgram, NetworksOfOneOperator) {
  CARINA_NEED_FIXTURES(fixtures);
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(fixtures / "fixtures/ops")) {
    if (entry.path().extension() == ".pt2") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  size_t onNpu = 0;
  for (const std::filesystem::path& file : files) {
    SCOPED_TRACE(file.stem().string());
    Options options = optionsFor(file, "ethos-n78-4tops-4ple");
    const NamedTensors arrays = *readArrays(options.calibration);
    options.calibration.clear();
    options.madeUpSamples = true;
    const auto built = build(options);
    if (!built.ok() || built->ethosNParts.empty()) continue;
    ++onNpu;
    auto samples = require(verificationSamples(*built, arrays));
    samples.resize(1);
    const auto verified = require(verify(*built, samples));
    for (const LayerResult& layer : verified.layers) {
      EXPECT_EQ(layer.mismatches, 0) << layer.value << " " << layer.op << ": " << layer.actual
                                     << " instead of " << layer.expected;
    }
    EXPECT_TRUE(verified.ok());
    EXPECT_LE(verified.offTosa.worst, 3);
    for (const std::string& finding : verified.findings) ADD_FAILURE() << finding;
  }
  EXPECT_GE(onNpu, 40U);
}

TEST(EthosNProgram, ListsWhereOperatorsRun) {
  Options options = optionsFor(test::modelFile("mixed.pt2"), "ethos-n78-4tops-4ple");
  options.cpuOps = {"max_pool2d"};
  const auto list = require(listOperators(options));
  EXPECT_GT(list.count(Place::Npu), 0U);
  EXPECT_GT(list.count(Place::Cpu), 0U);
  for (const OperatorPlace& op : list.operators) {
    if (op.place != Place::Cpu) continue;
    ASSERT_FALSE(op.refusals.empty()) << op.node;
    EXPECT_FALSE(op.refusals[0].reason.empty());
  }
}

TEST(EthosNProgram, ProfileCountsTheWorkOfPasses) {
  const auto built = require(build(optionsFor(test::modelFile("residual.pt2"), "ethos-n78-4tops-4ple")));
  const auto profile = require(profileEthosN(built));
  ASSERT_EQ(profile.parts.size(), 1U);
  uint64_t macs = 0;
  for (const EthosNPassCost& pass : profile.parts[0].passes) {
    EXPECT_GT(pass.cycles, 0U) << pass.operation;
    EXPECT_EQ(pass.mce.empty(), pass.mceCycles == 0) << pass.operation;
    EXPECT_LE(pass.weights.alone(), pass.weights.bytes);
    // The first pass's weights arrive with all others, in one transfer.
    EXPECT_EQ(pass.weights.reloads(), 0U) << pass.operation;
    macs += pass.macs;
  }
  EXPECT_GT(macs, 0U);
  EXPECT_EQ(profile.cycles(), profile.parts[0].sum(&EthosNPassCost::cycles));
}

// For a finished program, whichever tool wrote it: the same passes, from their agents.
TEST(EthosNProgram, ProfileOfAProgramEqualsThatOfItsNetwork) {
  const Options options = optionsFor(test::modelFile("residual.pt2"), "ethos-n78-4tops-4ple");
  const auto built = require(build(options));
  const auto expected = require(profileEthosN(built));
  EXPECT_GT(expected.overlappedCycles(), 0U);
  const test::TempDir folder;
  const std::filesystem::path program = folder.path() / "residual.pte",
                              network = folder.path() / "residual.encn";
  ASSERT_TRUE(writeOutput(built, program).ok());
  const std::vector<uint8_t> bytes = ethosn::writeCompiledNetwork(built.ethosNParts[0].compiled);
  std::ofstream(network, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  for (const std::filesystem::path& file : {program, network}) {
    SCOPED_TRACE(file.filename().string());
    ASSERT_TRUE(isEthosNProgram(file));
    const auto profile = require(profileEthosNProgram(file, {}));
    ASSERT_EQ(profile.parts.size(), 1U);
    EXPECT_EQ(profile.overlappedCycles(), expected.overlappedCycles());
    const EthosNPartCost &part = profile.parts[0], &same = expected.parts[0];
    ASSERT_EQ(part.passes.size(), same.passes.size());
    for (size_t i = 0; i < part.passes.size(); ++i) {
      EXPECT_EQ(part.passes[i].cycles, same.passes[i].cycles) << i;
      EXPECT_EQ(part.passes[i].macs, same.passes[i].macs) << i;
      EXPECT_EQ(part.passes[i].mce, same.passes[i].mce) << i;
      EXPECT_EQ(part.passes[i].ple, same.passes[i].ple) << i;
      EXPECT_EQ(part.passes[i].plePatches, same.passes[i].plePatches) << i;
    }
    Options other;
    other.target = "ethos-n78-8tops-2ple";
    EXPECT_FALSE(profileEthosNProgram(file, other).ok());
  }
  EXPECT_FALSE(isEthosNProgram(test::modelFile("residual.pt2")));
}

// A row for each variant, after those of Ethos-U, with the figures of that variant's profile; without a
// clock.
TEST(EthosNProgram, SweepsHaveARowForEachVariant) {
  SweepOptions options;
  options.base = optionsFor(test::modelFile("digits8.pt2"), "");
  options.targets = {"ethos-n78-8tops-2ple", "ethos-u55-128", "ETHOS_N78_1TOPS_4PLE", "ethos-n78-2tops-2ple"};
  const std::string refused = errorOf(sweep(options));  // the firmware has no kernels for the last one
  EXPECT_NE(refused.find("ethos-n78-2tops-2ple"), std::string::npos) << refused;
  options.targets.pop_back();
  const auto swept = require(sweep(options));
  ASSERT_EQ(swept.rows.size(), 3U);
  EXPECT_EQ(swept.rows[0].target, "ethos-u55-128");
  const char* const names[] = {"ethos-n78-8tops-2ple", "ethos-n78-1tops-4ple"};
  for (size_t i = 0; i < 2; ++i) {
    const SweepRow& row = swept.rows[i + 1];
    EXPECT_EQ(row.target, names[i]);
    EXPECT_EQ(row.problem, "");
    EXPECT_TRUE(row.wholly);
    EXPECT_EQ(row.clockHz, 0);
    const auto built = require(build(optionsFor(test::modelFile("digits8.pt2"), names[i])));
    const auto profile = require(profileEthosN(built));
    EXPECT_EQ(row.cycles, static_cast<npu::Cycles>(profile.cycles()));
    EXPECT_EQ(row.measured.cycles, row.cycles);
    EXPECT_EQ(row.macs, static_cast<int64_t>(profile.parts[0].sum(&EthosNPassCost::macs)));
    EXPECT_GT(row.macUse, 0);
    EXPECT_LT(row.macUse, 1);
    EXPECT_EQ(row.constantBytes, static_cast<int64_t>(profile.parts[0].constantBytes));
    EXPECT_EQ(row.commandBytes, static_cast<int64_t>(profile.parts[0].commandBytes));
  }
}

TEST(EthosNProgram, ProgramsForAnotherVariantAreRefused) {
  const auto built = require(build(optionsFor(test::modelFile("residual.pt2"), "ethos-n78-4tops-4ple")));
  const auto program = pte::writeProgram(built.program);
  device::RunOptions options;
  options.target = "ethos-n78-8tops-2ple";
  const std::string other = errorOf(device::Runner::open(asBytes(*program), options));
  EXPECT_NE(other.find("compiled for ethos-n78-4tops-4ple"), std::string::npos);
  options.target.clear();
  options.memoryMode = "Sram_Only";
  EXPECT_FALSE(device::Runner::open(asBytes(*program), options).ok());
}

TEST(EthosNProgram, DamagedPartsAreErrors) {
  const auto built = require(build(optionsFor(test::modelFile("residual.pt2"), "ethos-n78-4tops-4ple")));
  const pte::ByteVector& blob = built.program.methods[0].delegates[0].blob;
  const auto whole = require(ethosn::readProgramBlob(blob));
  EXPECT_EQ(whole.target, "ethos-n78-4tops-4ple");
  for (size_t bytes = 0; bytes < 64; ++bytes)
    EXPECT_FALSE(ethosn::readProgramBlob(ByteSpan(blob).first(bytes)).ok());
  EXPECT_FALSE(ethosn::readProgramBlob(ByteSpan(blob).first(blob.size() - 1)).ok());
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    pte::ByteVector damaged = blob;
    for (int k = 0; k < 4; ++k)
      damaged[random() % std::min<size_t>(damaged.size(), 400)] = std::byte(random());
    pte::Program program = built.program;
    program.methods[0].delegates[0].blob = damaged;
    const auto bytes = pte::writeProgram(program);
    if (!bytes.ok()) continue;
    auto runner = device::Runner::open(asBytes(*bytes));
    if (!runner.ok()) continue;
    std::vector<Tensor> inputs;
    for (const auto& io : runner->inputs()) inputs.push_back(Tensor::zeros(io.dtype, io.shape));
    [[maybe_unused]] const auto ran = runner->run(inputs);  // may fail, but must not crash
  }
}

}  // namespace
}  // namespace carina::pipeline
