// SPDX-License-Identifier: Apache-2.0
// Compares the table of kernels in docs/runtime.md with the list.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

#include "carina/kernels.hpp"
#include "support/contents.hpp"

namespace carina::rt {
namespace {

TEST(KernelDocs, TableHasEveryKernelAndNoOther) {
  const std::string page = test::contentsOf(CARINA_RUNTIME_DOCS);
  const size_t start = page.find("\n| kind | element types | operators |");
  ASSERT_NE(start, std::string::npos);
  const std::string table = page.substr(start, page.find("\n\n", start) - start);
  std::set<std::string> documented, known;
  const std::regex name("`([^`]+)`");
  for (std::sregex_iterator it(table.begin(), table.end(), name), end; it != end; ++it) {
    const std::string found = (*it)[1];
    documented.insert(found.find("::") == std::string::npos ? "aten::" + found : found);
  }
  for (const KernelInfo& info : kernelInfos()) known.insert(info.name);
  EXPECT_EQ(documented, known);
}

}  // namespace
}  // namespace carina::rt
