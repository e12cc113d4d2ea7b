// SPDX-License-Identifier: Apache-2.0
// A network as Model Explorer (google-ai-edge/model-explorer) takes graphs: its JSON, with what the profile
// says of every operator.
#pragma once

#include <string>

#include "base/result.hpp"
#include "pipeline/timed_profile.hpp"

namespace carina::report {

/// Operators with their modules as namespace, edges, place, cycles, what limits them, SQNR, Python line.
/// Fails for a profile without a network: of a finished program.
Result<std::string> modelExplorerJson(const pipeline::TimedProfile& timed);

}  // namespace carina::report
