// SPDX-License-Identifier: Apache-2.0
// Copies of option tables as they stand in a file, whether Carina knows their fields or not.
#pragma once

#include "base/budget.hpp"
#include "base/file.hpp"
#include "tflite/schema.hpp"

namespace carina::tflite {

/// Copies the options of a built-in operator: `type` is its number in the union of the format, which is
/// closed. The table need not be verified: it is, here. Errors: a number beyond the union, a table that
/// reaches out of `file`, more than `copies` allows.
Result<flatbuffers::Offset<void>> copyOptions(ByteSpan file, uint8_t type, const void* table, Budget& copies,
                                              flatbuffers::FlatBufferBuilder& builder);

}  // namespace carina::tflite
