// SPDX-License-Identifier: Apache-2.0
// Checks that a command stream stays within the regions of its job before an NPU runs it.
#pragma once

#include "carina/ethosu_driver.hpp"

namespace carina::rt {

/// Checks that `stream` (untrusted) makes an NPU with this CONFIG register access only bytes of `regions`,
/// and write only regions that are not Access::Read; branches in U85 streams are followed to every target.
/// Otherwise Code::CorruptDelegate with the byte offset of the command. Takes time linear in the stream, and
/// 1 KiB of stack.
///
/// For DriverOptions::validate. Linked only into images that reference it.
Status validateStream(uint32_t config, Span<const uint32_t> stream, Span<const Region> regions);

}  // namespace carina::rt
