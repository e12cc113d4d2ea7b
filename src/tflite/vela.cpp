// SPDX-License-Identifier: Apache-2.0
#include "tflite/vela.hpp"

#include <algorithm>
#include <cstring>
#include <set>

namespace carina::tflite {
namespace {

constexpr std::string_view kEthosU = "ethos-u";
constexpr std::string_view kPlan = "OfflineMemoryAllocation";
/// Inputs of an `ethos-u` operator before the network's own.
constexpr size_t kPayload = 0, kConstants = 1, kScratch = 2, kFastScratch = 3, kFirstInput = 4;
/// More than any device has; keeps a damaged plan from asking for all memory of the host.
constexpr uint64_t kMaxArena = uint64_t{1} << 31;

bool isEthosU(const Operator& op) {
  return op.custom && op.name == kEthosU;
}

/// "CONV_2D x3, SOFTMAX": in order of first appearance.
std::string operatorCounts(const Model& model) {
  std::vector<std::pair<std::string, int>> counts;
  for (const Subgraph& subgraph : model.subgraphs) {
    for (const Operator& op : subgraph.operators) {
      const auto known = std::find_if(counts.begin(), counts.end(),
                                      [&](const auto& entry) { return entry.first == op.name; });
      if (known != counts.end()) {
        ++known->second;
      } else {
        counts.emplace_back(op.name, 1);
      }
    }
  }
  std::string text;
  for (const auto& [name, count] : counts) {
    text += text.empty() ? "" : ", ";
    text += count == 1 ? name : fmt::format("{} x{}", name, count);
  }
  return text;
}

Status refuseUncompiled(const Model& model) {
  const auto& operators = model.subgraphs.front().operators;
  if (std::any_of(operators.begin(), operators.end(), isEthosU)) return {};
  const std::string counts = operatorCounts(model);
  return Error(fail(Code::UnsupportedProgram, "the model is not compiled for an Ethos-U: it holds {}",
                    counts.empty() ? "no operator" : counts))
      .withRemedy(
          "compile it with Vela first (the result has ethos-u operators), or export the network as .pt2 "
          "and use "
          "carina compile");
}

/// Offsets by tensor of the first subgraph; all empty without a plan.
Result<std::vector<std::optional<uint64_t>>> readPlan(const Model& model, size_t tensors) {
  std::vector<std::optional<uint64_t>> offsets(tensors);
  const Metadata* plan = model.findMetadata(kPlan);
  if (plan == nullptr) return offsets;
  // int32 words: version, subgraphs (or the subgraph meant: writers differ, readers ignore it), count, then
  // an offset per tensor (-1: not planned), subgraph by subgraph. Some writers leave out further subgraphs.
  const auto word = [&](size_t i) {
    int32_t value = 0;
    std::memcpy(&value, plan->data.data() + 4 * i, 4);
    return value;
  };
  const size_t words = plan->data.size() / 4;
  if (words < 3)
    return fail(Code::Damaged, "the offline memory plan of {} bytes is cut off", plan->data.size()).at(kPlan);
  size_t all = 0;
  for (const Subgraph& subgraph : model.subgraphs) all += subgraph.tensors.size();
  const bool counts =
      word(2) >= 0 && (static_cast<size_t>(word(2)) == tensors || static_cast<size_t>(word(2)) == all);
  if (!counts || words - 3 < tensors) {
    return fail(Code::Damaged, "the offline memory plan has {} entries in {} bytes, the model {} tensors",
                word(2), plan->data.size(), tensors)
        .at(kPlan);
  }
  for (size_t i = 0; i < tensors; ++i) {
    if (word(3 + i) >= 0) offsets[i] = static_cast<uint64_t>(word(3 + i));
  }
  return offsets;
}

Result<NpuCall> readCall(const Subgraph& subgraph, size_t index) {
  const Operator& op = subgraph.operators[index];
  const auto bad = [](const std::vector<int32_t>& tensors) {
    return std::count(tensors.begin(), tensors.end(), -1) != 0;
  };
  if (op.inputs.size() < kFirstInput || bad(op.inputs) || bad(op.outputs)) {
    return fail(
        Code::Damaged,
        "an ethos-u operator takes a command stream, constants, scratch and fast scratch, then inputs; this "
        "one has "
        "{} inputs, some perhaps omitted",
        op.inputs.size());
  }
  NpuCall call;
  call.name = fmt::format("operator {}", index);
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

}  // namespace

bool NpuProgram::sharesScratch(const NpuCall& call) const {
  const auto scratch = static_cast<size_t>(call.scratch), fast = static_cast<size_t>(call.fastScratch);
  return scratch == fast || (offsets[scratch] && offsets[scratch] == offsets[fast] &&
                             tensorBytes(tensors[scratch]) == tensorBytes(tensors[fast]));
}

std::vector<NpuCall> npuCalls(const Model& model) {
  std::vector<NpuCall> calls;
  for (const Subgraph& subgraph : model.subgraphs) {
    for (size_t i = 0; i < subgraph.operators.size(); ++i) {
      if (!isEthosU(subgraph.operators[i])) continue;
      if (auto call = readCall(subgraph, i)) calls.push_back(std::move(*call));
    }
  }
  return calls;
}

Result<NpuProgram> npuProgram(const Model& model) {
  CARINA_RETURN_IF_ERROR(refuseUncompiled(model));
  const Subgraph& subgraph = model.subgraphs.front();
  NpuProgram program;
  program.tensors = subgraph.tensors;
  program.inputs = subgraph.inputs;
  program.outputs = subgraph.outputs;
  CARINA_TRY(program.offsets, readPlan(model, subgraph.tensors.size()));
  std::vector<int32_t> used = program.inputs;
  used.insert(used.end(), program.outputs.begin(), program.outputs.end());
  for (size_t i = 0; i < subgraph.operators.size(); ++i) {
    const Operator& op = subgraph.operators[i];
    if (!isEthosU(op)) {
      program.steps.push_back({false, i});
      continue;
    }
    auto call = readCall(subgraph, i);
    if (!call) return std::move(call).error().at(fmt::format("operator {}", i));
    program.steps.push_back({true, program.calls.size()});
    used.insert(used.end(), {call->scratch, call->fastScratch});
    // More tensors than regions can only be reached through the arena, as they all can be.
    used.insert(used.end(), call->inputs.begin(), call->inputs.end());
    used.insert(used.end(), call->outputs.begin(), call->outputs.end());
    program.calls.push_back(std::move(*call));
  }
  uint64_t unplanned = 0;
  // What nothing but operators of the CPU use needs memory where it has a place, or a size that is known.
  std::set<int32_t> needed(used.begin(), used.end());
  for (const NpuProgram::Step& step : program.steps) {
    if (step.isCall) continue;
    const Operator& op = subgraph.operators[step.index];
    for (const auto* tensors : {&op.inputs, &op.outputs}) {
      for (const int32_t index : *tensors) {
        if (index >= 0 && (program.offsets[static_cast<size_t>(index)] ||
                           tensorBytes(program.tensors[static_cast<size_t>(index)])))
          needed.insert(index);
      }
    }
  }
  for (const int32_t index : needed) {
    const Tensor& tensor = program.tensors[static_cast<size_t>(index)];
    const auto bytes = tensorBytes(tensor);
    const uint64_t offset = program.offsets[static_cast<size_t>(index)].value_or(0);
    if (!bytes)
      return fail(Code::Damaged, "tensor {} '{}' is {}", index, tensor.name, tensor.str())
          .withRemedy("sizes must be known, elements plain numbers");
    if (static_cast<uint64_t>(*bytes) > kMaxArena || offset + static_cast<uint64_t>(*bytes) > kMaxArena) {
      return fail(Code::Damaged, "tensor {} '{}' needs {} bytes at {}; an arena holds at most 2 GiB", index,
                  tensor.name, *bytes, offset);
    }
    if (!tensor.data.empty() && tensor.data.size() < static_cast<uint64_t>(*bytes)) {
      return fail(Code::Damaged, "tensor {} '{}' needs {} bytes, {} are stored", index, tensor.name, *bytes,
                  tensor.data.size());
    }
    if (program.offsets[static_cast<size_t>(index)]) {
      program.arenaBytes = std::max(program.arenaBytes, offset + static_cast<uint64_t>(*bytes));
    } else if (unplanned += static_cast<uint64_t>(*bytes); unplanned > kMaxArena) {
      return fail(Code::Damaged, "the tensors outside the memory plan need more than 2 GiB");
    }
  }
  return program;
}

}  // namespace carina::tflite
