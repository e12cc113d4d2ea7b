// SPDX-License-Identifier: Apache-2.0
// Runs consistent networks, generated from arbitrary bytes, through compiler and NPU model
// (networks/oracle.hpp).
#include <cstdio>
#include <cstdlib>

#include "ir/printer.hpp"
#include "networks/generator.hpp"
#include "networks/oracle.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carina;
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
