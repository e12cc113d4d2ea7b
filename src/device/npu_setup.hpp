// SPDX-License-Identifier: Apache-2.0
// What a program says of the NPU that it was compiled for, and how the driver is set up for it: the same on
// the host as in firmware.
#pragma once

#include <optional>

#include "base/result.hpp"
#include "carina/ethosu_driver.hpp"
#include "npu/targets/target.hpp"
#include "pte/delegate_blob.hpp"
#include "pte/program.hpp"

namespace carina::device {

/// From the first Ethos-U delegate: its compile specs, or the configuration in its driver payload.
struct Compiled {
  bool delegated = false;
  pte::EthosUSettings settings;
};
Result<Compiled> compiledFor(const pte::Program& program);

/// The machine that `settings` name and describe. Programs of other makers may name what a configuration file
/// describes that is not here: then the target's default system, and a mode with fast scratch where the
/// target has one.
Result<npu::Machine> machineFor(const pte::EthosUSettings& settings);

/// That `machine` is not what `settings` name, as a warning without place and remedy; nothing when it is.
std::optional<Diagnostic> substitution(const pte::EthosUSettings& settings, const npu::Machine& machine);

/// Bytes of region 2: the mode's cache, or what ExecuTorch's runner gives a mode without a size; 0 for modes
/// without one.
int64_t fastScratchBytes(const npu::Machine& machine);

/// Memory attributes of the regions as the memory mode needs them.
rt::DriverOptions driverOptions(const npu::Machine& machine);

}  // namespace carina::device
