// SPDX-License-Identifier: Apache-2.0
// The compiler as a whole (compiler.hpp): the stages in sequence, and the record of the results.
#include "compiler/compiler.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "compiler/flow/flow.hpp"
#include "compiler/flow_program.hpp"
#include "compiler/legalize/legalize.hpp"
#include "compiler/program_writer.hpp"
#include "compiler/row_tile_search.hpp"
#include "compiler/schedule/block_search.hpp"
#include "compiler/schedule/constant_operands.hpp"
#include "compiler/schedule/known_weights.hpp"
#include "compiler/schedule/operation_builder.hpp"
#include "compiler/schedule/split_steps.hpp"
#include "compiler/schedule/split_weights.hpp"
#include "compiler/search/search.hpp"
#include "compiler/storage/storage.hpp"
#include "ir/printer.hpp"
#include "ir/verifier.hpp"
#include "tosa/tosa.hpp"

namespace carina::compiler {
namespace {

/// Whether the on-chip buffers hold a block of every operation of a graph that has been through
/// makeAddressable().
Status checkBlocks(const ir::Graph& graph, const npu::Target& target) {
  CARINA_TRY(const Storage storage, assignStorage(graph, Bricks::Padded));
  for (const ir::Node* node : graph.nodes()) {
    if (!npu_ir::hasOutputStage(node)) continue;
    CARINA_RETURN_IF_ERROR(checkBlock(buildOperation(node, storage, target), target));
  }
  return {};
}

/// A graph that is ready for scheduling.
struct Addressable {
  ir::Graph graph;
  int64_t steps = 0;  // parts that its layers over whole sequences could be split into
};

/// `parts`: limit for each layer that is computed for all steps of a sequence at once.
Result<Addressable> addressable(const ir::Graph& tosa, const npu::Machine& machine, int64_t parts = 1) {
  CARINA_CHECK(machine.target, "a machine has a target");
  CARINA_TRY(ir::Graph graph, legalize(tosa, *machine.target));
  int64_t steps = 0;
  if (parts > 1) {
    steps = splitSteps(graph, parts);
    if (ir::verifiesEachPass()) ir::checkVerified(graph, "split-steps");
  }
  // In a small cache, parts get in each other's way.
  if (machine.memory.slowConstants() && !machine.memory.spilling()) splitWeights(graph);
  if (ir::verifiesEachPass()) ir::checkVerified(graph, "split-weights");
  settleConstantOperands(graph, machine);
  if (ir::verifiesEachPass()) ir::checkVerified(graph, "settle-constant-operands");
  CARINA_RETURN_IF_ERROR(makeAddressable(graph));
  ir::checkVerified(graph, "make-addressable");
  return Addressable{std::move(graph), steps};
}

Result<ir::Graph> addressableGraph(const ir::Graph& tosa, const npu::Machine& machine) {
  CARINA_TRY(Addressable npu, addressable(tosa, machine));
  return std::move(npu.graph);
}

/// A graph and its schedule.
struct Plan {
  ir::Graph graph;
  Result<Schedule> schedule;
  std::vector<RowPiece> pieces = {};  // if the graph is tiled
};

bool doesNotFit(const Plan& plan) {
  return !plan.schedule.ok() && plan.schedule.error().diagnostics().front().code == Code::DoesNotFit;
}

/// The schedule of a graph. If a smaller arena is needed, that of the same network with layers over whole
/// sequences split: into as few parts as the limit requires or, for Optimize::Size, into as many as possible.
Result<Plan> planOf(const ir::Graph& tosa, ir::Graph graph, const npu::Machine& machine,
                    const Options& options) {
  Result<Schedule> whole = schedule(graph, machine, options);
  Plan best{std::move(graph), std::move(whole)};
  const bool size = options.optimize == Optimize::Size;
  const bool tooLarge = options.arenaLimit > 0 && doesNotFit(best);
  if (!tooLarge && !(size && best.schedule.ok())) return best;
  constexpr int64_t kMaxParts = 4096;
  int64_t bound = best.schedule.ok() ? best.schedule->arenaBound : 0;
  for (int64_t parts = size ? kMaxParts : 2;; parts *= 2) {
    CARINA_TRY(Addressable split, addressable(tosa, machine, parts));
    if (split.steps == 0) break;
    if (auto found = schedule(split.graph, machine, options); found.ok()) {
      bound = bound > 0 ? std::min(bound, found->arenaBound) : found->arenaBound;
      if (!best.schedule.ok() || found->arenaBytes < best.schedule->arenaBytes)
        best = {std::move(split.graph), std::move(found)};
      if (!size) break;
    }
    if (parts >= split.steps) break;
  }
  if (best.schedule.ok()) best.schedule->arenaBound = bound;
  return best;
}

/// The schedule of a tiled graph, of which `graph` is ready for scheduling.
Result<Plan> planOf(TiledGraph tiled, ir::Graph graph, const npu::Machine& machine, const Options& options) {
  CARINA_TRY(Plan plan, planOf(tiled.graph, std::move(graph), machine, options));
  plan.pieces = std::move(tiled.pieces);
  return plan;
}

/// The plan that takes less memory; if neither fits, `tiled`, whose error names less.
Plan smaller(Plan whole, Plan tiled) {
  if (!tiled.schedule.ok())
    return doesNotFit(whole) && doesNotFit(tiled) ? std::move(tiled) : std::move(whole);
  if (!whole.schedule.ok()) return tiled;
  const int64_t bound = std::min(whole.schedule->arenaBound, tiled.schedule->arenaBound);
  Plan& best = isSmaller(*tiled.schedule, *whole.schedule) ? tiled : whole;
  best.schedule->arenaBound = bound;
  return std::move(best);
}

/// The plan with fewer cycles of two that fit.
Plan faster(Plan whole, Plan tiled) {
  return streamCycles(*tiled.schedule) < streamCycles(*whole.schedule) ? std::move(tiled) : std::move(whole);
}

/// The schedule of a graph without a cache: with row tiles if it does not fit as usual, or for
/// Optimize::Size.
Result<Plan> planInArena(const ir::Graph& tosa, ir::Graph graph, const npu::Machine& machine,
                         const Options& options, const Lower& lower) {
  CARINA_TRY(Plan best, planOf(tosa, std::move(graph), machine, options));
  const bool size = options.optimize == Optimize::Size;
  const bool fits = best.schedule.ok();
  if (!size && !doesNotFit(best) && (!fits || best.schedule->isUsual)) return best;
  // Addresses may need slightly more memory than the bound by which tiles are chosen: choose more of them
  // then.
  for (const int64_t bytes : {size ? 0 : options.arenaLimit, int64_t{0}}) {
    std::optional<TiledGraph> tiled = tiledForMemory(tosa, machine, options, bytes, lower);
    if (!tiled) break;
    CARINA_TRY(ir::Graph tiledGraph, lower(tiled->graph));
    CARINA_TRY(Plan plan, planOf(std::move(*tiled), std::move(tiledGraph), machine, options));
    const bool both = fits && plan.schedule.ok();
    best = (both && !size ? faster : smaller)(std::move(best), std::move(plan));
    if (bytes == 0 || !doesNotFit(best)) break;
  }
  return best;
}

/// The schedule of a graph behind a cache, with row tiles where they help: what parts of a network gain by
/// themselves, the whole may lose.
Result<Plan> planBehindCache(const ir::Graph& tosa, ir::Graph graph, const npu::Machine& machine,
                             const Options& options, const Lower& lower) {
  std::vector<TiledGraph> tiled = tiledForSpeed(tosa, machine, options, lower);
  if (tiled.empty()) return planOf(tosa, std::move(graph), machine, options);
  std::vector<ir::Graph> tiledGraphs;
  for (const TiledGraph& t : tiled) {
    CARINA_TRY(ir::Graph tiledGraph, lower(t.graph));
    tiledGraphs.push_back(std::move(tiledGraph));
  }
  size_t chosen = 0;
  const bool size = options.optimize == Optimize::Size;
  // In networks whose search takes seconds, many parts gain the same.
  constexpr size_t kManyNodes = 8192;
  if (!size && graph.numNodes() < kManyNodes) {
    chosen = tiled.size();
    auto fewest = expectedCycles(graph, machine, options);
    for (size_t i = 0; i < tiled.size(); ++i) {
      auto cycles = expectedCycles(tiledGraphs[i], machine, options);
      if (!cycles.ok() || (fewest.ok() && *cycles >= *fewest)) continue;
      fewest = std::move(cycles);
      chosen = i;
    }
    if (chosen == tiled.size()) return planOf(tosa, std::move(graph), machine, options);
  }
  CARINA_TRY(Plan plan, planOf(std::move(tiled[chosen]), std::move(tiledGraphs[chosen]), machine, options));
  if (plan.schedule.ok() && !size) return plan;
  CARINA_TRY(Plan whole, planOf(tosa, std::move(graph), machine, options));
  return smaller(std::move(whole), std::move(plan));
}

/// The schedule of a graph, with row tiles where they help.
Result<Plan> bestPlan(const ir::Graph& tosa, ir::Graph graph, const npu::Machine& machine,
                      const Options& options) {
  const Lower lower = [&](const ir::Graph& part) { return addressableGraph(part, machine); };
  const auto plan = machine.memory.spilling() ? planBehindCache : planInArena;
  return plan(tosa, std::move(graph), machine, options, lower);
}

/// Relates the placements of pieces to the values that they are rows of.
void nameWholes(const std::vector<RowPiece>& pieces, std::vector<ValuePlacement>& placements) {
  std::unordered_map<std::string_view, const RowPiece*> byName;
  for (const RowPiece& piece : pieces) byName.emplace(piece.name, &piece);
  for (ValuePlacement& placement : placements) {
    const auto found = byName.find(placement.value);
    if (found == byName.end()) continue;
    placement.firstElement = found->second->firstElement;
    placement.value = found->second->whole;
  }
}

/// Where records and weight streams are in the constants, including their padding to a multiple of 16.
std::vector<npu::AddressRange> streamsOf(const Schedule& schedule) {
  std::vector<npu::AddressRange> streams;
  for (const Pass& pass : schedule.passes) {
    for (const WeightSlice& slice : pass.slices) {
      const bool coded = ir::isa<npu_ir::CodedConv>(pass.node);
      const auto add = [&](const auto& ranges) {
        for (const npu::AddressRange& range : ranges) {
          if (range.length == 0) continue;
          const int64_t at = slice.constantAt(static_cast<int64_t>(range.address));
          const int64_t bytes = roundUp(static_cast<int64_t>(range.length), 16);
          streams.push_back({static_cast<uint64_t>(at), static_cast<uint64_t>(bytes)});
        }
      };
      add(slice.streams.scales);
      if (!coded) add(slice.streams.weights);
    }
  }
  return streams;
}

/// Checks a conditional or loop, and everything in its regions.
std::optional<Diagnostic> supportsControlFlow(const ir::Node& node, const npu::Target& target) {
  if (!target.architecture().branches) {
    return Diagnostic{fmt::format("{} has no command that branches: {} cannot run inside of a command stream",
                                  npu::familyName(target.family), node.opName()),
                      "leave the branch to the program around the NPU parts", "", node.where(),
                      Code::MissingCapability};
  }
  for (const auto& region : node.regions()) {
    for (const ir::Node* inner : region->nodes()) {
      if (auto why = supports(*inner, target)) {
        if (why->place.empty()) why->place = inner->where();
        return why;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

Result<ir::Graph> lowerToNpu(const ir::Graph& tosa, const npu::Machine& machine) {
  CARINA_TRY(ir::Graph npu, addressableGraph(tosa, machine));
  CARINA_RETURN_IF_ERROR(checkBlocks(npu, *machine.target));
  return npu;
}

Status checkControlFlow(const ir::Graph& tosa, const npu::Machine& machine) {
  if (!machine.target->architecture().branches) {
    for (const ir::Node* node : tosa.nodes()) {
      if (!node->regions().empty()) return Error(*supports(*node, *machine.target));
    }
  }
  for (const Block& block : flowOf(tosa).blocks) {
    CARINA_TRY([[maybe_unused]] const ir::Graph npu, lowerToNpu(block.tosa, machine));
  }
  return {};
}

Result<CompiledProgram> compile(const ir::Graph& tosa, const npu::Machine& machine, const Options& options) {
  if (hasControlFlow(tosa)) return compileFlow(tosa, machine, options, addressableGraph);
  CARINA_TRY(ir::Graph npu, addressableGraph(tosa, machine));
  return compile(tosa, std::move(npu), machine, options);
}

Result<CompiledProgram> compile(const ir::Graph& tosa, ir::Graph npu, const npu::Machine& machine,
                                const Options& options) {
  CARINA_TRY(Plan chosen, bestPlan(tosa, std::move(npu), machine, options));
  const ir::Graph& graph = chosen.graph;
  if (options.dump) options.dump("npu", [&] { return ir::print(graph); });
  CARINA_TRY(Schedule plan, std::move(chosen.schedule));
  if (options.dump) options.dump("schedule", [&] { return print(plan); });
  CompiledProgram program;
  program.machine = machine;
  ProgramWriter writer(machine, options, program);
  CARINA_RETURN_IF_ERROR(writer.add(plan));
  CARINA_RETURN_IF_ERROR(writer.finish());
  program.cycles = writer.cycles();
  program.arenaBytes = plan.arenaBytes;
  program.arenaBound = plan.arenaBound;
  program.cacheBytes = plan.cacheBytes;
  for (size_t i = 0; i < tosa.inputs().size(); ++i) {
    program.inputs.push_back(ioTensor(plan, graph.inputs()[i], tosa.inputs()[i]));
  }
  for (size_t i = 0; i < tosa.outputs().size(); ++i) {
    program.outputs.push_back(ioTensor(plan, graph.outputs()[i], tosa.outputs()[i]));
  }
  if (options.records) addMemoryRecords(plan, graph, tosa, program);
  nameWholes(chosen.pieces, program.values);
  program.streams = streamsOf(plan);
  if (options.known) options.known->add(plan);
  program.constants = std::move(plan.constants).take();
  return program;
}

std::optional<Diagnostic> supports(const ir::Node& tosaOp, const npu::Target& target) {
  if (!tosaOp.regions().empty()) return supportsControlFlow(tosaOp, target);
  // The operator on its own, with the neighbours that the hardware only supports in combination with it.
  ir::Graph graph("supports");
  std::unordered_map<const ir::Value*, ir::Value*> mapping;
  const auto operand = [&](const ir::Value* value) {
    if (!value || mapping.contains(value)) return;
    mapping[value] = value->isConstant() ? graph.addConstant(value->constant()) : graph.addInput(value->type);
  };
  const auto add = [&](const ir::Node& node) -> Status {
    for (const ir::Value* value : node.operands()) operand(value);
    auto copy = ir::cloneNode(node, graph, mapping);
    if (!copy.ok()) return copy.error();
    return {};
  };
  const auto why = [](const Error& error) { return error.diagnostics().front(); };
  const auto isWide = [](const ir::Value* value) {
    return dtypeSize(value->dtype()) > 4 && value->dtype() != DType::Shape;
  };
  const ir::Node* last = &tosaOp;
  if (ir::isa<tosa::Rescale>(&tosaOp) && isWide(tosaOp.operand(0)) && tosaOp.operand(0)->producer()) {
    if (auto status = add(*tosaOp.operand(0)->producer()); !status.ok()) return why(status.error());
  }
  if (auto status = add(tosaOp); !status.ok()) return why(status.error());
  const ir::Value* result = tosaOp.results().empty() ? nullptr : tosaOp.result();
  if (result && isWide(result) && result->hasOneUse() &&
      ir::isa<tosa::Rescale>(result->uses().front().node)) {
    last = result->uses().front().node;
    if (auto status = add(*last); !status.ok()) return why(status.error());
  }
  std::vector<ir::Value*> outputs;
  for (const ir::Value* value : last->results()) outputs.push_back(mapping.at(value));
  graph.setOutputs(std::move(outputs));
  auto lowered = legalize(graph, target);
  if (!lowered.ok()) return why(lowered.error());
  if (auto status = makeAddressable(*lowered); !status.ok()) return why(status.error());
  if (auto status = checkBlocks(*lowered, target); !status.ok()) return why(status.error());
  return std::nullopt;
}

}  // namespace carina::compiler
