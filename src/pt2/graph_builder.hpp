// SPDX-License-Identifier: Apache-2.0
// Builds a graph of the aten dialect from the archive's document and state, as the exporter left it: not yet
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
  /// Name in the graph of each state tensor's value, "" if it was not read. Passes may replace the values but
  /// keep the names.
  std::vector<std::string> stateNames;
  std::vector<SignatureWrite> writes;
  std::unordered_set<const ir::Value*> copies;  // results of views that PyTorch materialised as copies
  /// Constants that share their storage with a different view: writes to them cannot be expressed.
  std::vector<const ir::Value*> sharedStorage;
};

/// `program` must have passed checkServable(). Parameters, buffers and constants become constants of the
/// graph if some node or output uses them; unused ones are not read.
Result<BuiltProgram> buildGraph(const ProgramDocument& program, const Archive& archive,
                                const std::string& model);

}  // namespace carina::pt2
