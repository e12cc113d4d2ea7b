// SPDX-License-Identifier: Apache-2.0
// Small exports that once exposed a defect or a gap, each with its expected outcome. Needs CARINA_FIXTURES.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "aten/ops.hpp"
#include "base/npy.hpp"
#include "pipeline/run.hpp"
#include "pipeline/verify.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::pipeline {
namespace {

/// Whether the network compiles, and where it runs.
enum class Outcome : uint8_t { Refused, Compiles, WhollyOnNpu };

struct Row {
  const char* name;
  Outcome outcome = Outcome::WhollyOnNpu;
  const char* says = "";  // the error or a warning has this text
  /// SQNR of each output against torch's result (outN) or, if the file has none, against the float network.
  /// 0: not compared.
  double decibels = 0;
  /// How many of the elements, in thousandths, may differ from torch's result by more than one code of the
  /// output.
  double beyondOneCode = 1000;
  Quantization quantization = Quantization::Default;
  const char* target = "ethos-u85-256";
  int64_t first = 0;  // first element that is compared with torch's result
};

// In alphabetical order. Networks that compile also run on the NPU model, whose results must equal the TOSA
// interpreter's.
constexpr Row kRows[] = {
    {"fakequant", Outcome::WhollyOnNpu, "", 30, 1},
    {"kv_mutable", Outcome::WhollyOnNpu, "", 20},
    {"llama_outlier_token", Outcome::WhollyOnNpu, "", 12},
    {"llama_outlier_token", Outcome::WhollyOnNpu, "", 44, 1000, Quantization::Int16x8},
    {"ln_outlier_row", Outcome::WhollyOnNpu, "", 44, 1000, Quantization::Int16x8},
    {"pt2e_decomposed_linear", Outcome::WhollyOnNpu, "", 20, 1},
    {"pt2e_gru", Outcome::WhollyOnNpu, "", 20, 1},
    {"pt2e_int16_quantize", Outcome::Compiles, "", 60, 0},
    {"pt2e_lstm", Outcome::WhollyOnNpu, "", 20, 1},
    {"pt2e_rms", Outcome::WhollyOnNpu, "", 20, 1},
    {"pt2e_sdpa", Outcome::WhollyOnNpu, "", 20, 1},
    {"q_tensor_overload", Outcome::WhollyOnNpu, "", 30, 1},
    {"tanh_sdpa", Outcome::WhollyOnNpu, "", 33},
    {"uint8_in", Outcome::WhollyOnNpu, "", 40},
    {"vmap", Outcome::Refused, "program.run_decompositions()"},
    // The boxes fill the first 4 of 14 rows of 2,100; the scores once had no codes left.
    {"yolo_cat", Outcome::WhollyOnNpu, "", 30, 1000, Quantization::Default, "ethos-u85-256", 4 * 2100},
    {"yolo_cat", Outcome::WhollyOnNpu, "", 45, 1000, Quantization::Int16x8, "ethos-u55-128", 4 * 2100},
};

std::filesystem::path folderOf(const std::filesystem::path& fixtures) {
  return fixtures / "fixtures" / "defects";
}

class Defects : public testing::TestWithParam<Row> {};

bool anySays(std::span<const Diagnostic> diagnostics, std::string_view text) {
  return std::any_of(diagnostics.begin(), diagnostics.end(), [&](const Diagnostic& d) {
    return d.message.find(text) != std::string::npos || d.remedy.find(text) != std::string::npos;
  });
}

/// The scale of the dequantize node that produces an output; 1 for integers.
double quantumOf(const ir::Value& output) {
  if (!isFloat(output.dtype())) return 1;
  const auto dequantize = ir::producerAs<aten::DequantizePerTensor>(&output);
  return dequantize ? dequantize.scale() : 0;
}

void compareWithTorch(const Row& row, const Build& build, const NamedTensors& inputs,
                      const NamedTensors& arrays) {
  const test::TempDir folder;
  ASSERT_TRUE(writeOutput(build, folder / "program.pte").ok());
  RunOptions run;
  run.file = folder / "program.pte";
  const auto result = require(runFile(run, inputs));
  for (size_t o = 0; o < result.outputs.size(); ++o) {
    const Tensor* expected = findTensor(arrays, fmt::format("out{}", o));
    if (!expected) continue;
    const Tensor& actual = result.outputs[o].second;
    ASSERT_EQ(actual.numElements(), expected->numElements());
    const double quantum = quantumOf(*build.graph().outputs()[o]);
    int64_t beyond = 0;
    double signal = 0, noise = 0;
    for (int64_t i = row.first; i < expected->numElements(); ++i) {
      const double difference = actual.realAt(i) - expected->realAt(i);
      beyond += std::abs(difference) > (row.beyondOneCode == 0 ? 0 : 1.001 * quantum);
      signal += expected->realAt(i) * expected->realAt(i);
      noise += difference * difference;
    }
    const double decibels = noise == 0 ? 999 : 10 * std::log10(signal / noise);
    EXPECT_GE(decibels, row.decibels) << "output " << o;
    EXPECT_LE(1000.0 * static_cast<double>(beyond),
              row.beyondOneCode * static_cast<double>(expected->numElements()))
        << "output " << o;
  }
}

TEST_P(Defects, AreFixed) {
  CARINA_NEED_FIXTURES(fixtures);
  const Row& row = GetParam();
  Options options;
  options.model = folderOf(fixtures) / fmt::format("{}.pt2", row.name);
  options.calibration = folderOf(fixtures) / fmt::format("{}.npz", row.name);
  options.target = row.target;
  options.quantization = row.quantization;
  const auto built = build(options);
  if (row.outcome == Outcome::Refused) {
    ASSERT_FALSE(built.ok());
    EXPECT_TRUE(anySays(built.error().diagnostics(), row.says)) << built.error().str();
    return;
  }
  ASSERT_TRUE(built.ok()) << built.error().str();
  EXPECT_TRUE(std::string_view(row.says).empty() || anySays(built->warnings, row.says));
  EXPECT_TRUE(row.outcome != Outcome::WhollyOnNpu || built->partitioned.wholly);
  const auto arrays = require(readNpz(options.calibration));
  NamedTensors inputs;
  for (const auto& [name, tensor] : arrays) {
    if (name.starts_with("in")) inputs.emplace_back(name, tensor);
  }
  const auto samples = require(verificationSamples(*built, inputs));
  const auto verified = require(verify(*built, samples));
  EXPECT_TRUE(verified.ok());
  if (findTensor(arrays, "out0")) {
    compareWithTorch(row, *built, inputs, arrays);
    return;
  }
  for (const OutputResult& output : verified.outputs)
    EXPECT_GE(output.program.decibels(), row.decibels) << output.name;
}

INSTANTIATE_TEST_SUITE_P(All, Defects, testing::ValuesIn(kRows), [](const auto& test) {
  const bool wide = test.param.quantization == Quantization::Int16x8;
  return std::string(test.param.name) + (wide ? "_16x8" : "");
});

TEST(DefectTable, HasEveryFile) {
  CARINA_NEED_FIXTURES(fixtures);
  std::set<std::string> known;
  for (const Row& row : kRows) known.insert(row.name);
  const auto files = test::filesIn(folderOf(fixtures), ".pt2");
  EXPECT_FALSE(files.empty());
  for (const auto& file : files) EXPECT_EQ(known.count(file.stem().string()), 1u) << file;
}

}  // namespace
}  // namespace carina::pipeline
