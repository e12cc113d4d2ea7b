// SPDX-License-Identifier: Apache-2.0
// FlatBuffers' verifier counts the tables that it visits, but not the strings in their lists: operators that
// share one list of names make it visit the product of both counts. This check counts first.
#pragma once

#include "base/file.hpp"
#include "base/result.hpp"

namespace carina::tosa_io {

/// Offsets of fields in the tables of a schema, from the generated headers.
struct ListFields {
  uint16_t regions, blocks, operators, blockInputs, blockOutputs, operatorInputs, operatorOutputs;
};
template <typename Graph, typename Region, typename Block, typename Operator>
constexpr ListFields listFieldsOf() {
  return {Graph::VT_REGIONS, Region::VT_BLOCKS,   Block::VT_OPERATORS, Block::VT_INPUTS,
          Block::VT_OUTPUTS, Operator::VT_INPUTS, Operator::VT_OUTPUTS};
}

/// Fails if the tables and name lists of a graph, counted as often as they are used, exceed what a file of
/// this size can hold. The bytes need not be valid: anything outside them counts as empty.
Status checkStringLists(ByteSpan file, const ListFields& fields);

}  // namespace carina::tosa_io
