// SPDX-License-Identifier: Apache-2.0
// Arbitrary text as a --quantize-config file.
#include "quantize/rules_file.hpp"
#include "target.hpp"

namespace carina::quantize_rules_fuzz {

CARINA_FUZZ_TARGET(quantize_rules) {
  using namespace carina::quantize;
  const auto file = parseRules({reinterpret_cast<const char*>(data), size});
  if (!file.ok()) return 0;
  for (const Rule& rule : file->rules) {
    if (rule.pattern.empty() || rule.overrides.empty()) __builtin_trap();
  }
  return 0;
}

}  // namespace carina::quantize_rules_fuzz
