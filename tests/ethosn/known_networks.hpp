// SPDX-License-Identifier: Apache-2.0
// Networks with the shapes of well-known ones, and made-up weights whose values are spread like trained ones.
#pragma once

#include <string_view>
#include <vector>

#include "ethosn/compiler/network.hpp"

namespace carina::ethosn::test {

std::vector<std::string_view> knownNetworks();  // "mobilenet_v1", ...
/// int8. `name` is one of knownNetworks().
Network knownNetwork(std::string_view name);

}  // namespace carina::ethosn::test
