// SPDX-License-Identifier: Apache-2.0
// The compilation of NPU parts that are delivered as TOSA graphs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "delivery/at_load.hpp"

namespace carina::report {

/// "load    2 NPU parts compiled for ethos-u85-256 in 0.120 s, 1 from the cache", without a line break.
std::string atLoadText(const delivery::AtLoad& done);
nlohmann::ordered_json atLoadJson(const delivery::AtLoad& done);

}  // namespace carina::report
