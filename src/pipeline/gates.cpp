// SPDX-License-Identifier: Apache-2.0
#include "pipeline/gates.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "pipeline/command_streams.hpp"
#include "pipeline/inference_time.hpp"
#include "pipeline/memory_needs.hpp"
#include "pipeline/part_turns.hpp"
#include "pte/program.hpp"

namespace carina::pipeline {
namespace {

/// Collects results; a gate without a measurement is an error.
class Checker {
 public:
  Checker(std::string subject, std::vector<GateResult>& results)
      : subject_(std::move(subject)), results_(results) {}

  template <typename Limit, typename Value, typename Passes, typename Text>
  Status check(const char* gate, const std::optional<Limit>& limit, const std::optional<Value>& found,
               Passes passes, Text text, const std::string& parts = "") {
    if (!limit) return {};
    if (!found) {
      return fail(Code::OptionDoesNotApply, "{}: this command does not measure what the gate checks",
                  subject_)
          .at(gate)
          .withRemedy("leave the gate out, or see in docs/gates.md which command measures it");
    }
    results_.push_back({subject_, gate, text(static_cast<Value>(*limit)),
                        text(*found) + (parts.empty() ? "" : " (" + parts + ")"),
                        passes(*found, static_cast<Value>(*limit))});
    return {};
  }

 private:
  std::string subject_;
  std::vector<GateResult>& results_;
};

std::string refusalsText(const Build& build) {
  constexpr size_t kMaxNamed = 3;
  const auto& refusals = build.partitioned.refusals;
  std::string text;
  for (size_t i = 0; i < std::min(refusals.size(), kMaxNamed); ++i) {
    text +=
        fmt::format("{}{} ({}): {}", i > 0 ? "; " : "", refusals[i].op, refusals[i].node, refusals[i].reason);
  }
  if (refusals.size() > kMaxNamed) text += fmt::format("; {} more", refusals.size() - kMaxNamed);
  return text;
}

}  // namespace

bool Gates::any() const {
  return maxCycles || maxInferenceMs || maxSram || maxFlash || minSqnr || minTop1 || requireNpu;
}

Result<std::vector<GateResult>> checkGates(const Gates& gates, const Measured& measured) {
  std::vector<GateResult> results;
  Checker checker(measured.subject, results);
  const auto atMost = [](auto found, auto limit) { return found <= limit; };
  // NaN (nothing was compared) passes no gate.
  const auto atLeast = [](double found, double limit) { return found >= limit; };
  const auto count = [](int64_t value) { return fmt::format("{} cycles", value); };
  const auto bytes = [](int64_t value) { return fmt::format("{} bytes", value); };
  const auto milliseconds = [](double value) { return fmt::format("{:.6g} ms", value); };
  const auto decibels = [](double value) { return fmt::format("{:.6g} dB", value); };
  const auto percent = [](double value) { return fmt::format("{:.6g} %", value); };
  CARINA_RETURN_IF_ERROR(checker.check("--max-cycles", gates.maxCycles, measured.cycles, atMost, count));
  CARINA_RETURN_IF_ERROR(
      checker.check("--max-inference-ms", gates.maxInferenceMs, measured.inferenceMs, atMost, milliseconds));
  CARINA_RETURN_IF_ERROR(
      checker.check("--max-sram", gates.maxSram, measured.sram, atMost, bytes, measured.sramParts));
  CARINA_RETURN_IF_ERROR(checker.check("--max-flash", gates.maxFlash, measured.flash, atMost, bytes));
  CARINA_RETURN_IF_ERROR(checker.check("--min-sqnr", gates.minSqnr, measured.sqnr, atLeast, decibels));
  CARINA_RETURN_IF_ERROR(checker.check("--min-top1", gates.minTop1, measured.top1, atLeast, percent));
  const std::optional<bool> wholly = gates.requireNpu ? std::optional<bool>(true) : std::nullopt;
  CARINA_RETURN_IF_ERROR(checker.check(
      "--require-npu", wholly, measured.wholly, [](bool found, bool) { return found; },
      [](bool whole) { return std::string(whole ? "entirely on the NPU" : "not entirely on the NPU"); },
      measured.wholly.value_or(true) ? "" : measured.onCpu));
  return results;
}

double inferenceMilliseconds(const Build& build) {
  const auto time = inferenceOf(build, "");
  return time ? time->milliseconds() : 0;
}

Measured measuredOf(const Build& build, std::optional<int64_t> programBytes) {
  Measured measured;
  measured.subject = build.options.model.filename().string();
  measured.flash = programBytes;
  measured.wholly = build.hasNpu() && build.partitioned.wholly && !build.partitioned.delegates.empty();
  measured.onCpu = build.hasNpu() ? refusalsText(build) : "target cpu has no NPU";
  if (build.accuracy) measured.sqnr = build.accuracy->decibels;
  if (!build.machine) return measured;
  measured.cycles = npuCycles(build);
  measured.inferenceMs = inferenceMilliseconds(build);
  const SramNeeds needs = sramNeeds(build);
  measured.sram = needs.total();
  measured.sramParts = needs.str();
  return measured;
}

Measured measuredOf(const Profile& profile) {
  Measured measured;
  measured.subject = profile.file.filename().string();
  measured.inferenceMs = profile.inferenceMs;
  measured.flash = profile.programBytes;
  measured.sqnr = profile.sqnr;
  measured.wholly = profile.wholly;
  measured.onCpu = profile.onCpu;
  SramNeeds needs;
  std::map<std::string, int64_t> cycles;  // of each method
  const auto inSram = [&](npu::Area area) {
    return profile.machine.timing(area).kind == npu::MemoryKind::Sram;
  };
  for (const ProfiledPart& part : profile.parts) {
    cycles[part.method] += part.cycles;
    if (inSram(npu::Area::Arena)) needs.arena = std::max(needs.arena, part.arenaBytes);
    if (inSram(npu::Area::Cache)) needs.cache = std::max(needs.cache, part.cacheBytes);
    if (inSram(npu::Area::Constants)) needs.constants += part.constantBytes + part.commandBytes;
  }
  measured.cycles = 0;
  for (const auto& [method, sum] : cycles) measured.cycles = std::max(*measured.cycles, sum);
  measured.sram = needs.total();
  measured.sramParts = needs.str();
  return measured;
}

Result<Measured> measuredOf(const RunResult& result) {
  Measured measured;
  measured.subject = result.file.filename().string();
  std::error_code problem;
  const uintmax_t bytes = std::filesystem::file_size(result.file, problem);
  if (problem) return fail(Code::CannotRead, "{}", problem.message()).inFile(result.file.string());
  measured.flash = static_cast<int64_t>(bytes);
  if (result.correct && result.samples > 0)
    measured.top1 = 100.0 * static_cast<double>(*result.correct) / static_cast<double>(result.samples);
  if (result.ethosN) measured.wholly = true;
  if (!result.program) return measured;
  measured.cycles = result.program->npuCycles;
  recordPlacement(result.program->kernels,
                  !result.program->delegates.empty() || !result.program->ethosN.empty(), measured);
  return measured;
}

void recordPlacement(std::span<const std::string> kernels, bool callsNpu, Measured& measured) {
  const auto other = std::find_if(kernels.begin(), kernels.end(), [](const std::string& kernel) {
    return !kernel.starts_with("quantized_decomposed::");
  });
  measured.wholly = callsNpu && other == kernels.end();
  measured.onCpu = !callsNpu ? "the program calls no NPU" : other != kernels.end() ? "kernel " + *other : "";
}

void recordPlacement(ByteSpan program, Measured& measured) {
  const auto read = pte::readProgram(program);
  if (!read.ok() || !pte::verifyProgram(*read).ok()) return;
  std::vector<std::string> kernels;
  bool callsNpu = false;
  for (const pte::Method& method : read->methods) {
    callsNpu = callsNpu || !method.delegates.empty();
    for (const pte::Chain& chain : method.chains) {
      for (const pte::Instruction& instruction : chain.instructions) {
        const auto* call = std::get_if<pte::KernelCall>(&instruction);
        if (call != nullptr) kernels.push_back(method.operators[static_cast<size_t>(call->op)].str());
      }
    }
  }
  recordPlacement(kernels, callsNpu, measured);
}

Status recordSram(const std::filesystem::path& program, const TimedOn& system, Measured& measured) {
  CARINA_TRY(const std::vector<CommandStream> streams, commandStreams(program, ""));
  if (streams.empty()) return {};
  Options options;
  options.systemConfig = system.systemConfig;
  options.memoryMode = system.memoryMode;
  options.configFile = system.configFile;
  CARINA_TRY(const Profile profile, profileProgram(program, options));
  const Measured found = measuredOf(profile);
  measured.sram = found.sram;
  measured.sramParts = found.sramParts;
  return {};
}

}  // namespace carina::pipeline
