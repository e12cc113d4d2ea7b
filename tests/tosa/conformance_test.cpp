// SPDX-License-Identifier: Apache-2.0
// All TOSA vectors, and the graphs that ExecuTorch produced, from the larger suites.
#include <gmock/gmock.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "support/fixtures.hpp"
#include "tosa/float_rules.hpp"
#include "tosa/vector_files.hpp"
#include "tosa_io/tosa_reader.hpp"

namespace carina::test {
namespace {

namespace fs = std::filesystem;

/// Calls `check` with each entry of a list in the index of the vectors, of which there are at least
/// `atLeast`, and with the path of its files without extension.
void forEach(const fs::path& fixtures, const char* list, const char* folder, size_t atLeast,
             const std::function<void(const nlohmann::json& test, const fs::path& stem)>& check) {
  const fs::path vectors = fixtures / "vectors" / "tosa";
  std::ifstream file(vectors / "index.json");
  const auto index = nlohmann::json::parse(file);
  ASSERT_GE(index[list].size(), atLeast);
  for (const auto& test : index[list]) {
    SCOPED_TRACE(test["name"]);
    check(test, vectors / folder / std::string(test["name"]));
  }
}

fs::path ending(const fs::path& stem, const char* ending) {
  return stem.string() + ending;
}

TEST(TosaConformance, IntegerVectorsBitExact) {
  CARINA_NEED_FIXTURES(fixtures);
  forEach(fixtures, "tests", "", 500, [](const auto&, const fs::path& stem) {
    EXPECT_TRUE(reproduces(ending(stem, ".tosa"), ending(stem, ".npz")));
  });
}

TEST(TosaConformance, RoundTrip) {
  CARINA_NEED_FIXTURES(fixtures);
  forEach(fixtures, "tests", "", 500, [](const auto&, const fs::path& stem) {
    EXPECT_TRUE(survivesRoundTrip(ending(stem, ".tosa"), ending(stem, ".npz")));
  });
}

TEST(TosaConformance, Float32VectorsWithinTolerance) {
  CARINA_NEED_FIXTURES(fixtures);
  forEach(fixtures, "fp32", "fp32", 50, [](const auto&, const fs::path& stem) {
    EXPECT_TRUE(withinTolerance(ending(stem, ".tosa"), ending(stem, ".npz")));
  });
}

TEST(TosaConformance, InvalidGraphsAreRefusedByTheirRule) {
  CARINA_NEED_FIXTURES(fixtures);
  forEach(fixtures, "invalid", "invalid", 90, [](const auto& test, const fs::path& stem) {
    const auto graph = tosa_io::readTosa(ending(stem, ".tosa"));
    ASSERT_FALSE(graph.ok());
    EXPECT_THAT(graph.error().str(), testing::HasSubstr("(" + std::string(test["rule"]) + ")"));
  });
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
