// SPDX-License-Identifier: Apache-2.0
// support_queries write COUNT SEED: random queries, one a line (support_protocol.hpp).
// support_queries answer: reads queries, writes answers. CARINA_ETHOSN_SUPPORT_PROGRAM names a program that
// answers the same protocol from an external library, for the test.
// support_queries sample PER_REASON < ANSWERED: of the lines QUERY<TAB>ANSWER, prints the first PER_REASON
// for each operator and reason.
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include "ethosn/random_queries.hpp"

namespace carina::ethosn::test {
namespace {

int write(unsigned long count, unsigned long seed) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  for (unsigned long i = 0; i < count; ++i) std::cout << printQuery(randomQuery(random)) << '\n';
  return 0;
}

int answer() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const Result<TargetQuery> query = parseQuery(line);
    if (!query) {
      std::cerr << query.error().str() << '\n';
      return 1;
    }
    std::cout << printAnswer(querySupport(query->target, query->query)) << '\n';
  }
  return 0;
}

int sample(int perReason) {
  std::map<std::string, int> seen;
  std::string line;
  while (std::getline(std::cin, line)) {
    const size_t tab = line.find('\t');
    std::string key = line.substr(0, line.find(' ')) + line.substr(tab);
    std::erase_if(key, [](char c) { return c >= '0' && c <= '9'; });
    if (line.size() < 400 && seen[key]++ < perReason) std::cout << line << '\n';
  }
  return 0;
}

}  // namespace
}  // namespace carina::ethosn::test

int main(int argc, char** argv) {
  using namespace carina::ethosn::test;
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "write" && argc == 4) {
    return write(std::strtoul(argv[2], nullptr, 10), std::strtoul(argv[3], nullptr, 10));
  }
  if (mode == "answer" && argc == 2) return answer();
  if (mode == "sample" && argc == 3) return sample(std::atoi(argv[2]));
  std::cerr << "usage: support_queries write COUNT SEED | answer | sample PER_REASON\n";
  return 2;
}
