// SPDX-License-Identifier: Apache-2.0
// Arbitrary text as a graph of the tosa dialect: either a valid graph that round-trips through text, or an
// error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.hpp"
#include "ir/parser.hpp"
#include "ir/printer.hpp"
#include "ir/verifier.hpp"
#include "target.hpp"
#include "tosa/tosa.hpp"

namespace carina::ir_parser_fuzz {

namespace {

const carina::ir::OperatorSet kOperators{carina::tosa::findOperator, nullptr};

}  // namespace

CARINA_FUZZ_TARGET(ir_parser) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto graph = ir::parse(text, kOperators);
  if (!graph.ok()) {
    CARINA_CHECK(graph.error().diagnostics().front().place.starts_with("line "), "an error has no place");
    return 0;
  }
  CARINA_CHECK(ir::verify(*graph).ok(), "a graph was read that is invalid");
  const std::string printed = ir::print(*graph, {.exact = true});
  const auto again = ir::parse(printed, kOperators);
  CARINA_CHECK(again.ok(), "what was printed cannot be read");
  CARINA_CHECK(ir::print(*again, {.exact = true}) == printed, "what was printed reads back as another graph");
  return 0;
}

}  // namespace carina::ir_parser_fuzz
