// SPDX-License-Identifier: Apache-2.0
// Where the larger test suites lie: exported networks and recorded vectors that are too big for the
// repository.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace carina::test {

/// $CARINA_FIXTURES, or `shared` beside the repository; nothing when neither is a folder. Holds fixtures/ and
/// vectors/.
std::optional<std::filesystem::path> fixturesDir();

/// tests/data of the repository.
std::filesystem::path dataDir();

/// models/`file` of the repository: the networks it ships.
std::filesystem::path modelFile(const std::string& file);

/// The files of `folder` (with sub-folders) whose names end in `suffix`, sorted by path. Empty when there is
/// no folder.
std::vector<std::filesystem::path> filesIn(const std::filesystem::path& folder, const std::string& suffix);

/// Whether a file under vectors/executorch belongs to one of the two programs whose streams do not compute
/// what their TOSA graphs say (README there): material for what finds such faults, not for equality.
bool isMiscompiled(const std::filesystem::path& file);

}  // namespace carina::test

/// At the start of a test: skips it when the larger suites are absent; afterwards `name` is their folder.
#define CARINA_NEED_FIXTURES(name)                                                            \
  const auto name##Found = ::carina::test::fixturesDir();                                     \
  if (!name##Found) GTEST_SKIP() << "set CARINA_FIXTURES to the folder of the larger suites"; \
  const std::filesystem::path& name = *name##Found
