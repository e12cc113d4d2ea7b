// SPDX-License-Identifier: Apache-2.0
// The networks under models/, end to end: compiled wholly for the NPU, run through runtime, driver and model,
// equal to the TOSA interpreter bit for bit and to the fake-quant simulation within a quantum. A subset of
// targets and memory modes; scripts/matrix.sh covers all.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/file.hpp"
#include "base/npy.hpp"
#include "pipeline/run.hpp"
#include "pipeline/verify.hpp"
#include "pte/delegate_blob.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::pipeline {
namespace {

Options optionsFor(const std::string& network, const std::string& target, const std::string& mode) {
  Options options;
  options.model = test::modelFile(network + ".pt2");
  options.calibration = test::modelFile(network + ".npz");
  options.target = target;
  options.memoryMode = mode;
  return options;
}

/// Verifies the first `count` samples in `arrays`.
Result<Verification> verifySome(const Build& built, const NamedTensors& arrays, size_t count) {
  CARINA_TRY(std::vector<quantize::Sample> samples, verificationSamples(built, arrays));
  samples.resize(count);
  return verify(built, samples);
}

struct Place {
  const char* target;
  const char* mode;
};

class Networks : public testing::TestWithParam<std::tuple<const char*, Place>> {};

TEST_P(Networks, NpuEqualsTosa) {
  const auto& [network, place] = GetParam();
  auto built = require(build(optionsFor(network, place.target, place.mode)));
  EXPECT_TRUE(built.partitioned.wholly);
  EXPECT_EQ(built.compiled.size(), 1u);

  auto arrays = require(readNpz(test::modelFile(std::string(network) + ".npz")));
  auto result = require(verifySome(built, arrays, 2));
  EXPECT_TRUE(result.ok());
  EXPECT_FALSE(result.layers.empty());
  for (const LayerResult& layer : result.layers) {
    EXPECT_EQ(layer.mismatches, 0) << layer.value << ": " << layer.actual << " instead of " << layer.expected
                                   << " at " << layer.firstMismatch;
  }
  for (const OutputResult& output : result.outputs) {
    EXPECT_EQ(output.npuMismatches, 0);
    EXPECT_LE(static_cast<double>(output.beyondOneLsb), 0.001 * static_cast<double>(output.elements));
    EXPECT_GT(output.program.decibels(), 15.0);
    EXPECT_GT(output.ends.decibels(), output.program.decibels() - 1);
  }
  EXPECT_GT(result.cycles, 0);
}

class Spectra : public testing::TestWithParam<std::tuple<const char*, const char*, Quantization>> {};

/// Fourier transforms and spectrograms (models/complex_networks.py).
TEST_P(Spectra, AreComputedOnTheNpu) {
  const auto& [network, target, quantization] = GetParam();
  Options options = optionsFor(network, target, "");
  options.model = test::dataDir() / "pt2" / (std::string(network) + ".pt2");
  options.calibration = test::dataDir() / "pt2" / (std::string(network) + ".npz");
  options.quantization = quantization;
  const auto built = require(build(options));
  EXPECT_TRUE(built.partitioned.wholly);
  const auto result = require(verifySome(built, require(readNpz(options.calibration)), 1));
  EXPECT_TRUE(result.ok());
  for (const OutputResult& output : result.outputs) {
    EXPECT_EQ(output.npuMismatches, 0);
    EXPECT_GT(output.program.decibels(), quantization == Quantization::Int8 ? 30 : 45) << output.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Pt2, Spectra,
                         testing::Combine(testing::Values("complex_transforms", "complex_frames"),
                                          testing::Values("ethos-u55-128", "ethos-u85-256"),
                                          testing::Values(Quantization::Int8, Quantization::Int16x8)));

/// Lets every operation start while the three blocks before it are unfinished: correct in the model, a race
/// in hardware.
TEST(Checker, FindingsFailTheVerification) {
  const Options options = optionsFor("digits8", "ethos-u55-128", "");
  auto built = require(build(options));
  pte::Delegate& delegate = built.program.methods[0].delegates[0];
  auto blob = require(pte::parseDelegateBlob(delegate.blob));
  for (size_t at = 0; at + 4 <= blob.payload.size(); at += 4) {
    uint32_t word = 0;
    std::memcpy(&word, &blob.payload[at], 4);
    if ((word & 0xffff) != 0x012f) continue;  // NPU_SET_BLOCKDEP
    word = 3u << 16 | 0x012f;
    std::memcpy(&blob.payload[at], &word, 4);
  }
  delegate.blob = pte::buildDelegateBlob(blob);
  auto arrays = require(readNpz(options.calibration));
  auto result = require(verifySome(built, arrays, 1));
  EXPECT_EQ(result.delegateMismatches, 0);
  ASSERT_FALSE(result.findings.empty());
  EXPECT_NE(result.findings[0].find("BLOCKDEP 3"), std::string::npos) << result.findings[0];
  EXPECT_FALSE(result.ok());
}

constexpr Place kPlaces[] = {
    {"ethos-u55-32", "Shared_Sram"},      {"ethos-u55-128", "Sram_Only"},
    {"ethos-u55-256", "Shared_Sram"},     {"ethos-u65-256", "Dedicated_Sram_384KB"},
    {"ethos-u65-512", "Sram_Only"},       {"ethos-u85-128", "Shared_Sram"},
    {"ethos-u85-256", "Sram_Only"},       {"ethos-u85-512", "Dedicated_Sram_256KB"},
    {"ethos-u85-2048", "Dedicated_Sram"},
};

std::string placeName(const testing::TestParamInfo<Networks::ParamType>& info) {
  std::string name = std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param).target + "_" +
                     std::get<1>(info.param).mode;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, Networks,
                         testing::Combine(testing::Values("digits8", "mobile", "residual", "mixed", "dense"),
                                          testing::ValuesIn(kPlaces)),
                         placeName);

struct Split {
  const char* network;
  std::vector<std::string> ops, names, modules;
};

class SplitNetworks : public testing::TestWithParam<Split> {};

TEST_P(SplitNetworks, NpuAndCpuPartsAreBothExact) {
  Options options = optionsFor(GetParam().network, "ethos-u55-128", "");
  options.cpuOps = GetParam().ops;
  options.cpuNames = GetParam().names;
  options.cpuModules = GetParam().modules;
  auto built = require(build(options));
  EXPECT_FALSE(built.partitioned.wholly);
  EXPECT_GE(built.compiled.size(), 1u);
  EXPECT_FALSE(built.partitioned.refusals.empty());
  auto arrays = require(readNpz(options.calibration));
  auto result = require(verifySome(built, arrays, 1));
  EXPECT_TRUE(result.ok());
  EXPECT_FALSE(result.cpu.empty());
  for (const CpuResult& node : result.cpu) EXPECT_EQ(node.mismatches, 0) << node.op << " at " << node.where;
  // Only the boundaries of the parts differ from the whole network: the simulation is the same.
  for (const OutputResult& output : result.outputs) {
    EXPECT_LE(static_cast<double>(output.beyondOneLsb), 0.01 * static_cast<double>(output.elements));
  }
}

INSTANTIATE_TEST_SUITE_P(All, SplitNetworks,
                         testing::Values(Split{"residual", {"add"}, {}, {}},
                                         Split{"digits8", {"relu"}, {}, {}},
                                         Split{"dense", {}, {"linear_1"}, {}},
                                         Split{"mobile", {}, {"conv2d_1"}, {}}));

class CpuNetworks : public testing::TestWithParam<const char*> {};

TEST_P(CpuNetworks, RunInFloatAsExported) {
  Options options = optionsFor(GetParam(), "cpu", "");
  auto arrays = require(readNpz(options.calibration));
  auto built = require(build(options));
  EXPECT_TRUE(built.compiled.empty());
  auto result = require(verifySome(built, arrays, 1));
  EXPECT_TRUE(result.ok());
  for (const OutputResult& output : result.outputs) EXPECT_GT(output.program.decibels(), 90.0) << output.name;
}

INSTANTIATE_TEST_SUITE_P(All, CpuNetworks,
                         testing::Values("digits8", "mobile", "residual", "mixed", "dense"));

TEST(CpuNetworks, RunQuantizedOnRequest) {
  Options options = optionsFor("digits8", "cpu", "");
  options.quantization = Quantization::Int8;
  auto built = require(build(options));
  auto arrays = require(readNpz(options.calibration));
  auto result = require(verifySome(built, arrays, 1));
  EXPECT_TRUE(result.ok());
  EXPECT_LT(result.outputs.front().program.decibels(), 90.0);
}

TEST(Requests, ThatMatchNothingAreErrors) {
  Options options = optionsFor("dense", "ethos-u55-128", "");
  options.cpuOps = {"conv_transpose2d"};
  EXPECT_NE(errorOf(build(options)).find("conv_transpose2d"), std::string::npos);
}

TEST(Digits, AccuracyOnTheNpuIsCloseToTheFloatNetwork) {
  auto built = require(build(optionsFor("digits8", "ethos-u55-128", "")));
  const test::TempDir folder;
  ASSERT_TRUE(writeOutput(built, folder / "digits8.pte").ok());
  auto arrays = require(readNpz(test::modelFile("digits8_eval.npz")));
  RunOptions run;
  run.file = folder / "digits8.pte";
  auto result = require(runFile(run, arrays));
  ASSERT_TRUE(result.correct.has_value());
  const double floatTop1 = findTensor(arrays, "float_top1")->realAt(0);
  EXPECT_EQ(result.samples, 200u);
  EXPECT_GE(static_cast<double>(*result.correct) / 200.0, floatTop1 - 0.011);
  EXPECT_EQ(result.outputs.front().second.shape(), (Shape{200, 10}));
}

TEST(IntegerIo, HasTheCommandsAndConstantsOfFloatIo) {
  Options floatIo = optionsFor("digits8", "ethos-u85-256", "");
  Options integerIo = floatIo;
  integerIo.inputs = integerIo.outputs = ProgramIo::Int8;
  auto a = require(build(floatIo));
  auto b = require(build(integerIo));
  EXPECT_EQ(b.graph().inputs()[0]->dtype(), DType::Int8);
  EXPECT_EQ(b.graph().outputs()[0]->dtype(), DType::Int8);
  ASSERT_TRUE(b.graph().inputs()[0]->quantization.has_value());
  EXPECT_EQ(a.compiled[0].commands, b.compiled[0].commands);
  EXPECT_EQ(a.compiled[0].constants, b.compiled[0].constants);
}

TEST(Determinism, TheSameNetworkProducesTheSameBytes) {
  auto a = require(build(optionsFor("mixed", "ethos-u65-512", "")));
  auto b = require(build(optionsFor("mixed", "ethos-u65-512", "")));
  EXPECT_EQ(*pte::writeProgram(a.program), *pte::writeProgram(b.program));
}

TEST(Program, SurvivesWritingAndReading) {
  auto built = require(build(optionsFor("mixed", "ethos-u55-64", "")));
  const std::string bytes = *pte::writeProgram(built.program);
  auto read = require(pte::readProgram(asBytes(bytes)));
  EXPECT_EQ(*pte::writeProgram(read), bytes);
}

}  // namespace
}  // namespace carina::pipeline
