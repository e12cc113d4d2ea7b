// SPDX-License-Identifier: Apache-2.0
// Random networks of operations that an Ethos-N supports: single ones, and chains.
#pragma once

#include <optional>

#include "ethosn/reference.hpp"
#include "ethosn/targets/variant.hpp"

namespace carina::ethosn::test {

inline constexpr Padding kOne{1, 1, 1, 1};

struct RandomNetwork {
  NetworkBuilder builder;
  Target target;      // with the SRAM by default or the least
  int tolerance = 0;  // of results: the reference has no tables of sigmoid and tanh
};
/// Of so many steps, int8 and uint8 in turn; of one step, all operators. None where the rules refuse what was
/// drawn.
std::optional<RandomNetwork> randomNetwork(const Variant& variant, uint32_t seed, uint32_t steps);

}  // namespace carina::ethosn::test
