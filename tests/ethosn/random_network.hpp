// SPDX-License-Identifier: Apache-2.0
// Random networks of operations that an Ethos-N supports: single operations and chains.
#pragma once

#include <optional>

#include "ethosn/reference.hpp"
#include "ethosn/targets/variant.hpp"

namespace carina::ethosn::test {

inline constexpr Padding kOne{1, 1, 1, 1};

struct RandomNetwork {
  NetworkBuilder builder;
  Target target;      // with the default or the smallest SRAM
  int tolerance = 0;  // of outputs: the reference has no tables for sigmoid and tanh
};
/// A chain of `steps` operations, int8 or uint8 depending on the parity of the seed; if `steps` is 1, any
/// operator. None if the support rules refuse the network.
std::optional<RandomNetwork> randomNetwork(const Variant& variant, uint32_t seed, uint32_t steps);

}  // namespace carina::ethosn::test
