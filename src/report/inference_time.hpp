// SPDX-License-Identifier: Apache-2.0
// What a whole inference takes, for people and programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "pipeline/inference_time.hpp"

namespace carina::report {

/// "inference 3.08 ms = NPU 2.43 + CPU 0.59 + calls 0.05 (within 9 %, Cortex-M55 without Helium)\n"; in
/// cycles where there is no clock.
std::string inferenceLine(const pipeline::InferenceTime& time);
/// What would make it shorter, with what it makes of it or takes off: "--io int8 makes it 2.84 ms". Lines
/// that begin with `indent`; "" when there is nothing to say.
std::string inferenceAdvice(const pipeline::InferenceTime& time, const std::string& indent);
/// The member "inference" of several documents.
nlohmann::ordered_json inferenceJson(const pipeline::InferenceTime& time);

}  // namespace carina::report
