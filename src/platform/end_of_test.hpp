// SPDX-License-Identifier: Apache-2.0
// How firmware for the Fixed Virtual Platforms ends a run by what it prints.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace carina::platform {

/// Watches the console. A run is over at the byte 0x04 (EOT) or at a text (EXITTHESIM); its result is the
/// number in the latest line "Application exit code: N.", else failure if a line "Test_result: FAIL" or one
/// with "Hard fault." was seen, else success.
class EndOfTest {
 public:
  explicit EndOfTest(bool eot = true, std::string tag = "EXITTHESIM") : eot_(eot), tag_(std::move(tag)) {}

  /// The next byte of output; true when the run is over (the byte is then no output).
  bool feed(char byte);
  /// The exit code so far.
  int exitCode() const { return code_.value_or(failed_ ? 1 : 0); }

 private:
  void look();

  bool eot_;
  std::string tag_;   // empty: none
  std::string line_;  // the start of the line under way
  std::optional<int> code_;
  bool failed_ = false;
};

}  // namespace carina::platform
