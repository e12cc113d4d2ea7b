// SPDX-License-Identifier: Apache-2.0
// The time of a whole inference, as text and JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "pipeline/inference_time.hpp"

namespace carina::report {

/// "inference 3.08 ms = NPU 2.43 + CPU 0.59 + calls 0.05 (within 9 %, Cortex-M55 without Helium)\n"; in
/// cycles if there is no clock.
std::string inferenceLine(const pipeline::InferenceTime& time);
/// What would make it faster, with the resulting or saved time: "--io int8 makes it 2.84 ms". Lines begin
/// with `indent`; "" if there is no advice.
std::string inferenceAdvice(const pipeline::InferenceTime& time, const std::string& indent);
/// The member "inference" used in several documents.
nlohmann::ordered_json inferenceJson(const pipeline::InferenceTime& time);

}  // namespace carina::report
