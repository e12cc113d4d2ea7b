// SPDX-License-Identifier: Apache-2.0
// The runtime's element types, for readers and writers of program files.
#pragma once

#include "../include/carina/scalar_type.hpp"

namespace carina::format {

using rt::elementSize;
using rt::ScalarType;
using rt::scalarTypeText;

}  // namespace carina::format
