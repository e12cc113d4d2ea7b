// SPDX-License-Identifier: Apache-2.0
// Runs consistent networks, generated from arbitrary bytes, through compiler and NPU model
// (networks/oracle.hpp).
#include <cstdio>
#include <cstdlib>

#include "ir/printer.hpp"
#include "networks/generator.hpp"
#include "networks/oracle.hpp"
#include "target.hpp"

namespace carina::network_fuzz {

CARINA_FUZZ_TARGET(network) {
  fuzz::Choices choices(std::span(data, size));
  ir::Graph network = fuzz::makeNetwork(choices);
  const std::string text = ir::print(network);
  const fuzz::Verdict verdict = fuzz::tryNetwork(std::move(network), choices);
  if (!verdict.defect.empty()) {
    std::fprintf(stderr, "%s\n%s\n%s\n", verdict.how.c_str(), text.c_str(), verdict.defect.c_str());
    std::abort();
  }
  return 0;
}

}  // namespace carina::network_fuzz
