// SPDX-License-Identifier: Apache-2.0
// Gate results as text and for continuous integration.
#pragma once

#include <span>
#include <string>

#include "pipeline/gates.hpp"

namespace carina::report {

/// "digits8.pt2: --max-cycles 10000 cycles: found 12248 cycles"
std::string gateText(const pipeline::GateResult& result);

/// JUnit XML as read by GitLab, Jenkins and GitHub Actions: one test case per gate and subject. `suite` is
/// the command, "carina compile".
std::string junitText(std::string_view suite, std::span<const pipeline::GateResult> results);

}  // namespace carina::report
