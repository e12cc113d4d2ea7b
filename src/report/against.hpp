// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pipeline/against.hpp"

namespace carina::report {

/// A table of the parts, then where each differing part first diverges from its graph.
std::string againstText(const pipeline::Against& against);
/// JSON by docs/schema/against.json.
std::string againstJson(const pipeline::Against& against);
/// One line per part.
std::string againstCsv(const pipeline::Against& against);

}  // namespace carina::report
