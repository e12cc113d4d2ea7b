// SPDX-License-Identifier: Apache-2.0
// Keywords of the text form, shared by printer and parser.
#pragma once

#include <string_view>

namespace carina::ethosn {

inline constexpr std::string_view kNetworkDirective = ".network";
inline constexpr std::string_view kMceOperations[] = {"convolution", "depthwise", "fully_connected"};
inline constexpr std::string_view kPleInputs[] = {"mce_all_ogs", "mce_one_og", "sram_one", "sram_two"};

}  // namespace carina::ethosn
