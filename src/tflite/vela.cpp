// SPDX-License-Identifier: Apache-2.0
#include "tflite/vela.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include "tflite/control_flow.hpp"

namespace carina::tflite {
namespace {

constexpr std::string_view kEthosU = "ethos-u";
constexpr std::string_view kPlan = "OfflineMemoryAllocation";
/// Positions of an `ethos-u` operator's inputs before the network's own.
constexpr size_t kPayload = 0, kConstants = 1, kScratch = 2, kFastScratch = 3, kFirstInput = 4;
/// More than any device has; keeps a damaged plan from exhausting the host's memory.
constexpr uint64_t kMaxArena = uint64_t{1} << 31;

bool isEthosU(const Operator& op) {
  return op.custom && op.name == kEthosU;
}

/// Reads the offsets of all tensors, subgraph by subgraph; they stay empty without a plan.
Status readPlan(const Model& model, std::vector<NpuProgram::Subgraph>& subgraphs) {
  size_t all = 0;
  for (NpuProgram::Subgraph& subgraph : subgraphs) {
    subgraph.offsets.resize(subgraph.tensors.size());
    all += subgraph.tensors.size();
  }
  const Metadata* plan = model.findMetadata(kPlan);
  if (plan == nullptr) return {};
  // int32 words: version, number of subgraphs (or the index of one: writers differ, readers ignore it),
  // number of tensors, then an offset per tensor (-1: not planned), subgraph by subgraph. Some writers omit
  // all subgraphs but the first.
  const auto word = [&](size_t i) {
    int32_t value = 0;
    std::memcpy(&value, plan->data.data() + 4 * i, 4);
    return value;
  };
  const size_t words = plan->data.size() / 4;
  if (words < 3)
    return fail(Code::Damaged, "the offline memory plan of {} bytes is truncated", plan->data.size())
        .at(kPlan);
  const size_t first = subgraphs.front().tensors.size();
  const size_t count = word(2) < 0 ? SIZE_MAX : static_cast<size_t>(word(2));
  if ((count != first && count != all) || words - 3 < count) {
    return fail(Code::Damaged,
                "the offline memory plan has {} entries in {} bytes, but the model has {} tensors", word(2),
                plan->data.size(), first)
        .at(kPlan);
  }
  size_t next = 0;
  for (NpuProgram::Subgraph& subgraph : subgraphs) {
    for (size_t i = 0; i < subgraph.tensors.size() && next < count; ++i, ++next) {
      if (word(3 + next) >= 0) subgraph.offsets[i] = static_cast<uint64_t>(word(3 + next));
    }
  }
  return {};
}

Result<NpuCall> readCall(const Model& model, size_t graph, size_t index) {
  const Subgraph& subgraph = model.subgraphs[graph];
  const Operator& op = subgraph.operators[index];
  const auto bad = [](const std::vector<int32_t>& tensors) {
    return std::count(tensors.begin(), tensors.end(), -1) != 0;
  };
  if (op.inputs.size() < kFirstInput || bad(op.inputs) || bad(op.outputs)) {
    return fail(
        Code::Damaged,
        "an ethos-u operator takes a command stream, constants, scratch and fast scratch, then inputs; this "
        "one has {} inputs, some perhaps omitted",
        op.inputs.size());
  }
  NpuCall call;
  call.name = fmt::format("operator {}", index) + (graph == 0 ? "" : fmt::format(" of subgraph {}", graph));
  call.subgraph = graph;
  const auto data = [&](size_t input) {
    return subgraph.tensors[static_cast<size_t>(op.inputs[input])].data;
  };
  call.payload = data(kPayload);
  call.constants = data(kConstants);
  call.scratch = op.inputs[kScratch];
  call.fastScratch = op.inputs[kFastScratch];
  call.inputs.assign(op.inputs.begin() + kFirstInput, op.inputs.end());
  call.outputs = op.outputs;
  if (call.payload.empty())
    return fail(Code::Damaged, "the command stream (tensor {}) is empty", op.inputs[kPayload]);
  return call;
}

/// Tensors that need memory: those of the NPU, and those of CPU operators that have a place or a known size.
std::set<int32_t> neededTensors(const Subgraph& from, const NpuProgram::Subgraph& subgraph,
                                const std::vector<NpuCall>& calls) {
  std::set<int32_t> needed(subgraph.inputs.begin(), subgraph.inputs.end());
  needed.insert(subgraph.outputs.begin(), subgraph.outputs.end());
  for (const NpuProgram::Step& step : subgraph.steps) {
    if (step.isCall) {
      const NpuCall& call = calls[step.index];
      needed.insert({call.scratch, call.fastScratch});
      // Tensors without a region are only reachable through the arena, as all of them can be.
      needed.insert(call.inputs.begin(), call.inputs.end());
      needed.insert(call.outputs.begin(), call.outputs.end());
      continue;
    }
    const Operator& op = from.operators[step.index];
    for (const auto* tensors : {&op.inputs, &op.outputs}) {
      for (const int32_t index : *tensors) {
        if (index >= 0 && (subgraph.offsets[static_cast<size_t>(index)] ||
                           storedBytes(subgraph.tensors[static_cast<size_t>(index)])))
          needed.insert(index);
      }
    }
  }
  return needed;
}

/// Checks the memory of a subgraph. `unplanned`: bytes outside the plan so far.
Status measure(const std::set<int32_t>& needed, const NpuProgram::Subgraph& subgraph, uint64_t& arenaBytes,
               uint64_t& unplanned) {
  for (const int32_t index : needed) {
    const Tensor& tensor = subgraph.tensors[static_cast<size_t>(index)];
    const auto bytes = storedBytes(tensor);
    const auto& place = subgraph.offsets[static_cast<size_t>(index)];
    const uint64_t offset = place.value_or(0);
    if (!bytes)
      return fail(Code::Damaged, "tensor {} '{}' is {}", index, tensor.name, tensor.str())
          .withRemedy("sizes must be known, and elements must be plain numbers");
    if (static_cast<uint64_t>(*bytes) > kMaxArena || offset + static_cast<uint64_t>(*bytes) > kMaxArena) {
      return fail(Code::Damaged, "tensor {} '{}' needs {} bytes at {}; an arena holds at most 2 GiB", index,
                  tensor.name, *bytes, offset);
    }
    if (!tensor.data.empty() && tensor.data.size() < static_cast<uint64_t>(*bytes)) {
      return fail(Code::Damaged, "tensor {} '{}' needs {} bytes, but {} are stored", index, tensor.name,
                  *bytes, tensor.data.size());
    }
    if (place) {
      arenaBytes = std::max(arenaBytes, offset + static_cast<uint64_t>(*bytes));
    } else if (unplanned += static_cast<uint64_t>(*bytes); unplanned > kMaxArena) {
      return fail(Code::Damaged, "the tensors outside the memory plan need more than 2 GiB");
    }
  }
  return {};
}

}  // namespace

std::optional<int64_t> storedBytes(const Tensor& tensor) {
  if (tensor.type == TensorType::Resource) return 4;
  return tensorBytes(tensor);
}

bool NpuProgram::sharesScratch(const NpuCall& call) const {
  const Subgraph& of = subgraphs[call.subgraph];
  const auto scratch = static_cast<size_t>(call.scratch), fast = static_cast<size_t>(call.fastScratch);
  return scratch == fast || (of.offsets[scratch] && of.offsets[scratch] == of.offsets[fast] &&
                             storedBytes(of.tensors[scratch]) == storedBytes(of.tensors[fast]));
}

std::vector<NpuCall> npuCalls(const Model& model) {
  std::vector<NpuCall> calls;
  for (size_t g = 0; g < model.subgraphs.size(); ++g) {
    for (size_t i = 0; i < model.subgraphs[g].operators.size(); ++i) {
      if (!isEthosU(model.subgraphs[g].operators[i])) continue;
      if (auto call = readCall(model, g, i)) calls.push_back(std::move(*call));
    }
  }
  return calls;
}

Result<NpuProgram> npuProgram(const Model& model) {
  CARINA_TRY(const std::vector<size_t> running, runningSubgraphs(model));
  NpuProgram program;
  for (const tflite::Subgraph& from : model.subgraphs)
    program.subgraphs.push_back({from.tensors, {}, from.inputs, from.outputs, {}});
  CARINA_RETURN_IF_ERROR(readPlan(model, program.subgraphs));
  uint64_t unplanned = 0;
  for (const size_t g : running) {
    const tflite::Subgraph& from = model.subgraphs[g];
    NpuProgram::Subgraph& subgraph = program.subgraphs[g];
    for (size_t i = 0; i < from.operators.size(); ++i) {
      if (!isEthosU(from.operators[i])) {
        subgraph.steps.push_back({false, i});
        continue;
      }
      auto call = readCall(model, g, i);
      if (!call) return std::move(call).error().at(fmt::format("operator {}", i));
      subgraph.steps.push_back({true, program.calls.size()});
      program.calls.push_back(std::move(*call));
    }
    CARINA_RETURN_IF_ERROR(
        measure(neededTensors(from, subgraph, program.calls), subgraph, program.arenaBytes, unplanned));
  }
  return program;
}

}  // namespace carina::tflite
