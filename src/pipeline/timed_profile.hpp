// SPDX-License-Identifier: Apache-2.0
// A profile together with the time of a whole inference.
#pragma once

#include "pipeline/inference_time.hpp"
#include "pipeline/profile.hpp"

namespace carina::pipeline {

struct TimedProfile {
  Profile profile;
  std::optional<InferenceTime> inference;  // for a network or a .pte
  std::vector<InferenceStep> steps;        // of that inference, if its NPU parts are those of the profile
};

/// profile() with timing on the core named `core` (empty: the default one). `samples`: arrays of a network
/// whose control-flow paths are measured (Profile::measured); may be empty.
Result<TimedProfile> timedProfile(const Options& options, const std::string& core,
                                  const std::filesystem::path& samples = {});

/// Whether the file is a network, which must be compiled before it can be profiled.
bool isNetwork(ByteSpan bytes, const std::filesystem::path& file);

}  // namespace carina::pipeline
