// SPDX-License-Identifier: Apache-2.0
// Limits that a measurement must meet: the gates of continuous integration.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "pipeline/pipeline.hpp"
#include "pipeline/profile.hpp"
#include "pipeline/run.hpp"

namespace carina::pipeline {

/// The requested gates; nullopt: no gate.
struct Gates {
  std::optional<int64_t> maxCycles;      // of the NPU, one inference
  std::optional<double> maxInferenceMs;  // NPU and CPU, one inference
  std::optional<int64_t> maxSram;        // bytes of static RAM: arena, cache, constants that reside there
  std::optional<int64_t> maxFlash;       // bytes of the program
  std::optional<double> minSqnr;         // dB of the worst output against float
  std::optional<double> minTop1;         // percent
  bool requireNpu = false;               // the whole network on the NPU

  bool any() const;
};

/// What a command measured for one program; nullopt: not measured.
struct Measured {
  std::string subject;  // "digits8.pt2", "digits8.pt2 ethos-u55-128 Sram_Only"
  std::optional<int64_t> cycles;
  std::optional<double> inferenceMs;
  std::optional<int64_t> sram, flash;
  std::string sramParts;  // "arena 4096, constants and commands 812"
  std::optional<double> sqnr, top1;
  std::optional<bool> wholly;
  std::string onCpu;  // what is not on the NPU, and why
};

/// One gate on one subject.
struct GateResult {
  std::string subject;
  std::string gate;          // "--max-cycles"
  std::string limit, found;  // with units; found also gives its breakdown
  bool passed = false;
};

/// In the order of Gates. Fails, with the option as its place, if a gate needs a figure that was not
/// measured.
Result<std::vector<GateResult>> checkGates(const Gates& gates, const Measured& measured);

/// From a compilation: cycles, time, static RAM, bytes of the program (with `program`, its bytes), SQNR if it
/// was estimated, and placement.
Measured measuredOf(const Build& build, std::optional<int64_t> programBytes);
/// From a profile.
Measured measuredOf(const Profile& profile);

/// From a run: cycles, top-1 with labels, placement, bytes of the file. Errors: the file no longer exists.
Result<Measured> measuredOf(const RunResult& result);

/// Records whether a network with these kernels, and NPU calls if `callsNpu`, runs entirely on the NPU, and
/// the kernel that prevents it.
void recordPlacement(std::span<const std::string> kernels, bool callsNpu, Measured& measured);
/// The same for all methods of a .pte (untrusted); no effect for other files.
void recordPlacement(ByteSpan program, Measured& measured);
/// The system on which a finished program is timed; empty: what the program records, then the target's
/// default.
struct TimedOn {
  std::string systemConfig = "", memoryMode = "";
  std::filesystem::path configFile = "";  // vela.ini that describes them
};
/// The static RAM of a finished program, from its command streams; not set if it has none.
Status recordSram(const std::filesystem::path& program, const TimedOn& system, Measured& measured);

/// Milliseconds of a whole inference on the usual core (inferenceOf(build, "")), at the clock of the system
/// configuration; 0 without one.
double inferenceMilliseconds(const Build& build);

}  // namespace carina::pipeline
