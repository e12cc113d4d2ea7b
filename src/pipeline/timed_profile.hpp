// SPDX-License-Identifier: Apache-2.0
// A profile with the time of a whole inference beside it.
#pragma once

#include "pipeline/inference_time.hpp"
#include "pipeline/profile.hpp"

namespace carina::pipeline {

struct TimedProfile {
  Profile profile;
  std::optional<InferenceTime> inference;  // of a network or a .pte
  std::vector<InferenceStep> steps;        // of that, where its NPU parts are those of the profile
};

/// profile() with the time on the core that `core` names (empty: the usual one). `samples`: arrays of a
/// network whose ways are measured (Profile::measured); may be empty.
Result<TimedProfile> timedProfile(const Options& options, const std::string& core,
                                  const std::filesystem::path& samples = {});

/// Whether the file is a network, which is compiled before anything else is asked of it.
bool isNetwork(ByteSpan bytes, const std::filesystem::path& file);

}  // namespace carina::pipeline
