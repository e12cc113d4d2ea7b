// SPDX-License-Identifier: Apache-2.0
// The text of a progress bar.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace carina::app {

/// "evaluating [====    ] 40/100, 12.5/s, 5 s left": rate and remaining time are shown from the first second
/// on, based on the items done in this time (`fresh`).
std::string progressLine(std::string_view label, size_t done, size_t total, size_t fresh, double seconds);

}  // namespace carina::app
