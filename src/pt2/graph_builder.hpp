// SPDX-License-Identifier: Apache-2.0
// From the archive's document and state to a graph of the aten dialect, as the exporter left it: not yet
// functional.
#pragma once

#include <unordered_set>

#include "pt2/document.hpp"
#include "pt2/exported_program.hpp"
#include "pt2/state_dict.hpp"

namespace carina::pt2 {

/// A tensor that the program writes according to its signature (graphs after run_decompositions()).
struct SignatureWrite {
  ir::Value* target = nullptr;    // input or constant that is written
  ir::Value* newValue = nullptr;  // what it holds after a call
};

struct BuiltProgram {
  ir::Graph graph;
  std::vector<ProgramInput> inputs;
  std::vector<ProgramOutput> outputs;
  std::vector<StateTensor> state;
  /// Name in the graph of each state tensor's value, "" when it was not read. Passes may replace the values,
  /// names stay.
  std::vector<std::string> stateNames;
  std::vector<SignatureWrite> writes;
  std::unordered_set<const ir::Value*> copies;  // results of views that PyTorch made as copies
  /// Constants whose storage another, different view shares: writing them cannot be expressed.
  std::vector<const ir::Value*> sharedStorage;
};

/// `program` has passed checkServable(). Parameters, buffers and constants become constants of the graph when
/// some node or output uses them; unused ones are not read.
Result<BuiltProgram> buildGraph(const ProgramDocument& program, const Archive& archive,
                                const std::string& model);

}  // namespace carina::pt2
