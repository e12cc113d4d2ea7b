// SPDX-License-Identifier: Apache-2.0
// A profile for people (tables, and what would help), for scripts (JSON), and for chrome://tracing and
// Perfetto.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "pipeline/timed_profile.hpp"

namespace carina::report {

struct ProfileText {
  bool operations = false;  // one line per operation instead of per layer
  bool memory = false;      // the whole memory plan
};

/// Layers with cycles and what limits them, the layers where most is to be had and how, memory by area and
/// what is live at its peak.
/// `inference`: the time of a whole inference, or none.
std::string profileText(const pipeline::Profile& profile, const ProfileText& options,
                        const pipeline::InferenceTime* inference = nullptr);
/// Stable JSON (docs/commands/profile.md).
std::string profileJson(const pipeline::TimedProfile& timed);
/// The layers of a part as profiles and reports hold them: an array.
nlohmann::ordered_json layersJson(const pipeline::Profile& profile, const pipeline::ProfiledPart& part);
/// The layers of all parts as comma-separated values.
std::string profileCsv(const pipeline::Profile& profile);
/// Trace events, one microsecond per cycle: kernels and calls of the CPU, operations and transfers of the NPU
/// on three lanes. Of a program whose time is not known, the NPU's two.
std::string profileTrace(const pipeline::TimedProfile& timed);

/// What would make a layer faster, and the cycles that this could save at most; "" when nothing stands out.
struct Advice {
  std::string text;
  npu::Cycles gain = 0;
};
Advice adviceFor(const pipeline::ProfiledPart& part, const pipeline::Layer& layer,
                 const npu::Machine& machine);

}  // namespace carina::report
