// SPDX-License-Identifier: Apache-2.0
// Networks compiled by other compilers: CARINA_ETHOSN_NETWORKS names a folder of NAME.encn files. If
// NAME.txt, the network as text, is next to a file, its outputs are compared. The name contains the variant:
// "....1t4....", "4t2", "4t4", "8t2".
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "base/file.hpp"
#include "ethosn/model/run.hpp"
#include "reference_network.hpp"
#include "support/contents.hpp"
#include "support/require.hpp"

namespace carina::ethosn {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> networks() {
  std::vector<fs::path> files;
  const char* folder = std::getenv("CARINA_ETHOSN_NETWORKS");
  if (folder == nullptr || !fs::is_directory(folder)) return files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".encn") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

const Variant& variantOfName(const std::string& name) {
  for (const auto& [part, variant] :
       {std::pair(".1t4", "ethos-n78-1tops-4ple"), std::pair(".4t2", "ethos-n78-4tops-2ple"),
        std::pair(".8t2", "ethos-n78-8tops-2ple")}) {
    if (name.find(part) != std::string::npos) return **findVariant(variant);
  }
  return **findVariant("ethos-n78-4tops-4ple");
}

/// How far outputs may be from the reference, whose tables differ from those of the hardware.
int toleranceOf(const std::string& name) {
  return name.starts_with("sigmoid") || name.starts_with("tanh") ? 1 : 0;
}

void compare(const fs::path& file, int spread, uint64_t order) {
  SCOPED_TRACE(file.filename().string());
  auto mapped = require(MappedFile::open(file));
  auto network = require(readCompiledNetwork(mapped->bytes()));
  const std::vector<uint8_t> written = writeCompiledNetwork(network);
  ASSERT_TRUE(std::ranges::equal(std::as_bytes(std::span(written)), mapped->bytes()))
      << "writing it back gives other bytes";
  const ByteSpan bytes = *commandStreamBytes(network);
  auto stream = require(readCommandStream(bytes));
  const std::vector<uint8_t> again = *writeCommandStream(stream);
  ASSERT_LE(again.size(), bytes.size());
  ASSERT_TRUE(std::ranges::equal(std::as_bytes(std::span(again)), bytes.first(again.size())));

  const std::string words = carina::test::contentsOf(fs::path(file).replace_extension(".txt"));
  const test::ReferenceNetwork reference(words);
  // Sums of values far from the zero point nearly always saturate; near it, every rounding error shows.
  std::mt19937 random(static_cast<uint32_t>(std::hash<std::string>()(file.filename().string())));
  std::vector<std::vector<uint8_t>> inputs;
  std::vector<ByteSpan> spans;
  for (const BufferInfo& info : network.inputs) {
    auto& input = inputs.emplace_back(info.size);
    const auto zeroPoints = reference.inputZeroPoints();
    const uint8_t zeroPoint = inputs.size() <= zeroPoints.size() ? zeroPoints[inputs.size() - 1] : 0;
    for (uint8_t& byte : input) {
      byte =
          spread == 0
              ? static_cast<uint8_t>(random() >> 8)
              : static_cast<uint8_t>(zeroPoint + static_cast<int>(random() >> 8) % (spread + 1) - spread / 3);
    }
  }
  spans.reserve(inputs.size());
  for (const auto& input : inputs) spans.push_back(std::as_bytes(std::span(input)));
  RunOptions options;
  options.order = order;
  auto result =
      require(runNetwork(network, spans, largestTarget(variantOfName(file.filename().string())), options));
  for (const Finding& finding : result.findings) ADD_FAILURE() << finding.str();

  if (words.empty()) return;
  const auto expected = reference.run(inputs);
  ASSERT_EQ(result.outputs.size(), expected.size());
  const bool isSigned = words.find("type s8") != std::string::npos;
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(result.outputs[i].size(), expected[i].size());
    size_t wrong = 0;
    int largest = 0;
    for (size_t k = 0; k < expected[i].size(); ++k) {
      const auto value = [&](uint8_t byte) { return isSigned ? static_cast<int8_t>(byte) : int{byte}; };
      const int difference = std::abs(value(result.outputs[i][k]) - value(expected[i][k]));
      largest = std::max(largest, difference);
      wrong += difference > toleranceOf(file.filename().string());
    }
    EXPECT_EQ(wrong, 0u) << "output " << i << " of " << expected[i].size() << " elements, largest difference "
                         << largest;
  }
}

TEST(EthosNNetworks, FromOtherCompilersMatchTheReference) {
  const auto files = networks();
  if (files.empty()) GTEST_SKIP() << "CARINA_ETHOSN_NETWORKS names no folder of .encn files";
  for (const fs::path& file : files) compare(file, 3, 0);
}

TEST(EthosNNetworks, OutputsDoNotDependOnTheOrderOfTheLists) {
  const auto files = networks();
  if (files.empty()) GTEST_SKIP() << "CARINA_ETHOSN_NETWORKS names no folder of .encn files";
  for (size_t i = 0; i < files.size(); i += 3) compare(files[i], i % 2 == 0 ? 0 : 20, 1 + i);
}

}  // namespace
}  // namespace carina::ethosn
