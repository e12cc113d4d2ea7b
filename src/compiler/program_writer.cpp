// SPDX-License-Identifier: Apache-2.0
#include "compiler/program_writer.hpp"

#include <algorithm>
#include <unordered_map>

#include "compiler/schedule/operation_builder.hpp"
#include "compiler/storage/storage.hpp"

namespace carina::compiler {
namespace {

/// Name of the node in the user's network from which a node originates.
std::string sourceName(const ir::Node* node) {
  const auto& location = node->location();
  return location && !location->name.empty() ? location->name : node->result()->name;
}

std::string operationName(const EmittedOperation& emitted) {
  return (emitted.node ? sourceName(emitted.node) : "") + emitted.suffix;
}

/// Whether all elements of the value are in memory once its node has run.
bool holdsWhole(const Schedule& schedule, const ir::Value* value) {
  return schedule.buffers[static_cast<size_t>(schedule.storage->access(value).buffer)].heldRows == 0;
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

}  // namespace

IoTensor ioTensor(const Schedule& schedule, const ir::Value* npuValue, const ir::Value* tosaValue) {
  const Access& access = schedule.storage->access(npuValue);
  IoTensor io;
  io.name = tosaValue->name;
  io.dtype = tosaValue->dtype();
  io.shape = tosaValue->shape();
  io.bytes = tosaValue->numBytes();
  const Placement& place = schedule.buffers[static_cast<size_t>(access.buffer)];
  const int64_t address =
      place.home < 0 ? place.address : schedule.homes[static_cast<size_t>(place.home)].address;
  io.offset = address + access.offset;
  return io;
}

void addMemoryRecords(const Schedule& schedule, const ir::Graph& npu, const ir::Graph& tosa,
                      CompiledProgram& program) {
  std::unordered_map<size_t, std::string> names;
  const auto name = [&](const ir::Value* npuValue, const ir::Value* tosaValue) {
    names.emplace(static_cast<size_t>(schedule.storage->access(npuValue).buffer), tosaValue->name);
  };
  for (size_t i = 0; i < tosa.inputs().size(); ++i) name(npu.inputs()[i], tosa.inputs()[i]);
  for (size_t i = 0; i < tosa.outputs().size(); ++i) name(npu.outputs()[i], tosa.outputs()[i]);
  const auto before = static_cast<int32_t>(program.steps.size());
  for (MemoryRecord& record : memoryRecords(schedule, names)) {
    record.first += before;
    record.last += before;
    program.memory.push_back(std::move(record));
  }
  for (const Group& group : schedule.groups) {
    const auto passName = [&](int32_t p) { return sourceName(schedule.passes[static_cast<size_t>(p)].node); };
    program.steps.push_back(passName(group.first) +
                            (group.last > group.first ? ".." + passName(group.last) : ""));
  }
}

Status ProgramWriter::add(const Schedule& schedule, size_t graph) {
  std::vector<EmittedOperation> operations;
  emit(schedule, [&](EmittedOperation&& operation) { operations.push_back(std::move(operation)); });
  for (const EmittedOperation& emitted : operations) {
    if (!std::holds_alternative<npu::Stop>(emitted.operation))
      CARINA_RETURN_IF_ERROR(addOperation(emitted, &schedule, graph));
  }
  return {};
}

Status ProgramWriter::add(const npu::DmaOperation& copy, std::string name) {
  return addOperation({copy, nullptr, std::move(name), "DMA copy", false}, nullptr, 0);
}

Status ProgramWriter::addWaits() {
  CARINA_RETURN_IF_ERROR(addOperation({npu::KernelWait{0}, nullptr, "", "WAIT", false}, nullptr, 0));
  return addOperation({npu::DmaWait{0}, nullptr, "", "WAIT", false}, nullptr, 0);
}

ProgramWriter::Label ProgramWriter::newLabel() {
  labels_.push_back(0);
  return labels_.size() - 1;
}

void ProgramWriter::place(Label label) {
  labels_[label] = writer_.position();
  writer_.forgetState();
  latest_ = npu::Branch{};
}

Status ProgramWriter::branch(Label label, bool ifResult) {
  CARINA_RETURN_IF_ERROR(addOperation({npu::Branch{ifResult, 0}, nullptr, "", "BRANCH", false}, nullptr, 0));
  branches_.emplace_back(writer_.position() - 8, label);
  return {};
}

const npu::KernelOperation* ProgramWriter::flagSetter() const {
  const auto* op = std::get_if<npu::KernelOperation>(&latest_);
  const bool one = op && op->ofm.height * op->ofm.width * op->ofm.depth == 1 &&
                   op->ofm.storage != npu::Storage::Chained && op->accumulatorOutput;
  return one ? op : nullptr;
}

Status ProgramWriter::finish() {
  CARINA_RETURN_IF_ERROR(addOperation({npu::Stop{}, nullptr, "", "STOP", false}, nullptr, 0));
  for (const auto& [branch, label] : branches_) writer_.patchBranch(branch, labels_[label]);
  program_.commands = std::move(writer_).take();
  if (program_.commands.size() * 4 > kMaxCommandBytes) {
    return fail(Code::HardwareLimit, "the command stream takes {} bytes, more than 16 MiB",
                program_.commands.size() * 4)
        .withRemedy("split the network");
  }
  return {};
}

Status ProgramWriter::addOperation(const EmittedOperation& emitted, const Schedule* schedule, size_t graph) {
  if (Status status = writer_.add(emitted.operation); !status.ok())
    return std::move(status).error().at(emitted.node ? emitted.node->where() : "command stream");
  const uint32_t offset = writer_.position() - 4;
  const std::optional<npu::ScheduledCost> timing = timeline_.add(emitted.operation, offset);
  if (!timing) return {};
  latest_ = emitted.operation;
  program_.macs += timing->cost.macs;
  if (!options_.records) return {};
  OperationRecord record;
  const auto* op = std::get_if<npu::KernelOperation>(&emitted.operation);
  record.location = emitted.node ? emitted.node->location() : nullptr;
  record.name = operationName(emitted);
  record.kind = op ? operationKindText(*op) : std::string(emitted.kind);
  record.wordOffset = offset / 4;
  record.operation = emitted.operation;
  record.cycles = timing->cost.total;
  record.macs = timing->cost.macs;
  record.timing = *timing;
  if (op) recordKernel(*op, emitted, *schedule, graph, record);
  program_.operations.push_back(std::move(record));
  return {};
}

void ProgramWriter::recordKernel(const npu::KernelOperation& op, const EmittedOperation& emitted,
                                 const Schedule& schedule, size_t graph, OperationRecord& record) {
  record.block = op.block;
  const int64_t rows = op.ofm.strideY * (op.ofm.height - 1);
  record.ofm = {op.ofm.base[0],
                static_cast<uint64_t>(std::max<int64_t>(rows, 0) + op.ofm.strideX * op.ofm.width)};
  record.ofmRegion = op.ofm.region;
  const ir::Value* result = emitted.node->result();
  const bool inMemory = op.ofm.storage != npu::Storage::Chained && holdsWhole(schedule, result);
  if (emitted.last && inMemory) record.value = result->name;
  if (!emitted.last || record.value.empty() || op.transpose != npu::Transpose::HWC) return;
  npu::FeatureMap map = featureMap(*schedule.storage, result);
  const Placement& place = schedule.buffers[static_cast<size_t>(schedule.storage->access(result).buffer)];
  map.region = regionOf(place.area);
  map.base[0] += static_cast<uint64_t>(place.address);
  program_.values.push_back({record.value, graph, program_.operations.size(), map});
}

}  // namespace carina::compiler
