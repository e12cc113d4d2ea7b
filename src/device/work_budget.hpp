// SPDX-License-Identifier: Apache-2.0
// What one execution of a program may make the host do: a file of a few bytes can ask for years. NPU commands
// and CPU kernels share one number of steps, each about a nanosecond of one core, and what exceeds what is
// left of it is not begun.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace carina::device {

/// Of errors about limits. Hardly any network needs as much for its size, but one may.
constexpr const char* kTrustRemedy = "carina run --trusted has no limits: for programs whose maker you know";

/// npu::runWorkFor() says how many a program gets that nobody vouches for.
class WorkBudget {
 public:
  explicit WorkBudget(int64_t most) : most_(most), left_(most) {}

  /// At the start of each execution.
  void renew() {
    left_ = most_;
    refused_.clear();
  }
  int64_t most() const { return most_; }
  int64_t left() const { return left_; }
  void spend(int64_t steps) { left_ -= steps < left_ ? steps : left_; }
  /// Takes steps for what is about to begin; false when there are not as many left.
  bool take(int64_t steps, std::string_view what);
  /// What was not begun, as a sentence; empty when everything was.
  const std::string& refused() const { return refused_; }

 private:
  int64_t most_, left_;
  std::string refused_;
};

}  // namespace carina::device
