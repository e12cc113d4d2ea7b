// SPDX-License-Identifier: Apache-2.0
// How much of the stack was ever used: startup fills it with a pattern.
#pragma once

#include <stddef.h>

namespace carina::firmware {

size_t stackBytes();
size_t stackUsed();

}  // namespace carina::firmware
