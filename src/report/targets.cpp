// SPDX-License-Identifier: Apache-2.0
#include "report/targets.hpp"

#include <nlohmann/json.hpp>

#include "ethosn/targets/variant.hpp"
#include "npu/targets/target.hpp"
#include "report/document.hpp"
#include "report/text.hpp"

namespace carina::report {
namespace {

using Json = nlohmann::ordered_json;

Json memoryJson(const npu::MemoryTiming& timing, const npu::Architecture& architecture) {
  return {{"kind", npu::memoryKindName(timing.kind)},
          {"bytes_per_cycle", timing.clockScale * timing.ports * architecture.axiBytes},
          {"read_latency", timing.readLatency},
          {"write_latency", timing.writeLatency}};
}

}  // namespace

std::string targetsJson() {
  Json json = document("targets");
  json["targets"] = Json::array();
  for (const npu::Target& target : npu::allTargets()) {
    Json modes = Json::array();
    for (const npu::MemoryMode& mode : npu::stockMemoryModes()) {
      if (npu::supportsMemoryMode(target, mode)) modes.push_back(mode.name);
    }
    json["targets"].push_back({{"name", target.name},
                               {"family", npu::familyName(target.family)},
                               {"macs", target.macs},
                               {"memory_modes", std::move(modes)},
                               {"default_memory_mode", target.defaultMemoryMode},
                               {"default_system_config", target.defaultSystemConfig}});
  }
  json["ethos_n"] = Json::array();
  for (const ethosn::Variant& variant : ethosn::allVariants()) {
    json["ethos_n"].push_back({{"name", variant.name},
                               {"engines", variant.engines},
                               {"sram_bytes", variant.defaultSramBytes},
                               {"compiles", variant.kernels.has_value()}});
  }
  json["system_configs"] = Json::array();
  for (const npu::SystemConfig& config : npu::stockSystemConfigs()) {
    Json memories = Json::array();
    for (const npu::MemoryTiming& timing : config.ports)
      memories.push_back(memoryJson(timing, npu::architectureOf(config.family)));
    json["system_configs"].push_back({{"name", config.name},
                                      {"family", npu::familyName(config.family)},
                                      {"clock_hz", config.clockHz},
                                      {"memories", std::move(memories)}});
  }
  return documentText(json);
}

std::string targetsCsv() {
  CsvTable table({"target", "family", "macs", "memory_mode", "default"});
  for (const npu::Target& target : npu::allTargets()) {
    for (const npu::MemoryMode& mode : npu::stockMemoryModes()) {
      if (!npu::supportsMemoryMode(target, mode)) continue;
      table.add({std::string(target.name), std::string(npu::familyName(target.family)),
                 std::to_string(target.macs), mode.name,
                 mode.name == target.defaultMemoryMode ? "yes" : "no"});
    }
  }
  return table.str();
}

}  // namespace carina::report
