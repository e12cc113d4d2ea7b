// SPDX-License-Identifier: Apache-2.0
// A TOSA graph with COND_IF and WHILE_LOOP in the form of a command stream: blocks of straight-line code,
// each a TOSA graph of its own, with jumps between them. Values that leave a block are in places, memory that
// all blocks agree on. (The result of BRANCH's test, and why addresses are the same in every iteration:
// docs/control-flow.md.)
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "ir/graph.hpp"
#include "packing/packing.hpp"

namespace carina::compiler {

/// Memory of one value, or of several that are never needed at the same time.
struct Place {
  std::string name;      // of the TOSA value
  LiveRange live;        // bytes, and the steps of the program during which they are needed
  int64_t address = -1;  // from the start of the arena, a multiple of 16
};

/// Straight-line code. Its graph reads the contents of some places and produces those of others.
struct Block {
  ir::Graph tosa;
  std::vector<int32_t> inputs, outputs;  // places; one that is in both lists is written in place
  size_t graph = 0;  // that its nodes were copied from: index into ir::graphsWithin() of the whole graph
};

struct FlowStep;
using FlowSteps = std::vector<FlowStep>;

/// Runs a block.
struct RunBlock {
  int32_t block = 0;
};
/// Fills places one after another, from other places or with constants.
struct CopyPlaces {
  struct Copy {
    int32_t to = 0, from = 0;             // from -1: the constant
    const ir::Value* constant = nullptr;  // of the graph that the flow was derived from
  };
  std::vector<Copy> copies;
};
/// Runs `whenTrue` if a place holds true (one element, of which bit 0 counts), otherwise `whenFalse`.
struct Choose {
  std::string name;  // of the COND_IF
  int32_t predicate = 0;
  int32_t flagBlock = 0;  // copies the predicate to a place of its own: its last operation sets the flag
  FlowSteps whenTrue, whenFalse;
};
/// Runs the body as long as the test leaves true in a place.
struct Repeat {
  std::string name;  // of the WHILE_LOOP
  FlowSteps test, body;
  int32_t predicate = 0;
  int32_t flagBlock = 0;
  int64_t turns = -1;  // iterations of the body, if known from the graph; -1: data-dependent
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

/// Number of iterations of a WHILE_LOOP, if known from its graph: a counter that starts at a constant, is
/// incremented by a constant in each iteration, and is compared with a constant; otherwise -1.
int64_t tripCountOf(const ir::Node& whileLoop);

/// Whether such a loop writes every row of its carried value `i` and reads none, so that the initial contents
/// do not matter. The value is [1, rows, columns].
bool writesEveryRow(const ir::Node& whileLoop, size_t i);

}  // namespace carina::compiler
