// SPDX-License-Identifier: Apache-2.0
// docs/tflite.md names every operator that lowers, and no other.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "lower_tfl/lower.hpp"
#include "support/fixtures.hpp"
#include "tfl/ops.hpp"

namespace carina {
namespace {

/// Names in the first column of the table of operators.
std::set<std::string> documented() {
  std::ifstream file(test::dataDir() / "../../docs/tflite.md");
  std::set<std::string> names;
  bool inTable = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("| operator |")) inTable = true;
    if (!line.starts_with("|")) inTable = inTable && line.empty() && names.empty();
    if (!inTable || line.starts_with("| operator |") || line.starts_with("|---")) continue;
    std::stringstream cell(line.substr(1, line.find('|', 1) - 1));
    for (std::string name; std::getline(cell, name, ',');) {
      const size_t first = name.find_first_not_of(' '), last = name.find_last_not_of(' ');
      names.insert(name.substr(first, last - first + 1));
    }
  }
  return names;
}

TEST(TfliteDocumentation, NamesTheOperatorsThatLower) {
  std::set<std::string> lowered;
  for (const ir::OpDef& def : tfl::operators()) {
    if (lower_tfl::hasRule(def)) lowered.insert(std::string(def.name.substr(4)));
  }
  EXPECT_EQ(documented(), lowered);
}

}  // namespace
}  // namespace carina
