// SPDX-License-Identifier: Apache-2.0
// The quantizer's results for every tensor.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "quantize/quantize.hpp"

namespace carina::report {

/// One line per tensor: range, scale, zero point, SQNR against float.
std::string quantizationText(const quantize::Report& report);
/// A JSON array with one object per tensor (docs/quantization.md); "sqnr_db" is null if nothing was compared
/// or nothing was lost.
nlohmann::ordered_json quantizationJson(const quantize::Report& report);

}  // namespace carina::report
