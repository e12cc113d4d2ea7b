// SPDX-License-Identifier: Apache-2.0
// FlatBuffers' verifier counts the tables that it visits, and not the texts of their lists: operators that
// share one list of names make it look at the product of both numbers. This counts first.
#pragma once

#include "base/file.hpp"
#include "base/result.hpp"

namespace carina::tosa_io {

/// Offsets of fields in the tables of a schema, as the generated headers say.
struct ListFields {
  uint16_t regions, blocks, operators, blockInputs, blockOutputs, operatorInputs, operatorOutputs;
};
template <typename Graph, typename Region, typename Block, typename Operator>
constexpr ListFields listFieldsOf() {
  return {Graph::VT_REGIONS, Region::VT_BLOCKS,   Block::VT_OPERATORS, Block::VT_INPUTS,
          Block::VT_OUTPUTS, Operator::VT_INPUTS, Operator::VT_OUTPUTS};
}

/// Fails when the tables and lists of names of a graph, counted as often as they are used, are more than a
/// file of this size holds. The bytes need not be valid: what lies outside of them has no elements.
Status checkStringLists(ByteSpan file, const ListFields& fields);

}  // namespace carina::tosa_io
