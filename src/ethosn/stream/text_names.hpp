// SPDX-License-Identifier: Apache-2.0
// Words of the text form that printer and parser share.
#pragma once

#include <string_view>

namespace carina::ethosn {

inline constexpr std::string_view kNetworkDirective = ".network";
inline constexpr std::string_view kMceOperations[] = {"convolution", "depthwise", "fully_connected"};
inline constexpr std::string_view kPleInputs[] = {"mce_all_ogs", "mce_one_og", "sram_one", "sram_two"};

}  // namespace carina::ethosn
