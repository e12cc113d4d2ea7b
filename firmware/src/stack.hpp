// SPDX-License-Identifier: Apache-2.0
// High-water mark of the stack, which startup fills with a pattern.
#pragma once

#include <stddef.h>

namespace carina::firmware {

size_t stackBytes();
size_t stackUsed();

}  // namespace carina::firmware
