// SPDX-License-Identifier: Apache-2.0
// Profiles of Ethos-N parts, as text and as JSON.
#pragma once

#include <string>

#include "pipeline/ethosn_profile.hpp"

namespace carina::report {

/// A table with a line per pass, totals, and what is left to the CPU.
std::string ethosNProfileText(const pipeline::EthosNProfile& profile);
/// The passes of each part with the members of Arm's performance estimate ("Stream", and "Issues" of the
/// network) and additional ones of Carina.
std::string ethosNProfileJson(const pipeline::EthosNProfile& profile);
/// One page for a browser, without scripts: totals, passes with their share of the cycles, what is left to
/// the CPU.
std::string ethosNProfilePage(const pipeline::EthosNProfile& profile);
/// The passes as comma-separated values.
std::string ethosNProfileCsv(const pipeline::EthosNProfile& profile);

}  // namespace carina::report
