// SPDX-License-Identifier: Apache-2.0
// A profile as text (tables, and what would help), for scripts (JSON), and for chrome://tracing and Perfetto.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "pipeline/timed_profile.hpp"

namespace carina::report {

struct ProfileText {
  bool operations = false;  // one line per operation instead of per layer
  bool memory = false;      // the whole memory plan
};

/// Layers with cycles and what limits them, the layers with the greatest potential and how to use it, memory
/// by area and what is live at its peak.
/// `inference`: the time of a whole inference, or null.
std::string profileText(const pipeline::Profile& profile, const ProfileText& options,
                        const pipeline::InferenceTime* inference = nullptr);
/// Stable JSON (docs/commands/profile.md).
std::string profileJson(const pipeline::TimedProfile& timed);
/// The layers of a part as in profiles and reports: an array.
nlohmann::ordered_json layersJson(const pipeline::Profile& profile, const pipeline::ProfiledPart& part);
/// The layers of all parts as comma-separated values.
std::string profileCsv(const pipeline::Profile& profile);
/// Trace events, one microsecond per cycle: kernels and calls of the CPU, operations and transfers of the NPU
/// on three lanes. For a program whose inference time is unknown, only the two lanes of the NPU.
std::string profileTrace(const pipeline::TimedProfile& timed);

/// What would make a layer faster, and the cycles that this could save at most; "" if nothing stands out.
struct Advice {
  std::string text;
  npu::Cycles gain = 0;
};
Advice adviceFor(const pipeline::ProfiledPart& part, const pipeline::Layer& layer,
                 const npu::Machine& machine);

}  // namespace carina::report
