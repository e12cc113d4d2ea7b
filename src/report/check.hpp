// SPDX-License-Identifier: Apache-2.0
// What a program needs and what would fail, as text and as JSON.
#pragma once

#include <string>

#include "pipeline/check.hpp"
#include "pipeline/inspect.hpp"
#include "pipeline/tflite_check.hpp"

namespace carina::report {

std::string checkText(const pipeline::Check& check);
std::string checkJson(const pipeline::Check& check);
std::string checkText(const pipeline::TfliteCheck& check);
std::string checkJson(const pipeline::TfliteCheck& check);
/// For `carina inspect --check`: docs/schema/inspect.json.
std::string checkJson(const pipeline::CheckedFile& checked);

}  // namespace carina::report
