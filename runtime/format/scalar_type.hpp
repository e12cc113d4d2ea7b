// SPDX-License-Identifier: Apache-2.0
// The element types of programs, for those who write and read the files: the runtime's own.
#pragma once

#include "../include/carina/scalar_type.hpp"

namespace carina::format {

using rt::elementSize;
using rt::ScalarType;
using rt::scalarTypeText;

}  // namespace carina::format
