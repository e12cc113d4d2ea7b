// SPDX-License-Identifier: Apache-2.0
#include "ci/project.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace carina::ci {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Result<Project> parse(std::string_view text) {
  return parseProject(text, "/project/carina.toml");
}

std::string refusal(std::string_view text) {
  const auto project = parse(text);
  return project.ok() ? "" : project.error().str();
}

TEST(Project, ExpandsNetworksTimesTargetsWithTheInnermostGates) {
  const auto project = parse(R"(
[gates]
require-npu = true
max-cycles = 1000

[[network]]
model = "nets/a.pt2"
calibrate = "a.npz"
quantize = "int16x8"
data = "held_out"
samples = 50
targets = ["ethos-u55-128", "Ethos_U85_256"]
gates = { max-cycles = 2000, min-top1 = 97.5 }

[network.target.Ethos_U85_256]
memory-mode = "Sram_Only"
gates.max-cycles = 500

[[network]]
name = "b small"
model = "b.tflite"
targets = ["ethos-u65-256"]
)");
  ASSERT_TRUE(project.ok()) << project.error().str();
  ASSERT_EQ(project->jobs.size(), 3u);
  const Job &first = project->jobs[0], &second = project->jobs[1], &third = project->jobs[2];
  EXPECT_EQ(first.name, "a ethos-u55-128");
  EXPECT_EQ(first.build.model, "/project/nets/a.pt2");
  EXPECT_EQ(first.build.calibration, "/project/a.npz");
  EXPECT_EQ(first.build.quantization, pipeline::Quantization::Int16x8);
  EXPECT_EQ(first.evaluate.data, "/project/held_out");
  EXPECT_EQ(first.evaluate.most, 50u);
  EXPECT_EQ(first.gates.maxCycles, 2000);
  EXPECT_EQ(first.gates.minTop1, 97.5);
  EXPECT_TRUE(first.gates.requireNpu);
  EXPECT_EQ(second.build.target, "ethos-u85-256");
  EXPECT_EQ(second.build.memoryMode, "Sram_Only");
  EXPECT_EQ(second.gates.maxCycles, 500);
  EXPECT_EQ(second.gates.minTop1, 97.5);
  EXPECT_EQ(third.folder, "b-small-ethos-u65-256");
  EXPECT_EQ(third.gates.maxCycles, 1000);
}

TEST(Project, ReportsMistakesWithTheirLine) {
  const std::string network = "[[network]]\nmodel = \"a.pt2\"\ntargets = [\"ethos-u55-128\"]\n";
  EXPECT_EQ(refusal(network), "");
  EXPECT_THAT(refusal("[[network"), HasSubstr("is not valid TOML"));
  EXPECT_THAT(refusal(""), HasSubstr("there is no network"));
  EXPECT_THAT(refusal("network = 3"), HasSubstr("there is no network"));
  EXPECT_THAT(refusal("[[network]]\ntargets = [\"ethos-u55-128\"]\n"), HasSubstr("has no model"));
  EXPECT_THAT(refusal("[[network]]\nmodel = \"a.pt2\"\n"), HasSubstr("has no targets"));
  EXPECT_THAT(refusal(network + "calibrat = \"a.npz\"\n"),
              AllOf(HasSubstr("line 4"), HasSubstr("no key calibrat"), HasSubstr("calibrate")));
  EXPECT_THAT(refusal(network + "gates.max-cycles = \"many\"\n"),
              AllOf(HasSubstr("line 4"), HasSubstr("max-cycles is not a nonnegative integer")));
  EXPECT_THAT(refusal(network + "gates.max-cycles = -1\n"),
              HasSubstr("max-cycles is not a nonnegative integer"));
  EXPECT_THAT(refusal(network + "gates.min-sqnr = nan\n"), HasSubstr("min-sqnr is not a number"));
  EXPECT_THAT(refusal(network + "quantize = \"int4\"\n"), HasSubstr("int8, int16x8 or none"));
  EXPECT_THAT(refusal(network + network), HasSubstr("a ethos-u55-128 occurs twice"));
  EXPECT_THAT(refusal(network + "[network.target.ethos-u85-256]\n"),
              HasSubstr("not one of the network's targets"));
  EXPECT_THAT(refusal("x = " + std::string(100'000, '[')), HasSubstr("nested too deeply"));
  std::string dots = "a";
  for (int i = 0; i < 100'000; ++i) dots += ".a";
  EXPECT_THAT(refusal(dots + " = 1"), HasSubstr("nested too deeply"));
}

}  // namespace
}  // namespace carina::ci
