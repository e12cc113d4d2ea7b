// SPDX-License-Identifier: Apache-2.0
// The whole set of TOSA vectors and the graphs that ExecuTorch made, from the larger suites.
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/fixtures.hpp"
#include "tosa/float_rules.hpp"
#include "tosa/vector_files.hpp"
#include "tosa_io/tosa_reader.hpp"

namespace carina::test {
namespace {

namespace fs = std::filesystem;

nlohmann::json readIndex(const fs::path& folder) {
  std::ifstream file(folder / "index.json");
  return nlohmann::json::parse(file);
}

TEST(TosaConformance, IntegerVectorsBitExact) {
  CARINA_NEED_FIXTURES(fixtures);
  const fs::path folder = fixtures / "vectors" / "tosa";
  const auto index = readIndex(folder);
  ASSERT_GE(index["tests"].size(), 500u);
  for (const auto& test : index["tests"]) {
    const std::string name = test["name"];
    EXPECT_TRUE(reproduces(folder / (name + ".tosa"), folder / (name + ".npz"))) << name;
  }
}

TEST(TosaConformance, RoundTrip) {
  CARINA_NEED_FIXTURES(fixtures);
  const fs::path folder = fixtures / "vectors" / "tosa";
  const auto index = readIndex(folder);
  ASSERT_GE(index["tests"].size(), 500u);
  for (const auto& test : index["tests"]) {
    const std::string name = test["name"];
    EXPECT_TRUE(survivesRoundTrip(folder / (name + ".tosa"), folder / (name + ".npz"))) << name;
  }
}

TEST(TosaConformance, Float32VectorsWithinTolerance) {
  CARINA_NEED_FIXTURES(fixtures);
  const fs::path folder = fixtures / "vectors" / "tosa";
  const auto index = readIndex(folder);
  ASSERT_GE(index["fp32"].size(), 50u);
  for (const auto& test : index["fp32"]) {
    const std::string name = test["name"];
    EXPECT_TRUE(withinTolerance(folder / "fp32" / (name + ".tosa"), folder / "fp32" / (name + ".npz")))
        << name;
  }
}

TEST(TosaConformance, InvalidGraphsAreRefusedByTheirRule) {
  CARINA_NEED_FIXTURES(fixtures);
  const fs::path folder = fixtures / "vectors" / "tosa";
  const auto index = readIndex(folder);
  ASSERT_GE(index["invalid"].size(), 90u);
  for (const auto& test : index["invalid"]) {
    const std::string name = test["name"], rule = test["rule"];
    const auto graph = tosa_io::readTosa(folder / "invalid" / (name + ".tosa"));
    ASSERT_FALSE(graph.ok()) << name;
    EXPECT_NE(graph.error().str().find("(" + rule + ")"), std::string::npos)
        << name << ": " << graph.error().str();
  }
}

TEST(TosaConformance, GraphsOfExecutorchBitExact) {
  CARINA_NEED_FIXTURES(fixtures);
  const auto files = filesIn(fixtures / "vectors" / "executorch", ".tosa");
  ASSERT_GE(files.size(), 40u);
  size_t compared = 0;
  for (const fs::path& tosa : files) {
    fs::path npz = tosa;
    npz.replace_filename(tosa.stem().string() + "_ref.npz");
    if (!fs::exists(npz)) {
      const auto graph = tosa_io::readTosa(tosa);
      EXPECT_TRUE(graph.ok()) << tosa << ": " << graph.error().str();
      continue;
    }
    ++compared;
    EXPECT_TRUE(reproduces(tosa, npz)) << tosa;
  }
  EXPECT_GE(compared, 40u);
}

}  // namespace
}  // namespace carina::test
