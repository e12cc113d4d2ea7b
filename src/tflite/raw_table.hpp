// SPDX-License-Identifier: Apache-2.0
// Verbatim copies of option tables, whether or not Carina knows their fields.
#pragma once

#include "base/budget.hpp"
#include "base/file.hpp"
#include "tflite/schema.hpp"

namespace carina::tflite {

/// Copies the options of a built-in operator: `type` is their number in the format's union, which is closed.
/// The table need not be verified: this function verifies it. Fails on numbers beyond the union, on tables
/// that extend past `file`, and if the copies exceed the budget.
Result<flatbuffers::Offset<void>> copyOptions(ByteSpan file, uint8_t type, const void* table, Budget& copies,
                                              flatbuffers::FlatBufferBuilder& builder);

}  // namespace carina::tflite
