// SPDX-License-Identifier: Apache-2.0
// Arbitrary text as a --quantize-config file.
#include "quantize/rules_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carina::quantize;
  const auto file = parseRules({reinterpret_cast<const char*>(data), size});
  if (!file.ok()) return 0;
  for (const Rule& rule : file->rules) {
    if (rule.pattern.empty() || rule.overrides.empty()) __builtin_trap();
  }
  return 0;
}
