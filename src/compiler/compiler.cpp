// SPDX-License-Identifier: Apache-2.0
// The compiler as a whole (compiler.hpp): the stages one after the other, and the record of what came out.
#include "compiler/compiler.hpp"

#include <unordered_map>

#include "compiler/emit/emit.hpp"
#include "compiler/legalize/legalize.hpp"
#include "compiler/schedule/block_search.hpp"
#include "compiler/schedule/constant_operands.hpp"
#include "compiler/schedule/operation_builder.hpp"
#include "compiler/schedule/split_weights.hpp"
#include "compiler/search/search.hpp"
#include "compiler/storage/storage.hpp"
#include "ir/printer.hpp"
#include "ir/verifier.hpp"
#include "npu/isa/stream.hpp"
#include "npu/timing/timing.hpp"
#include "tosa/tosa.hpp"

namespace carina::compiler {
namespace {

constexpr size_t kMaxCommandBytes = size_t{16} << 20;

IoTensor ioTensor(const Schedule& schedule, const ir::Value* npuValue, const ir::Value* tosaValue) {
  const Access& access = schedule.storage->access(npuValue);
  IoTensor io;
  io.name = tosaValue->name;
  io.dtype = tosaValue->dtype();
  io.shape = tosaValue->shape();
  io.bytes = tosaValue->numElements() * dtypeSize(tosaValue->dtype());
  const Placement& place = schedule.buffers[static_cast<size_t>(access.buffer)];
  const int64_t address =
      place.home < 0 ? place.address : schedule.homes[static_cast<size_t>(place.home)].address;
  io.offset = address + access.offset;
  return io;
}

/// Name of the node in the user's network that a node comes from.
std::string sourceName(const ir::Node* node) {
  const auto& location = node->location();
  return location && !location->name.empty() ? location->name : node->result()->name;
}

std::string operationName(const EmittedOperation& emitted) {
  return emitted.node ? sourceName(emitted.node) + emitted.suffix : "";
}

/// All elements of the value are in memory once its node has run.
bool holdsWhole(const Schedule& schedule, const ir::Value* value) {
  return schedule.buffers[static_cast<size_t>(schedule.storage->access(value).buffer)].heldRows == 0;
}

Status writeStream(const std::vector<EmittedOperation>& operations, const Schedule& schedule,
                   const Options& options, CompiledProgram& program) {
  npu::StreamWriter writer(*schedule.machine.target);
  npu::Timeline timeline(schedule.machine);
  for (const EmittedOperation& emitted : operations) {
    if (Status status = writer.add(emitted.operation); !status.ok()) {
      return std::move(status).error().at(emitted.node ? emitted.node->where() : "command stream");
    }
    const bool wide = std::holds_alternative<npu::Stop>(emitted.operation) || !emitted.node;
    const uint32_t offset = writer.position() - 4;
    timeline.add(emitted.operation, offset);
    if (wide) continue;
    const npu::OperationCost* cost =
        timeline.operations().empty() ? nullptr : &timeline.operations().back().cost;
    if (cost) program.macs += cost->macs;
    if (!options.records) continue;
    OperationRecord record;
    record.location = emitted.node->location();
    record.name = operationName(emitted);
    const auto* op = std::get_if<npu::KernelOperation>(&emitted.operation);
    record.kind = op ? operationKindText(*op) : std::string(emitted.kind);
    record.wordOffset = offset / 4;
    record.operation = emitted.operation;
    if (cost) {
      record.cycles = cost->total;
      record.macs = cost->macs;
      record.timing = timeline.operations().back();
    }
    if (op) {
      record.block = op->block;
      const int64_t rows = op->ofm.strideY * (op->ofm.height - 1);
      record.ofm = {op->ofm.base[0],
                    static_cast<uint64_t>(std::max<int64_t>(rows, 0) + op->ofm.strideX * op->ofm.width)};
      record.ofmRegion = op->ofm.region;
      const bool inMemory =
          op->ofm.storage != npu::Storage::Chained && holdsWhole(schedule, emitted.node->result());
      if (emitted.last && inMemory) record.value = emitted.node->result()->name;
      if (emitted.last && !record.value.empty() && op->transpose == npu::Transpose::HWC) {
        npu::FeatureMap map = featureMap(*schedule.storage, emitted.node->result());
        const Placement& place =
            schedule.buffers[static_cast<size_t>(schedule.storage->access(emitted.node->result()).buffer)];
        map.region = regionOf(place.area);
        map.base[0] += static_cast<uint64_t>(place.address);
        program.values.push_back({record.value, program.operations.size(), map});
      }
    }
    program.operations.push_back(std::move(record));
  }
  program.cycles = timeline.total();
  program.commands = std::move(writer).take();
  if (program.commands.size() * 4 > kMaxCommandBytes) {
    return fail(Code::HardwareLimit, "the command stream takes {} bytes > 16 MiB",
                program.commands.size() * 4)
        .withRemedy("split the network");
  }
  return {};
}

/// `names`: of the buffers of program inputs and outputs.
std::vector<MemoryRecord> memoryRecords(const Schedule& schedule,
                                        const std::unordered_map<size_t, std::string>& names) {
  std::vector<MemoryRecord> records;
  const auto add = [&](const Placement& place, std::string name, const char* what) {
    if (place.bytes == 0 || place.area == npu::Area::Constants) return;
    records.push_back(
        {std::move(name), what, place.area, place.address, place.bytes, place.live.first, place.live.last});
  };
  for (size_t b = 0; b < schedule.buffers.size(); ++b) {
    const Buffer& buffer = schedule.storage->buffers[b];
    const auto named = names.find(b);
    std::string name = named != names.end() ? named->second : buffer.root->name;
    if (name.empty() && buffer.root->producer()) name = sourceName(buffer.root->producer());
    if (schedule.buffers[b].home >= 0)
      add(schedule.homes[static_cast<size_t>(schedule.buffers[b].home)], name, "input");
    add(schedule.buffers[b], std::move(name),
        schedule.buffers[b].takesOver >= 0  ? "in place"
        : schedule.buffers[b].home >= 0     ? "copy of an input"
        : buffer.kind == BufferKind::Input  ? "input"
        : buffer.kind == BufferKind::Output ? "output"
                                            : "feature map");
  }
  for (const Pass& pass : schedule.passes) {
    if (pass.weights.copyOf >= 0) continue;
    for (const int staging : pass.staging) {
      if (staging >= 0) {
        add(schedule.staging[static_cast<size_t>(staging)], sourceName(pass.node), "staged weights");
      }
    }
  }
  return records;
}

/// Whether the on-chip buffers hold a block of every operation of a graph that makeAddressable() has been
/// through.
Status checkBlocks(const ir::Graph& graph, const npu::Target& target) {
  CARINA_TRY(const Storage storage, assignStorage(graph, true));
  for (const ir::Node* node : graph.nodes()) {
    if (!npu_ir::hasOutputStage(node)) continue;
    CARINA_RETURN_IF_ERROR(checkBlock(buildOperation(node, storage, target), target));
  }
  return {};
}

Result<ir::Graph> addressable(const ir::Graph& tosa, const npu::Machine& machine) {
  CARINA_CHECK(machine.target, "a machine has a target");
  CARINA_TRY(ir::Graph graph, legalize(tosa, *machine.target));
  // In a small cache, parts get in each other's way.
  if (machine.memory.slowConstants() && !machine.memory.spilling()) splitWeights(graph);
  if (ir::verifiesEachPass()) ir::checkVerified(graph, "split-weights");
  settleConstantOperands(graph, machine);
  if (ir::verifiesEachPass()) ir::checkVerified(graph, "settle-constant-operands");
  CARINA_RETURN_IF_ERROR(makeAddressable(graph));
  ir::checkVerified(graph, "make-addressable");
  return graph;
}

}  // namespace

Result<CompiledProgram> compile(const ir::Graph& tosa, const npu::Machine& machine, const Options& options) {
  CARINA_TRY(ir::Graph npu, addressable(tosa, machine));
  return compile(tosa, std::move(npu), machine, options);
}

Result<ir::Graph> lowerToNpu(const ir::Graph& tosa, const npu::Machine& machine) {
  CARINA_TRY(ir::Graph graph, addressable(tosa, machine));
  CARINA_RETURN_IF_ERROR(checkBlocks(graph, *machine.target));
  return graph;
}

Result<CompiledProgram> compile(const ir::Graph& tosa, ir::Graph graph, const npu::Machine& machine,
                                const Options& options) {
  if (options.dump) options.dump("npu", [&] { return ir::print(graph); });
  CARINA_TRY(Schedule plan, schedule(graph, machine, options));
  if (options.dump) options.dump("schedule", [&] { return print(plan); });
  std::vector<EmittedOperation> operations;
  emit(plan, [&](EmittedOperation&& operation) { operations.push_back(std::move(operation)); });

  CompiledProgram program;
  program.machine = machine;
  CARINA_RETURN_IF_ERROR(writeStream(operations, plan, options, program));
  program.arenaBytes = plan.arenaBytes;
  program.arenaBound = plan.arenaBound;
  program.cacheBytes = plan.cacheBytes;
  for (size_t i = 0; i < tosa.inputs().size(); ++i) {
    program.inputs.push_back(ioTensor(plan, graph.inputs()[i], tosa.inputs()[i]));
  }
  for (size_t i = 0; i < tosa.outputs().size(); ++i) {
    program.outputs.push_back(ioTensor(plan, graph.outputs()[i], tosa.outputs()[i]));
  }
  if (options.records) {
    std::unordered_map<size_t, std::string> names;
    const auto name = [&](const ir::Value* npuValue, const ir::Value* tosaValue) {
      names.emplace(static_cast<size_t>(plan.storage->access(npuValue).buffer), tosaValue->name);
    };
    for (size_t i = 0; i < tosa.inputs().size(); ++i) name(graph.inputs()[i], tosa.inputs()[i]);
    for (size_t i = 0; i < tosa.outputs().size(); ++i) name(graph.outputs()[i], tosa.outputs()[i]);
    program.memory = memoryRecords(plan, names);
    for (const Group& group : plan.groups) {
      const auto passName = [&](int32_t p) { return sourceName(plan.passes[static_cast<size_t>(p)].node); };
      program.steps.push_back(passName(group.first) +
                              (group.last > group.first ? ".." + passName(group.last) : ""));
    }
  }
  program.constants = std::move(plan.constants).take();
  return program;
}

std::optional<Diagnostic> supports(const ir::Node& tosaOp, const npu::Target& target) {
  // The operator by itself, with the neighbours that the hardware only takes together with it.
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
