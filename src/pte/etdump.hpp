// SPDX-License-Identifier: Apache-2.0
// Profiles as ExecuTorch's runtime writes them (ETDump, .etdp), for its Inspector and other readers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace carina::pte {

/// A timed event. `name` is one that ExecuTorch's tools know ("Method::execute", "OPERATOR_CALL",
/// "native_call_add.out", "DELEGATE_CALL") or a delegate's own. Times in nanoseconds.
struct ProfileEvent {
  std::string name;
  int32_t instruction = -1;        // of the method; -1: none
  std::string delegatePlace = {};  // of an event within a delegate: the part of the delegate
  uint64_t start = 0, end = 0;
};

struct ProfiledRun {
  std::string name = "Execute";
  int32_t bundledCase = -1;               // of a bundled program
  std::vector<ProfileEvent> events = {};  // in the order in which they ended
};

/// The contents of a file.
std::string writeEtDump(std::span<const ProfiledRun> runs);

}  // namespace carina::pte
