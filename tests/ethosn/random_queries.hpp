// SPDX-License-Identifier: Apache-2.0
// Random support queries: mostly valid operations near the limits of the rules, with one or two errors.
#pragma once

#include <random>

#include "ethosn/support_protocol.hpp"

namespace carina::ethosn::test {

/// The same sequence on every platform.
TargetQuery randomQuery(std::mt19937& random);

}  // namespace carina::ethosn::test
