// SPDX-License-Identifier: Apache-2.0
// What a progress bar says.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace carina::app {

/// "evaluating [====    ] 40/100, 12.5/s, 5 s left": rate and time left from the first second on, by what was
/// done in these seconds (`fresh`).
std::string progressLine(std::string_view label, size_t done, size_t total, size_t fresh, double seconds);

}  // namespace carina::app
