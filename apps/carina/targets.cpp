// SPDX-License-Identifier: Apache-2.0
// carina targets: what can be compiled for.
#include <fmt/core.h>

#include "commands.hpp"
#include "console.hpp"
#include "ethosn/targets/variant.hpp"
#include "npu/targets/target.hpp"

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

int printTargets() {
  fmt::print("{:<16} {:>5}  {}\n", "target", "MACs", "memory modes (* default)");
  for (const npu::Target& target : npu::allTargets()) {
    fmt::print("{:<16} {:>5}  {}\n", target.name, target.macs, modesOf(target));
  }
  fmt::print("{:<16} {:>5}  no NPU: everything runs on the CPU\n", "cpu", "");
  fmt::print("\n{:<20} {:>7} {:>9}  {}\n", "Ethos-N78", "engines", "SRAM",
             "compile to .pte or .encn, run, verify");
  for (const ethosn::Variant& variant : ethosn::allVariants()) {
    const char* what =
        variant.kernels ? "simulated, unverified on hardware" : "no PLE kernels: nothing can be compiled";
    fmt::print("{:<20} {:>7} {:>5} KiB  {}\n", variant.name, variant.engines, variant.defaultSramBytes / 1024,
               what);
  }
  fmt::print("\n{:<28} {:>6}  {}\n", "system configuration", "MHz", "memories");
  for (const npu::SystemConfig& config : npu::stockSystemConfigs()) {
    const npu::Target* any = nullptr;
    bool isDefault = false;
    for (const npu::Target& target : npu::allTargets()) {
      if (target.family != config.family) continue;
      any = &target;
      isDefault = target.defaultSystemConfig == config.name;
    }
    fmt::print("{:<28} {:>6.0f}  {}; {}\n", config.name + (isDefault ? "*" : ""), config.clockHz / 1e6,
               memoryText(config.ports[0], *any), memoryText(config.ports[1], *any));
  }
  return 0;
}

}  // namespace

void addTargets(CommandLine& line, Run& run) {
  Command command = line.add("targets", "List targets, system configurations and memory modes");
  command.callback([&run] { run = printTargets; });
}

}  // namespace carina::app
