// SPDX-License-Identifier: Apache-2.0
#include "support/golden.hpp"

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/file.hpp"
#include "support/contents.hpp"

namespace carina::test {
namespace {

bool updating() {
  const char* flag = std::getenv("CARINA_UPDATE_GOLDENS");
  return flag && std::string(flag) == "1";
}

::testing::AssertionResult firstDifference(const std::string& name, const std::string& expected,
                                           const std::string& actual) {
  std::istringstream left(expected), right(actual);
  std::string a, b;
  for (int line = 1;; ++line) {
    const bool hasA = static_cast<bool>(std::getline(left, a));
    const bool hasB = static_cast<bool>(std::getline(right, b));
    if (hasA && hasB && a == b) continue;
    return ::testing::AssertionFailure()
           << "tests/golden/" << name << ":" << line << ": expected\n  " << (hasA ? a : "(end)")
           << "\ngot\n  " << (hasB ? b : "(end)") << "\nCARINA_UPDATE_GOLDENS=1 writes the new text.";
  }
}

}  // namespace

::testing::AssertionResult matchesGolden(const std::string& name, const std::string& text) {
  const std::filesystem::path path = std::filesystem::path(CARINA_SOURCE_DIR) / "tests" / "golden" / name;
  if (updating()) {
    OutputFiles files;
    auto status = files.add(path, text, true);
    if (status.ok()) status = files.commit();
    if (!status.ok()) return ::testing::AssertionFailure() << status.error().str();
    return ::testing::AssertionSuccess();
  }
  if (!std::filesystem::exists(path)) {
    return ::testing::AssertionFailure()
           << "tests/golden/" << name << " is missing; CARINA_UPDATE_GOLDENS=1 writes it";
  }
  const std::string expected = contentsOf(path);
  if (expected == text) return ::testing::AssertionSuccess();
  return firstDifference(name, expected, text);
}

}  // namespace carina::test
