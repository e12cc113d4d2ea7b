// SPDX-License-Identifier: Apache-2.0
#include "cpu/known_turns.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

namespace carina::cpu {
namespace {

/// The last call in [first, end) that writes the value, if it calls that kernel.
const pte::KernelCall* writerOf(const pte::Method& method, const pte::Chain& chain, int32_t value,
                                std::string_view kernel, size_t first, size_t end) {
  for (size_t i = end; i-- > first;) {
    const auto* call = std::get_if<pte::KernelCall>(&chain.instructions[i]);
    if (call == nullptr || call->arguments.empty() || call->arguments.back() != value) continue;
    if (call->op < 0 || static_cast<size_t>(call->op) >= method.operators.size()) return nullptr;
    const pte::Operator& op = method.operators[static_cast<size_t>(call->op)];
    return op.str() == kernel ? call : nullptr;
  }
  return nullptr;
}

std::optional<int64_t> integerAt(const pte::Method& method, const pte::KernelCall& call, size_t argument) {
  if (argument >= call.arguments.size() || call.arguments[argument] < 0 ||
      static_cast<size_t>(call.arguments[argument]) >= method.values.size())
    return std::nullopt;
  const auto* number = std::get_if<int64_t>(&method.values[static_cast<size_t>(call.arguments[argument])]);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

/// Iterations of the loop that the jump at `at` closes.
double tripCountOf(const pte::Method& method, const pte::Chain& chain, const pte::JumpFalseCall& jump,
                   size_t at) {
  const auto first = static_cast<size_t>(jump.destination);
  const auto* test = writerOf(method, chain, jump.condition, "aten::eq.Scalar_out", first, at);
  if (test == nullptr || test->arguments.size() < 3) return 1;
  const auto* count = writerOf(method, chain, test->arguments[0], "aten::add.Scalar_out", first, at);
  if (count == nullptr || count->arguments.size() < 4 || count->arguments[0] != test->arguments[0]) return 1;
  const auto end = integerAt(method, *test, 1), step = integerAt(method, *count, 1);
  const bool known = end && step && *step > 0 && *end > 0 && *end % *step == 0;
  const int64_t turns = known ? *end / *step : 1;
  return static_cast<double>(turns);
}

}  // namespace

std::vector<double> knownTripCounts(const pte::Method& method, const pte::Chain& chain) {
  std::vector<double> turns(chain.instructions.size(), 1);
  for (size_t at = 0; at < chain.instructions.size(); ++at) {
    const auto* jump = std::get_if<pte::JumpFalseCall>(&chain.instructions[at]);
    if (jump == nullptr || jump->destination < 0 || static_cast<size_t>(jump->destination) > at) continue;
    const double times = tripCountOf(method, chain, *jump, at);
    if (times <= 1) continue;
    for (size_t i = static_cast<size_t>(jump->destination); i <= at; ++i) turns[i] *= times;
  }
  return turns;
}

}  // namespace carina::cpu
