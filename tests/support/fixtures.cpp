// SPDX-License-Identifier: Apache-2.0
#include "support/fixtures.hpp"

#include <algorithm>
#include <cstdlib>

namespace carina::test {

namespace fs = std::filesystem;

std::optional<fs::path> fixturesDir() {
  std::error_code error;
  if (const char* given = std::getenv("CARINA_FIXTURES")) {
    if (*given != '\0' && fs::is_directory(given, error)) return fs::path(given);
    return std::nullopt;
  }
  const fs::path beside = fs::path(CARINA_SOURCE_DIR).parent_path() / "shared";
  if (fs::is_directory(beside / "fixtures", error)) return beside;
  return std::nullopt;
}

fs::path dataDir() {
  return fs::path(CARINA_SOURCE_DIR) / "tests" / "data";
}

fs::path modelFile(const std::string& file) {
  return fs::path(CARINA_SOURCE_DIR) / "models" / file;
}

std::vector<fs::path> filesIn(const fs::path& folder, const std::string& suffix) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const bool fits =
        name.size() >= suffix.size() && name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0;
    if (entry.is_regular_file(error) && fits) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool isMiscompiled(const fs::path& file) {
  const std::string path = file.generic_string();
  const auto isIn = [&](const char* folder) { return path.find(folder) != std::string::npos; };
  return isIn("lstm/ethos-u85-256_a16w8/") || isIn("transformer/ethos-u55-128/");
}

}  // namespace carina::test
