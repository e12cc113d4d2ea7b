// SPDX-License-Identifier: Apache-2.0
#include "device/npu_setup.hpp"

#include "npu/isa/payload.hpp"
#include "npu/targets/recorded_memories.hpp"

namespace carina::device {

Result<Compiled> compiledFor(const pte::Program& program) {
  Compiled compiled;
  for (const pte::Method& method : program.methods) {
    for (const pte::Delegate& delegate : method.delegates) {
      if (delegate.id != pte::kEthosUBackend) continue;
      compiled.delegated = true;
      compiled.settings = pte::ethosUSettings(delegate.specs);
      if (!compiled.settings.target.empty()) return compiled;
      CARINA_TRY(const pte::DelegateBlob blob, pte::parseDelegateBlob(delegate.blob));
      CARINA_TRY(const npu::Payload payload, npu::readPayload(blob.payload));
      CARINA_TRY(const npu::Target* target, npu::payloadTarget(payload));
      compiled.settings.target = std::string(target->name);
      return compiled;
    }
  }
  return compiled;
}

Result<npu::Machine> machineFor(const pte::EthosUSettings& settings) {
  const std::string &target = settings.target, &system = settings.systemConfig, &mode = settings.memoryMode;
  if (!settings.memories.empty()) return npu::makeMachine(target, system, mode, {}, settings.memories);
  if (auto known = npu::makeMachine(target, system, mode)) return known;
  if (auto known = npu::makeMachine(target, "", mode)) return known;
  // An unknown mode may put intermediate results into fast scratch.
  for (const std::string& wanted : {system, std::string()}) {
    if (auto spilling = npu::makeMachine(target, wanted, "Dedicated_Sram")) return spilling;
    if (auto known = npu::makeMachine(target, wanted, "")) return known;
  }
  return npu::makeMachine(target, "", "");
}

std::optional<Diagnostic> substitution(const pte::EthosUSettings& settings, const npu::Machine& machine) {
  const bool system = !settings.systemConfig.empty() && settings.systemConfig != machine.system.name;
  const bool mode = !settings.memoryMode.empty() && settings.memoryMode != machine.memory.name;
  if (!system && !mode) return std::nullopt;
  const std::string wanted = system && mode ? fmt::format("system configuration '{}' and memory mode '{}'",
                                                          settings.systemConfig, settings.memoryMode)
                             : system       ? fmt::format("system configuration '{}'", settings.systemConfig)
                                            : fmt::format("memory mode '{}'", settings.memoryMode);
  return Diagnostic{fmt::format("the program was compiled for {}, which it does not describe: it is timed "
                                "with {}, {}",
                                wanted, machine.system.name, machine.memory.name),
                    "", "", ""};
}

int64_t fastScratchBytes(const npu::Machine& machine) {
  constexpr int64_t kDefault = 384 * 1024;
  if (!machine.memory.spilling()) return 0;
  return machine.memory.cacheBytes > 0 ? machine.memory.cacheBytes : kDefault;
}

rt::DriverOptions driverOptions(const npu::Machine& machine) {
  rt::DriverOptions options;
  options.hasAttributes = true;
  if (machine.memory.spilling()) {
    options.attributes = rt::RegionAttributes::dedicatedSram();
  } else if (!machine.memory.slowConstants()) {
    options.attributes = rt::RegionAttributes::sramOnly();
  } else {
    options.hasAttributes = false;
  }
  return options;
}

}  // namespace carina::device
