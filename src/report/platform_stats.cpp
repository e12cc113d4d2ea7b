// SPDX-License-Identifier: Apache-2.0
#include "report/platform_stats.hpp"

#include <nlohmann/json.hpp>

#include "report/document.hpp"
#include "report/text.hpp"

namespace carina::report {
namespace {

std::string placeOf(uint32_t pc, const std::string& function) {
  return function.empty() ? fmt::format("0x{:08x}", pc) : fmt::format("0x{:08x} ({})", pc, function);
}

npu::Cycles npuCycles(const platform::Outcome& outcome) {
  npu::Cycles total = 0;
  for (const platform::NpuJob& job : outcome.jobs) total += job.stats.cycles;
  return total;
}

}  // namespace

std::string platformStatsText(const platform::Outcome& outcome, const platform::Options& options) {
  std::string text;
  for (const platform::FaultNote& fault : outcome.faults) {
    text += fmt::format("fault     {} at {}, CFSR 0x{:08x}, HFSR 0x{:08x}\n", fault.what,
                        placeOf(fault.pc, fault.function), fault.cfsr, fault.hfsr);
  }
  for (const platform::UnknownAccess& access : outcome.unknownPeripherals)
    text += fmt::format("unknown   {}\n", platform::text(access));
  for (const std::string& note : outcome.media.notes) text += fmt::format("note      {}\n", note);
  if (outcome.reason == platform::EndReason::Exit) text += fmt::format("exit code {}\n", outcome.exitCode);
  text += fmt::format("  CPU     {} instructions, {} cycles in {:.3f} s\n",
                      countText(static_cast<int64_t>(outcome.instructions)),
                      countText(static_cast<int64_t>(outcome.cycles)), outcome.seconds);
  if (!outcome.jobs.empty()) {
    int64_t macs = 0;
    for (const platform::NpuJob& job : outcome.jobs) macs += job.stats.macs;
    text +=
        fmt::format("  NPU     {} job{}, {} cycles on {} ({}), {} MACs\n",
                    countText(static_cast<int64_t>(outcome.jobs.size())), outcome.jobs.size() == 1 ? "" : "s",
                    countText(npuCycles(outcome)), options.machine.target->name,
                    options.timingAdapters ? std::string("timing adapters")
                                           : options.machine.system.name + ", " + options.machine.memory.name,
                    countText(macs));
  }
  for (const platform::NpuJob& job : outcome.jobs) {
    if (job.fault.empty()) continue;
    text += fmt::format("  NPU     fault: {}\n", job.fault);
    break;
  }
  return text;
}

std::string platformStatsJson(const std::string& file, const platform::Outcome& outcome,
                              const platform::Options& options) {
  nlohmann::ordered_json json = document("platform");
  json["file"] = file;
  json["platform"] = options.board->name;
  json["target"] = options.machine.target->name;
  json["system_config"] = options.machine.system.name;
  json["memory_mode"] = options.machine.memory.name;
  json["timing_adapters"] = options.timingAdapters;
  json["end"] = platform::endReasonName(outcome.reason);
  json["exit_code"] = outcome.exitCode;
  if (!outcome.explanation.empty()) json["explanation"] = outcome.explanation;
  json["instructions"] = outcome.instructions;
  json["cycles"] = outcome.cycles;
  json["seconds"] = outcome.seconds;
  json["npu_cycles"] = npuCycles(outcome);
  json["npu_jobs"] = nlohmann::ordered_json::array();
  for (const platform::NpuJob& job : outcome.jobs) {
    nlohmann::ordered_json entry = {{"start", job.start},
                                    {"cycles", job.stats.cycles},
                                    {"macs", job.stats.macs},
                                    {"kernel_operations", job.stats.kernelOperations},
                                    {"dma_operations", job.stats.dmaOperations}};
    if (!job.fault.empty()) entry["fault"] = job.fault;
    json["npu_jobs"].push_back(std::move(entry));
  }
  json["faults"] = nlohmann::ordered_json::array();
  for (const platform::FaultNote& fault : outcome.faults) {
    json["faults"].push_back({{"what", fault.what},
                              {"pc", fault.pc},
                              {"function", fault.function},
                              {"cfsr", fault.cfsr},
                              {"hfsr", fault.hfsr}});
  }
  json["unknown_peripherals"] = nlohmann::ordered_json::array();
  for (const platform::UnknownAccess& access : outcome.unknownPeripherals) {
    json["unknown_peripherals"].push_back({{"address", access.address},
                                           {"write", access.write},
                                           {"pc", access.pc},
                                           {"function", access.function}});
  }
  json["notes"] = outcome.media.notes;
  return documentText(json);
}

}  // namespace carina::report
