// SPDX-License-Identifier: Apache-2.0
// What a program records about the NPU that it was compiled for, and the driver configuration for it: the
// same on the host as in firmware.
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

/// The machine that `settings` name and describe. Programs of other compilers may refer to a configuration
/// file that is not available: then the target's default system, and a mode with fast scratch if the target
/// has one.
Result<npu::Machine> machineFor(const pte::EthosUSettings& settings);

/// A warning, without place and remedy, that `machine` is not what `settings` name; nothing if it is.
std::optional<Diagnostic> substitution(const pte::EthosUSettings& settings, const npu::Machine& machine);

/// Bytes of region 2: the mode's cache, or the default of ExecuTorch's runner for a mode without a size; 0
/// for modes without a cache.
int64_t fastScratchBytes(const npu::Machine& machine);

/// Memory attributes of the regions, as the memory mode requires.
rt::DriverOptions driverOptions(const npu::Machine& machine);

}  // namespace carina::device
