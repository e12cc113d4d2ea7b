// SPDX-License-Identifier: Apache-2.0
// A network in the JSON format of Model Explorer (google-ai-edge/model-explorer), with the profile's data for
// every operator.
#pragma once

#include <string>

#include "base/result.hpp"
#include "pipeline/timed_profile.hpp"

namespace carina::report {

/// Operators with their modules as namespace, edges, placement, cycles, limiting resource, SQNR, Python line.
/// Fails for a profile without a network: that of a finished program.
Result<std::string> modelExplorerJson(const pipeline::TimedProfile& timed);

}  // namespace carina::report
