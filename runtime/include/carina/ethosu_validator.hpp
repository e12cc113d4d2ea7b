// SPDX-License-Identifier: Apache-2.0
// Checks that a command stream keeps to the regions of its job, before an NPU sees it.
#pragma once

#include "carina/ethosu_driver.hpp"

namespace carina::rt {

/// Whether `stream` (untrusted) makes an NPU with this CONFIG register access nothing but the bytes of
/// `regions`, and write nothing but those that are not Access::Read; U85 streams with branches are followed
/// wherever they can lead. Code::CorruptDelegate otherwise, with the byte offset of the command. Takes time
/// linear in the stream and 1 KiB of stack.
///
/// Goes into DriverOptions::validate. An image that does not name it does not contain it.
Status validateStream(uint32_t config, Span<const uint32_t> stream, Span<const Region> regions);

}  // namespace carina::rt
