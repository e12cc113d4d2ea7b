// SPDX-License-Identifier: Apache-2.0
#include "pipeline/gates.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "report/gates.hpp"
#include "support/require.hpp"

namespace carina::pipeline {
namespace {

using testing::HasSubstr;

Measured measured() {
  Measured result;
  result.subject = "net.pt2";
  result.cycles = 1000;
  result.sram = 4096;
  result.sramParts = "arena 4096";
  result.sqnr = 30.0;
  result.wholly = false;
  result.onCpu = "aten.gelu (gelu): no table for it";
  return result;
}

TEST(Gates, ValuesAtTheLimitPass) {
  Gates gates;
  gates.maxCycles = 1000;
  gates.maxSram = 4096;
  gates.minSqnr = 30.0;
  const auto results = require(checkGates(gates, measured()));
  ASSERT_EQ(results.size(), 3u);
  for (const GateResult& result : results) EXPECT_TRUE(result.passed) << report::gateText(result);
}

TEST(Gates, AMissReportsTheLimitAndTheValue) {
  Gates gates;
  gates.maxCycles = 999;
  gates.maxSram = 4095;
  gates.minSqnr = 30.1;
  gates.requireNpu = true;
  const auto results = require(checkGates(gates, measured()));
  ASSERT_EQ(results.size(), 4u);
  for (const GateResult& result : results) EXPECT_FALSE(result.passed);
  EXPECT_EQ(report::gateText(results[0]), "net.pt2: --max-cycles 999 cycles: found 1000 cycles");
  EXPECT_EQ(report::gateText(results[1]), "net.pt2: --max-sram 4095 bytes: found 4096 bytes (arena 4096)");
  EXPECT_THAT(report::gateText(results[3]), HasSubstr("not entirely on the NPU (aten.gelu (gelu)"));
}

TEST(Gates, WithoutAComparisonNoGatePasses) {
  Gates gates;
  gates.minSqnr = -100;
  Measured nothing = measured();
  nothing.sqnr = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(checkGates(gates, nothing)->front().passed);
  nothing.sqnr = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(checkGates(gates, nothing)->front().passed);
}

TEST(Gates, UnmeasuredValuesAreErrors) {
  Gates gates;
  gates.minTop1 = 90;
  EXPECT_THAT(errorOf(checkGates(gates, measured())), HasSubstr("--min-top1"));
}

TEST(Gates, JunitCountsMissesAndEscapesNames) {
  const std::vector<GateResult> results{{"a<b>&\"c\"", "--max-cycles", "1 cycles", "2 cycles", false},
                                        {"net", "--max-sram", "2 bytes", "1 bytes", true}};
  const std::string text = report::junitText("carina compile", results);
  EXPECT_THAT(text, HasSubstr(R"(<testsuite name="carina compile" tests="2" failures="1" errors="0">)"));
  EXPECT_THAT(text, HasSubstr(R"(classname="a&lt;b&gt;&amp;&quot;c&quot;" name="max-cycles")"));
  EXPECT_THAT(text, HasSubstr("<failure message="));
}

}  // namespace
}  // namespace carina::pipeline
