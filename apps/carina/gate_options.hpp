// SPDX-License-Identifier: Apache-2.0
// The gates shared by commands that measure, including --junit, and the effect of a missed one: a line on
// stderr and exit status 3.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "pipeline/gates.hpp"
#include "result_files.hpp"

namespace carina::app {

constexpr int kGateMissed = 3;

struct GateOptions {
  enum class Gate : uint8_t { Cycles, InferenceMs, Sram, Flash, Sqnr, Top1, Npu };

  pipeline::Gates gates;
  ResultPath junit;

  /// The gates that `command` can measure.
  void declare(Command& command, std::initializer_list<Gate> which);

  /// For the callback of the command: --junit without a gate is wrong usage.
  void checkUsage() const;

  /// Misses every requested gate, because there is nothing to measure.
  void fail(const std::string& subject, const std::string& why);
  /// Checks what was measured; call once per subject.
  Status check(const pipeline::Measured& measured);
  /// The JUnit file of all checks, if requested. `suite`: "carina compile".
  Status addJunit(std::string_view suite, ResultFiles& files) const;
  bool missed() const;
  /// One line per miss; `status`, or 3 if there is one and `status` is 0.
  int finish(int status) const;

 private:
  std::vector<pipeline::GateResult> results_;
};

}  // namespace carina::app
