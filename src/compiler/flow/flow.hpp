// SPDX-License-Identifier: Apache-2.0
// A TOSA graph with COND_IF and WHILE_LOOP as what a command stream can say: blocks of straight code, each a
// TOSA graph of its own, with jumps between them. Values that leave a block lie in places, memory that all
// blocks agree on. (The result of BRANCH's test, and why addresses are the same in every turn:
// docs/control-flow.md.)
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "compiler/schedule/allocator.hpp"
#include "ir/graph.hpp"

namespace carina::compiler {

/// Memory of one value, or of several that are never needed at one time.
struct Place {
  std::string name;      // of the TOSA value
  LiveRange live;        // bytes, and the steps of the program during which they are needed
  int64_t address = -1;  // from the start of the arena, a multiple of 16
};

/// Straight code. Its graph takes the contents of some places and gives those of others.
struct Block {
  ir::Graph tosa;
  std::vector<int32_t> inputs, outputs;  // places; a place may be both: what is written in place
  size_t graph = 0;  // that its nodes are copies from: among ir::graphsWithin() of the whole
};

struct FlowStep;
using FlowSteps = std::vector<FlowStep>;

/// Runs a block.
struct RunBlock {
  int32_t block = 0;
};
/// Fills places one after the other, from other places or with constants.
struct CopyPlaces {
  struct Copy {
    int32_t to = 0, from = 0;             // from -1: the constant
    const ir::Value* constant = nullptr;  // of the graph that the flow was made from
  };
  std::vector<Copy> copies;
};
/// Where a place holds true (one element, whose bit 0 counts), the first steps, otherwise the second ones.
struct Choose {
  std::string name;  // of the COND_IF
  int32_t predicate = 0;
  int32_t flagBlock = 0;  // copies the predicate to a place of its own: its last operation sets the flag
  FlowSteps whenTrue, whenFalse;
};
/// While the test leaves true in a place, the body.
struct Repeat {
  std::string name;  // of the WHILE_LOOP
  FlowSteps test, body;
  int32_t predicate = 0;
  int32_t flagBlock = 0;
  int64_t turns = -1;  // of the body, where the graph says it; -1: data decide
};
struct FlowStep {
  std::variant<RunBlock, CopyPlaces, Choose, Repeat> what;
};

struct Flow {
  std::vector<Place> places;
  std::vector<Block> blocks;
  FlowSteps steps;
  std::vector<int32_t> inputs, outputs;  // places of the graph's inputs and outputs
  int64_t bytes = 0;                     // of the arena, up to the end of the last place
};

/// Whether some node of the graph has regions.
bool hasControlFlow(const ir::Graph& tosa);

/// The flow of a verified graph, which outlives it, with an address for every place.
Flow flowOf(const ir::Graph& tosa);

/// How often the body of a WHILE_LOOP runs, where its graph says it: a counter that begins with a constant,
/// goes up by a constant each turn, and is compared with a constant; -1 where it does not say so.
int64_t turnsOf(const ir::Node& whileLoop);

/// Whether such a loop writes every row of the value that it carries as number `i`, and reads none: what it
/// begins with does not count. The value is [1, rows, columns].
bool writesEveryRow(const ir::Node& whileLoop, size_t i);

}  // namespace carina::compiler
