// SPDX-License-Identifier: Apache-2.0
#include "pipeline/ledger.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/diff.hpp"
#include "support/require.hpp"

namespace carina::pipeline {
namespace {

using testing::HasSubstr;

/// "name module source kind" with cycles.
LedgerLayer layer(std::string name, std::string module, std::string source, std::string kind,
                  int64_t cycles) {
  LedgerLayer result;
  result.name = std::move(name);
  result.modulePath = std::move(module);
  result.source = std::move(source);
  result.kind = std::move(kind);
  result.cycles = cycles;
  return result;
}

std::string pairsOf(const LedgerDiff& diff) {
  std::string text;
  for (const LedgerDiff::Pair& pair : diff.layers) {
    text += fmt::format("{}={}{}\n", pair.a ? pair.a->name : "", pair.b ? pair.b->name : "",
                        pair.changed() ? " *" : "");
  }
  return text;
}

TEST(Ledger, MatchesLayersWhoseNamesAnInsertionShifts) {
  Ledger a, b;
  a.layers = {layer("conv2d", "stem", "net.py:3", "CONV", 10),
              layer("conv2d_1", "head", "net.py:4", "CONV", 20)};
  b.layers = {layer("conv2d", "stem", "net.py:3", "CONV", 10),
              layer("conv2d_1", "new", "net.py:4", "CONV", 5),
              layer("conv2d_2", "head", "net.py:5", "CONV", 25)};
  EXPECT_EQ(pairsOf(diffLedgers(std::move(a), std::move(b))),
            "conv2d=conv2d\n=conv2d_1 *\nconv2d_1=conv2d_2 *\n");
}

TEST(Ledger, WithoutModulesTheSourceLineDecides) {
  Ledger a, b;
  a.layers = {layer("add", "", "net.py:3", "ADD", 10), layer("add_1", "", "net.py:7", "ADD", 20)};
  b.layers = {layer("add", "", "net.py:3", "ADD", 10), layer("add_1", "", "net.py:5", "ADD", 1),
              layer("add_2", "", "net.py:7", "ADD", 20)};
  EXPECT_EQ(pairsOf(diffLedgers(std::move(a), std::move(b))), "add=add\n=add_1 *\nadd_1=add_2\n");
}

TEST(Ledger, RemovedLayersFollowTheirPredecessor) {
  Ledger a, b;
  a.layers = {layer("x", "m", "", "CONV", 1), layer("y", "n", "", "POOL", 2), layer("z", "o", "", "CONV", 3)};
  b.layers = {layer("x", "m", "", "CONV", 1), layer("z", "o", "", "CONV", 3)};
  EXPECT_EQ(pairsOf(diffLedgers(std::move(a), std::move(b))), "x=x\ny= *\nz=z\n");
}

TEST(Ledger, UnnamedOperationsAreMatchedByWhatTheyDo) {
  Ledger a, b;
  a.layers = {layer("", "", "", "CONV", 1), layer("", "", "", "POOL", 2)};
  a.layers[0].what = "conv 8x8x16";
  a.layers[1].what = "pool 8x8x16";
  b.layers = {layer("", "", "", "POOL", 9), layer("", "", "", "CONV", 1)};
  b.layers[0].what = "pool 8x8x16";
  b.layers[1].what = "conv 8x8x16";
  const LedgerDiff diff = diffLedgers(std::move(a), std::move(b));
  EXPECT_FALSE(diff.byName);
  ASSERT_EQ(diff.layers.size(), 2u);
  EXPECT_EQ(diff.layers[0].a->kind, "POOL");
  EXPECT_TRUE(diff.layers[0].changed());
  EXPECT_FALSE(diff.layers[1].changed());
}

TEST(Ledger, EqualLedgersHaveNoDifference) {
  const auto ledger = [] {
    Ledger result;
    for (int i = 0; i < 5; ++i) result.layers.push_back(layer("same", "", "", "ADD", 7));
    result.cycles = 35;
    return result;
  };
  const LedgerDiff diff = diffLedgers(ledger(), ledger());
  EXPECT_THAT(report::diffText(diff, false), HasSubstr("all 5 layers are equal"));
}

TEST(Ledger, PlacementAndAccuracyAreDifferences) {
  Ledger a, b;
  a.layers = {layer("gelu", "act", "", "TABLE", 5)};
  a.layers[0].sqnr = 40.0;
  b.layers = {layer("gelu", "act", "", "aten.gelu", 5)};
  b.layers[0].onNpu = false;
  b.layers[0].cycles.reset();
  const LedgerDiff diff = diffLedgers(std::move(a), std::move(b));
  EXPECT_THAT(report::diffText(diff, false), HasSubstr("NPU -> CPU"));
  EXPECT_THAT(report::diffMarkdown(diff, false), HasSubstr("| NPU -> CPU |"));
}

TEST(Ledger, MarkdownAndCsvEscapeOddNames) {
  Ledger a, b;
  a.layers = {layer("a|b,\"c\"", "m", "", "ADD", 5)};
  b.layers = {layer("a|b,\"c\"", "m", "", "ADD", 6)};
  const LedgerDiff diff = diffLedgers(std::move(a), std::move(b));
  EXPECT_THAT(report::diffMarkdown(diff, false), HasSubstr("a\\|b"));
  EXPECT_THAT(report::diffCsv(diff), HasSubstr("\"a|b,\"\"c\"\"\",m,"));
}

TEST(Ledger, ReadsProfilesAndReports) {
  const auto profile = require(parseLedger(
      R"({"schema": "carina.profile/1", "target": "ethos-u55-128", "clock_hz": 5e8, "parts": [)"
      R"({"cycles": 10, "macs": 4, "bytes": {"arena": 64, "constants": 8}, "layers": [)"
      R"({"name": "conv", "module": "m", "source": "s:1", "kind": "CONV", "cycles": 10, "read_bytes": [1, 2],)"
      R"( "written_bytes": [3, 4]}]}, {"cycles": 5, "macs": 1, "bytes": {"arena": 32, "constants": 8},)"
      R"( "layers": []}]})"));
  EXPECT_EQ(profile.cycles, 15);
  EXPECT_EQ(profile.arenaBytes, 64);
  EXPECT_EQ(profile.constantBytes, 16);
  ASSERT_EQ(profile.layers.size(), 1u);
  EXPECT_EQ(profile.layers[0].bytes, 10);

  const auto report = require(parseLedger(
      R"({"schema": "carina.report/1", "wholly_on_npu": false, "cycles": 7, "output_sqnr_db": 30.5, "parts": [],)"
      R"( "cpu": [{"op": "aten.gelu", "node": "gelu", "module": "act"}]})"));
  EXPECT_EQ(report.cycles, 7);
  EXPECT_EQ(report.sqnr, 30.5);
  ASSERT_EQ(report.layers.size(), 1u);
  EXPECT_FALSE(report.layers[0].onNpu);
}

TEST(Ledger, OtherJsonIsRefusedWithItsPlace) {
  const auto message = [](std::string_view text) { return parseLedger(text).error().str(); };
  EXPECT_THAT(message("{"), HasSubstr("is not valid JSON"));
  EXPECT_THAT(message("[1]"), HasSubstr("not an object"));
  EXPECT_THAT(message("{}"), HasSubstr("schema"));
  EXPECT_THAT(message(R"({"schema": "carina.profile/99", "parts": []})"), HasSubstr("carina.profile/99"));
  EXPECT_THAT(message(R"({"schema": "carina.profile/1"})"), HasSubstr("parts"));
  EXPECT_THAT(message(R"({"schema": "carina.profile/1", "parts": [3]})"), HasSubstr("parts"));
  EXPECT_THAT(message(R"({"schema": "carina.profile/1", "parts": [{"layers": [{"cycles": "many"}]}]})"),
              HasSubstr("cycles"));
  EXPECT_THAT(
      message(R"({"schema": "carina.profile/1", "parts": [{"layers": [{"cycles": 18446744073709551615}]}]})"),
      HasSubstr("cycles"));
  EXPECT_THAT(message(std::string(100, '[')), HasSubstr("nested too deeply"));
}

}  // namespace
}  // namespace carina::pipeline
