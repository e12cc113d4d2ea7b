// SPDX-License-Identifier: Apache-2.0
// The kinds of diagnostics. The number is the stable id that users see, search for and pass to `carina
// explain` (101 is E0101); ids are never renumbered or reused. codes.cpp explains them;
// docs/commands/explain.md lists them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace carina {

enum class Code : uint16_t {
  None = 0,  // an internal error

  // Files
  CannotRead = 101,
  CannotWrite = 102,
  WrongKind = 103,
  Damaged = 104,
  Excessive = 105,
  UnknownVersion = 106,
  NotRepresentable = 107,

  // Command line and configuration
  BadOption = 201,
  OptionDoesNotApply = 202,
  UnknownName = 203,
  BadConfiguration = 204,

  // Networks
  InvalidOperator = 301,
  WrongElementType = 302,
  DependsOnValues = 303,
  TrainingOnly = 304,
  UnknownOperator = 305,
  InvalidGraph = 306,
  BadText = 307,
  TooLarge = 308,
  NoResult = 309,
  UnsupportedForm = 310,

  // Quantization
  NotQuantized = 401,
  UnusableQuantization = 402,
  BadCalibration = 403,

  // The NPU
  NoIntegerForm = 501,
  HardwareLimit = 502,
  MissingCapability = 503,
  NeedsWholeNpu = 504,
  DoesNotFit = 505,
  OnRequest = 506,

  // Command streams and weights
  InvalidStream = 601,
  InvalidWeights = 602,
  Findings = 603,
  NpuFault = 604,
  OtherNpu = 605,

  // Programs
  InvalidProgram = 701,
  MissingKernel = 702,
  InputMismatch = 703,
  UnsupportedProgram = 704,
  ResultsDiffer = 705,

  // Firmware, platforms and the host
  ToolFailed = 801,
  InvalidImage = 802,
  GuestFault = 803,
  OutOfMemory = 804,
};

struct CodeInfo {
  Code code;
  std::string_view title;        // "an input cannot be read"
  std::string_view explanation;  // a paragraph: what it means, and what to do
};

/// All kinds, by id.
std::span<const CodeInfo> allCodes();
/// "E0101"; empty for None.
std::string codeId(Code code);
/// By id in any case ("e0101"); null if there is none.
const CodeInfo* findCode(std::string_view id);

}  // namespace carina
