// SPDX-License-Identifier: Apache-2.0
// The NPU compiler: an integer TOSA graph in, a command stream with its constants and memory plan out.
// Stages, each usable separately: legalize (tosa -> npu dialect), schedule (npu dialect -> npu::Schedule),
// emit (schedule -> operations, constants) and the stream writer (operations -> words).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "compiler/search/options.hpp"
#include "ir/graph.hpp"
#include "npu/isa/operation.hpp"
#include "npu/targets/target.hpp"
#include "npu/timing/timing.hpp"
#include "npu/timing/way.hpp"

namespace carina::compiler {

/// A program input or output: a dense row-major tensor in the arena.
struct IoTensor {
  std::string name;
  DType dtype = DType::Int8;
  Shape shape;         // of the TOSA value
  int64_t offset = 0;  // bytes from the start of region 1, a multiple of 16
  int64_t bytes = 0;
};

/// One hardware operation, for reports, profiles and verify.
struct OperationRecord {
  ir::LocationRef location;  // of the source node; may be null
  std::string name;          // "conv2d_3" (source node), with a suffix for slices: "conv2d_3[16:32]"
  std::string kind;          // "CONV", "DEPTHWISE", "POOL MAX", "ELEMENTWISE ADD", "DMA weights", ...
  uint32_t wordOffset = 0;   // of its NPU_OP command in the command stream, in words
  int64_t cycles = 0;        // estimate of the operation on its own
  int64_t macs = 0;
  npu::BlockShape block;
  std::string value;      // name of the TOSA value whose elements it completes, "" if none
  npu::AddressRange ofm;  // bytes written, relative to ofmRegion
  uint8_t ofmRegion = 1;
  npu::Operation operation;   // as in the stream
  npu::ScheduledCost timing;  // its position on the timeline, and its cost on its own
};

/// A buffer of the memory plan, for reports: what is where, and when.
struct MemoryRecord {
  std::string name;  // of the TOSA value, or of the node whose weights are staged
  std::string what;  // "input", "output", "feature map", "staged weights"
  npu::Area area = npu::Area::Arena;
  int64_t address = 0, bytes = 0;  // in the area
  int32_t first = 0, last = 0;     // steps of the schedule; -1: before the first
};

/// Where the elements of a TOSA value are after each run of its last operation: lets verify compare
/// intermediate results.
struct ValuePlacement {
  std::string value;     // name of the TOSA value
  size_t graph = 0;      // that it belongs to: index into ir::graphsWithin() of the TOSA graph
  size_t operation = 0;  // index into CompiledProgram::operations of the last operation that writes it
  npu::FeatureMap map;   // shape, layout and strides; height x width x depth elements
  /// If it holds only some rows of the value: their first element, in the value's row-major order.
  std::optional<int64_t> firstElement = std::nullopt;
};

/// A conditional or loop of the command stream.
struct BranchRecord {
  std::string name;  // of the node in the user's network
  bool isLoop = false;
  int64_t turns = 1;  // of a loop: iterations of its body; -1: data-dependent
  /// Of a conditional, when true and when false; of a loop, one iteration of its body, and its test. Longest
  /// paths.
  npu::Cycles first = 0, second = 0;
  /// Byte offsets in the stream: of the first branch; of the true side or the test, which follow the false
  /// side or the body; of the end.
  uint32_t begin = 0, middle = 0, end = 0;
};

struct CompiledProgram {
  npu::Machine machine;
  std::vector<uint32_t> commands;    // whole stream, STOP included
  std::vector<std::byte> constants;  // region 0: weights, scales, tables, constant feature maps
  /// Parts of the constants: each record and weight stream on its own. An operation may read several
  /// together.
  std::vector<npu::AddressRange> streams;
  int64_t arenaBytes = 0;                 // region 1, program inputs and outputs included
  int64_t arenaBound = 0;                 // lower bound for any cascades, 0: unknown
  int64_t cacheBytes = 0;                 // region 2; 0 if the cache is the arena
  std::vector<IoTensor> inputs, outputs;  // in the order of the graph's inputs and outputs
  std::vector<OperationRecord> operations;
  std::vector<ValuePlacement> values;
  std::vector<BranchRecord> branches;  // inner ones first
  std::vector<MemoryRecord> memory;    // of arena and cache
  std::vector<std::string> steps;      // of the schedule: what runs in each, to interpret `memory`
  int64_t cycles = 0;  // estimate of one inference: longest path, one iteration of data-dependent loops
  int64_t macs = 0;
};

/// The loops of a program whose iteration counts are known from the graph, in the order of their starts.
std::vector<npu::CountedLoop> countedLoops(const CompiledProgram& program);

/// Compiles a verified graph of the tosa dialect with static shapes and integer types. Errors name the
/// operator, its place in the user's network, the limit and the value that breaks it, and what to change.
Result<CompiledProgram> compile(const ir::Graph& tosa, const npu::Machine& machine,
                                const Options& options = {});

/// The same for a TOSA graph whose npu graph (lowerToNpu) is available.
Result<CompiledProgram> compile(const ir::Graph& tosa, ir::Graph npu, const npu::Machine& machine,
                                const Options& options = {});

/// The npu graph that compile() derives from a TOSA graph and schedules: legal operations, layers with many
/// weights split into parts, every view expressible by addressing, and on-chip buffers that hold a block of
/// every operation.
Result<ir::Graph> lowerToNpu(const ir::Graph& tosa, const npu::Machine& machine);

/// Whether everything in a graph with COND_IF or WHILE_LOOP can be compiled, block by block.
Status checkControlFlow(const ir::Graph& tosa, const npu::Machine& machine);

/// Why a TOSA operator cannot run on the target and what would change that; nothing if it can. Examines the
/// node, its types and constant operands, and its neighbours where the hardware only has the fused form.
std::optional<Diagnostic> supports(const ir::Node& tosaOp, const npu::Target& target);

}  // namespace carina::compiler
