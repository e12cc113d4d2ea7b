// SPDX-License-Identifier: Apache-2.0
// carina targets: the available targets.
#include "report/targets.hpp"

#include <fmt/core.h>

#include <memory>

#include "commands.hpp"
#include "console.hpp"
#include "ethosn/targets/variant.hpp"
#include "npu/targets/target.hpp"
#include "result_files.hpp"

namespace carina::app {
namespace {

std::string modesOf(const npu::Target& target) {
  std::string text;
  for (const npu::MemoryMode& mode : npu::stockMemoryModes()) {
    if (!npu::supportsMemoryMode(target, mode)) continue;
    text += (text.empty() ? "" : ", ") + mode.name + (mode.name == target.defaultMemoryMode ? "*" : "");
  }
  return text;
}

std::string memoryText(const npu::MemoryTiming& timing, const npu::Target& target) {
  const double bytesPerCycle = timing.clockScale * timing.ports * target.architecture().axiBytes;
  return fmt::format("{} {:.2f} B/cycle, latency {}/{}", npu::memoryKindName(timing.kind), bytesPerCycle,
                     timing.readLatency, timing.writeLatency);
}

std::string targetsText() {
  std::string text;
  text += fmt::format("{:<16} {:>5}  {}\n", "target", "MACs", "memory modes (* default)");
  for (const npu::Target& target : npu::allTargets()) {
    text += fmt::format("{:<16} {:>5}  {}\n", target.name, target.macs, modesOf(target));
  }
  text += fmt::format("{:<16} {:>5}  no NPU: everything runs on the CPU\n", "cpu", "");
  text += fmt::format("\n{:<20} {:>7} {:>9}  {}\n", "Ethos-N78", "engines", "SRAM",
                      "compile to .pte or .encn, run, verify");
  for (const ethosn::Variant& variant : ethosn::allVariants()) {
    const char* what =
        variant.kernels ? "simulated, unverified on hardware" : "no PLE kernels: nothing can be compiled";
    text += fmt::format("{:<20} {:>7} {:>5} KiB  {}\n", variant.name, variant.engines,
                        variant.defaultSramBytes / 1024, what);
  }
  text += fmt::format("\n{:<28} {:>6}  {}\n", "system configuration", "MHz", "memories");
  for (const npu::SystemConfig& config : npu::stockSystemConfigs()) {
    const npu::Target* any = nullptr;
    bool isDefault = false;
    for (const npu::Target& target : npu::allTargets()) {
      if (target.family != config.family) continue;
      any = &target;
      isDefault = target.defaultSystemConfig == config.name;
    }
    text +=
        fmt::format("{:<28} {:>6.0f}  {}; {}\n", config.name + (isDefault ? "*" : ""), config.clockHz / 1e6,
                    memoryText(config.ports[0], *any), memoryText(config.ports[1], *any));
  }
  return text;
}

}  // namespace

void addTargets(CommandLine& line, Run& run) {
  Command command = line.add("targets", "List targets, system configurations and memory modes");
  struct Results {
    ResultPath json, csv;
  };
  auto results = std::make_shared<Results>();
  addResultOption(command, "--json", results->json, "All of it as JSON");
  addResultOption(command, "--csv", results->csv, "Targets and memory modes as comma-separated values");
  command.callback([results, &run] {
    run = [results] {
      ResultFiles files;
      Status status = checkResults({results->json, results->csv});
      if (status.ok()) status = files.add(results->json, report::targetsJson());
      if (status.ok()) status = files.add(results->csv, report::targetsCsv());
      if (status.ok()) status = files.commit();
      if (!status.ok()) return report(status.error());
      files.print(targetsText());
      return 0;
    };
  });
}

}  // namespace carina::app
