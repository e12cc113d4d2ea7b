// SPDX-License-Identifier: Apache-2.0
// The inputs and outputs of a program: as text, as JSON, and as a C header.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "pipeline/port_codes.hpp"

namespace carina::pipeline {
struct Build;
}

namespace carina::report {

/// Adds "scale", "zero_point", "mean", "std" and "layout" to the description of an input or output, if it has
/// them.
void addCodes(const pipeline::PortCodes& codes, nlohmann::ordered_json& json);

/// {"inputs": [...], "outputs": [...]}: name, type, shape and codes of each.
nlohmann::ordered_json programIoJson(const pipeline::Build& build);
/// A line for each input and output that is not float in the network's layout; "" if there are none.
std::string programIoText(const pipeline::Build& build);

/// Types, sizes, scales and zero points for applications: CARINA_INPUT0_SCALE etc., in plain C.
std::string programIoHeader(const pipeline::Build& build, const std::string& program);

}  // namespace carina::report
