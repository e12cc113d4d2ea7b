// SPDX-License-Identifier: Apache-2.0
// Console output by which firmware for the Fixed Virtual Platforms ends a run.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace carina::platform {

/// Watches the console. A run ends at the byte 0x04 (EOT) or at a text (EXITTHESIM). Its result is the number
/// in the latest line "Application exit code: N."; without one, failure if a line "Test_result: FAIL" or one
/// with "Hard fault." was seen, else success.
class EndOfTest {
 public:
  explicit EndOfTest(bool eot = true, std::string tag = "EXITTHESIM") : eot_(eot), tag_(std::move(tag)) {}

  /// Processes the next byte of output; true if the run is over (the byte is then not output).
  bool feed(char byte);
  /// The exit code so far.
  int exitCode() const { return code_.value_or(failed_ ? 1 : 0); }

 private:
  void look();

  bool eot_;
  std::string tag_;   // empty: none
  std::string line_;  // the current line so far
  std::optional<int> code_;
  bool failed_ = false;
};

}  // namespace carina::platform
