// SPDX-License-Identifier: Apache-2.0
#include "device/npu_host.hpp"

#include "device/npu_setup.hpp"
#include "npu/targets/recorded_memories.hpp"

namespace carina::device {

Result<npu::Machine> chooseMachine(const pte::EthosUSettings& compiled, const RunOptions& options) {
  const bool own = options.target.empty() || options.target == compiled.target;
  const auto pick = [&](const std::string& wanted, const std::string& recorded) {
    return !wanted.empty() || !own ? wanted : recorded;
  };
  const std::string& target = options.target.empty() ? compiled.target : options.target;
  const pte::EthosUSettings wanted{target, pick(options.systemConfig, compiled.systemConfig),
                                   pick(options.memoryMode, compiled.memoryMode), compiled.quantizedIo,
                                   own ? compiled.memories : ""};
  return options.systemConfig.empty() && options.memoryMode.empty() && options.configFile.empty()
             ? machineFor(wanted)
             : npu::makeMachine(target, wanted.systemConfig, wanted.memoryMode, options.configFile,
                                wanted.memories);
}

std::string textOf(const rt::Status& status) {
  char text[256];
  rt::statusText(status, text, sizeof(text));
  return text;
}

Error asError(const rt::Status& status) {
  return fail(Code::NpuFault, "{}", textOf(status));
}

Result<NpuHost> NpuHost::open(const pte::EthosUSettings& compiled, const RunOptions& options) {
  NpuHost host;
  host.compiledTarget = compiled.target;
  CARINA_TRY(host.machine, chooseMachine(compiled, options));
  const bool asCompiled =
      options.target.empty() && options.systemConfig.empty() && options.memoryMode.empty();
  if (auto other = substitution(compiled, host.machine); other && asCompiled) {
    other->remedy = "give the file that it was compiled with as --config, or other names";
    host.warnings.push_back(std::move(*other));
  }
  host.device = std::make_unique<HostDevice>(host.machine, options.model);
  host.driver = std::make_unique<rt::EthosUDriver>(*host.device, driverOptions(host.machine));
  if (const rt::Status status = host.driver->open(); !status.ok()) return asError(status);
  host.fastScratch = AlignedBuffer(static_cast<size_t>(fastScratchBytes(host.machine)));
  return host;
}

Error NpuHost::explain(const rt::Status& status) const {
  if (status.code == rt::Code::WrongTarget) {
    return std::move(fail(Code::OtherNpu, "{}: the program was compiled for {}, but the NPU is {}",
                          textOf(status), compiledTarget, machine.target->name))
        .withRemedy(fmt::format("compile again with --target {}, or run on {}", machine.target->name,
                                compiledTarget));
  }
  if (status.code == rt::Code::DeviceFault && device->fault()) {
    // Not a device fault: the model would not finish in reasonable time.
    if (device->fault()->kind == npu::FaultKind::Limit)
      return fail(Code::Excessive, "{}", device->fault()->str()).withRemedy(kLongRunRemedy);
    return fail(Code::NpuFault, "{}: {}", textOf(status), device->fault()->str());
  }
  return asError(status);
}

}  // namespace carina::device
