// SPDX-License-Identifier: Apache-2.0
// Tests that are one small network each, in a text file:
//   graph @sum(%x: f32[2,5], %w1: f32[5]) -> (%y) { %0 = aten.add.Tensor(%x, %w1) %y = aten.sum.default(%0) }
//   // share 0.3
// A comment after the last brace holds the expected values, each after its name.
#pragma once

#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "aten/ops.hpp"
#include "ir/parser.hpp"
#include "support/fixtures.hpp"

namespace carina::test {

struct GraphCase {
  std::string name, text;
  std::map<std::string, double, std::less<>> expected;

  double number(std::string_view what, double otherwise) const {
    const auto found = expected.find(what);
    return found == expected.end() ? otherwise : found->second;
  }
};

inline void PrintTo(const GraphCase& c, std::ostream* out) {
  *out << c.name;
}

/// The networks of a file under tests/data.
inline std::vector<GraphCase> graphCases(const std::string& file) {
  std::ifstream lines(dataDir() / file);
  CARINA_CHECK(lines.is_open(), "the file of networks is there");
  constexpr std::string_view kHead = "graph @";
  std::vector<GraphCase> cases;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("//")) continue;
    if (line.starts_with(kHead))
      cases.push_back({line.substr(kHead.size(), line.find('(') - kHead.size()), "", {}});
    CARINA_CHECK(!cases.empty(), "a file of networks begins with one");
    GraphCase& last = cases.back();
    last.text += line + "\n";
    const size_t comment = line.rfind("}  // ");
    if (comment == std::string::npos) continue;
    std::istringstream words(line.substr(comment + 6));
    double value = 0;
    for (std::string what; words >> what >> value; words.ignore()) last.expected[what] = value;
  }
  return cases;
}

/// Parses the network of a case; inputs whose names begin with 'w' become constants.
inline ir::Graph graphOf(const GraphCase& c, const std::function<Tensor(const ir::Value&)>& weight) {
  auto graph = ir::parse(c.text, {aten::findOperator, [] { return std::vector<std::string>(); }});
  CARINA_CHECK(graph.ok(), (c.name + ": " + (graph.ok() ? "" : graph.error().str())).c_str());
  for (size_t i = graph->inputs().size(); i-- > 0;) {
    ir::Value* input = graph->inputs()[i];
    if (!input->name.starts_with('w')) continue;
    graph->replaceAllUses(input, graph->addConstant(weight(*input)));
    graph->removeInput(i);
  }
  return std::move(*graph);
}

}  // namespace carina::test
