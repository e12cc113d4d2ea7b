// SPDX-License-Identifier: Apache-2.0
// Locations of the larger test suites: exported networks and recorded vectors that are too big for the
// repository.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace carina::test {

/// $CARINA_FIXTURES, or `shared` next to the repository; nullopt if there is no such folder. Holds fixtures/
/// and vectors/.
std::optional<std::filesystem::path> fixturesDir();

/// tests/data of the repository.
std::filesystem::path dataDir();

/// models/`file` of the repository: the networks it ships.
std::filesystem::path modelFile(const std::string& file);

/// The files of `folder` (with sub-folders) whose names end in `suffix`, sorted by path. Empty if the folder
/// does not exist.
std::vector<std::filesystem::path> filesIn(const std::filesystem::path& folder, const std::string& suffix);

/// Whether a file under vectors/executorch belongs to one of the two programs whose command streams do not
/// compute their TOSA graphs (see the README there): they test what detects such faults, not equality.
bool isMiscompiled(const std::filesystem::path& file);

}  // namespace carina::test

/// At the start of a test: skips it if the larger suites are absent; otherwise defines `name` as their
/// folder.
#define CARINA_NEED_FIXTURES(name)                                                            \
  const auto name##Found = ::carina::test::fixturesDir();                                     \
  if (!name##Found) GTEST_SKIP() << "set CARINA_FIXTURES to the folder of the larger suites"; \
  const std::filesystem::path& name = *name##Found
