// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "tflite/model.hpp"
#include "tflite/schema.hpp"

namespace carina::tflite {

/// The options of an operator, named as in the schema; empty if it has none that Carina reads. The entry must
/// be verified.
std::vector<Option> optionsOf(const fb::OperatorEntry& entry);

}  // namespace carina::tflite
