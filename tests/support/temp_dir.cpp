// SPDX-License-Identifier: Apache-2.0
#include "support/temp_dir.hpp"

#include <cstdlib>
#include <system_error>

#include "base/check.hpp"

namespace carina::test {

TempDir::TempDir() {
  std::string pattern = (std::filesystem::temp_directory_path() / "carina-test-XXXXXX").string();
  CARINA_CHECK(::mkdtemp(pattern.data()) != nullptr, "a test needs a temporary folder");
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace carina::test
