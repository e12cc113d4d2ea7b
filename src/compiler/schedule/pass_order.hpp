// SPDX-License-Identifier: Apache-2.0
// Orders of passes that need less memory.
#pragma once

#include "compiler/schedule/schedule.hpp"

namespace carina::compiler {

/// Moves the last readers of a map to where its other readers end if their results take less memory than the
/// map, which they then replace: attention reads the queries, keys and values of one linear layer, the values
/// only after the softmax. Returns whether passes were moved. Groups must not have been formed.
bool freeMapsEarly(Schedule& schedule);

}  // namespace carina::compiler
