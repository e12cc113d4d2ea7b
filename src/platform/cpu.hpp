// SPDX-License-Identifier: Apache-2.0
// The names of the core (src/cpu_m) that the platform uses.
#pragma once

#include "cpu_m/core.hpp"

namespace carina::platform {

using cpu_m::Core;
using cpu_m::kNonSecure;
using cpu_m::kSecure;
using cpu_m::State;
using cpu_m::Stop;
using cpu_m::StopReason;
using cpu_m::WatchedRange;
using cpu_m::World;

}  // namespace carina::platform
