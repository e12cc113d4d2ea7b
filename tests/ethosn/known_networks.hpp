// SPDX-License-Identifier: Apache-2.0
// Networks with the shapes of well-known ones and synthetic weights, distributed like those of trained
// networks.
#pragma once

#include <string_view>

#include "ethosn/compiler/network.hpp"

namespace carina::ethosn::test {

/// int8. `name` is one of knownNetworks() (network_shapes.hpp).
Network knownNetwork(std::string_view name);

}  // namespace carina::ethosn::test
