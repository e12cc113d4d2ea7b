// SPDX-License-Identifier: Apache-2.0
#include "device/recorder.hpp"

#include <algorithm>

namespace carina::device {
namespace {

/// The only chain of a method; null if it has several.
const pte::Chain* onlyChain(const pte::Method& method) {
  return method.chains.size() == 1 ? &method.chains[0] : nullptr;
}

/// The values of the method that a kernel call returns.
std::vector<int32_t> returnedBy(const pte::Method& method, const pte::Instruction& instruction) {
  const auto* call = std::get_if<pte::KernelCall>(&instruction);
  if (call == nullptr || call->arguments.empty()) return {};
  const int32_t last = call->arguments.back();
  if (const auto* list = std::get_if<pte::TensorList>(&method.values[static_cast<size_t>(last)]))
    return list->items;
  return {last};
}

/// "aten::add.out" is "native_call_add.out" in ExecuTorch's profiles.
std::string nativeCall(std::string_view name) {
  const size_t space = name.find("::");
  return "native_call_" + std::string(space == std::string_view::npos ? name : name.substr(space + 2));
}

}  // namespace

void Recorder::keepResults(const pte::Method& listed) {
  const pte::Chain* chain = onlyChain(listed);
  if (chain == nullptr) return;
  for (const pte::Instruction& instruction : chain->instructions)
    returned_.push_back(returnedBy(listed, instruction));
}

void Recorder::keepEvents(const pte::Method& listed, double clockHz) {
  timing_ = true;
  clockHz_ = clockHz;
  const pte::Chain* chain = onlyChain(listed);
  if (chain == nullptr) return;
  for (const pte::Instruction& instruction : chain->instructions) {
    const auto* call = std::get_if<pte::KernelCall>(&instruction);
    calls_.push_back(call == nullptr ? ""
                                     : nativeCall(listed.operators[static_cast<size_t>(call->op)].str()));
  }
}

KernelResult KernelValues::record(uint32_t instruction, int32_t value, Tensor contents) {
  KernelResult result{instruction, value, std::nullopt, 0, {}};
  const auto [at, isFirst] = values_.try_emplace(value);
  const ByteSpan before = at->second.bytes(), now = contents.bytes();
  if (isFirst || before.size() != now.size()) {
    result.contents = contents;
  } else {
    const auto first = std::mismatch(now.begin(), now.end(), before.begin()).first;
    const auto last =
        std::mismatch(now.rbegin(), std::make_reverse_iterator(first), before.rbegin()).first.base();
    result.offset = static_cast<size_t>(first - now.begin());
    result.changed.assign(first, last);
  }
  at->second = std::move(contents);
  return result;
}

const Tensor& KernelValues::replay(const KernelResult& result) {
  Tensor& value = values_[result.value];
  if (result.contents) {
    value = *result.contents;
  } else if (!result.changed.empty()) {
    std::copy(result.changed.begin(), result.changed.end(),
              value.mutableBytes().begin() + static_cast<std::ptrdiff_t>(result.offset));
  }
  return value;
}

void Recorder::clear() {
  values_ = {};
  kernels.clear();
  results.clear();
  events.clear();
}

void Recorder::event(rt::EventKind kind, uint32_t instruction, rt::Text name) {
  if (kind == rt::EventKind::KernelBegin) {
    kernels.emplace_back(name.data, name.size);
    if (budgeted != nullptr) budgeted->begin(instruction, name);
  }
  if (kind == rt::EventKind::DelegateBegin && backend != nullptr) backend->setInstruction(instruction);
  if (kind == rt::EventKind::DelegateBegin && ethosN != nullptr) ethosN->setInstruction(instruction);
  if (timing_) time(kind, instruction, name);
  if (kind == rt::EventKind::KernelEnd && instruction < returned_.size()) keep(instruction);
}

void Recorder::keep(uint32_t instruction) {
  for (int32_t id : returned_[instruction]) {
    const rt::Value& value = method->values()[static_cast<size_t>(id)];
    if (value.kind != rt::ValueKind::Tensor || value.tensor.data == nullptr) continue;
    if (auto copy = copyOut(value.tensor))
      results.push_back(values_.record(instruction, id, std::move(*copy)));
  }
}

uint64_t Recorder::now() const {
  const auto passed = std::chrono::steady_clock::now() - began_;
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(passed).count() - shift_);
}

void Recorder::time(rt::EventKind kind, uint32_t instruction, rt::Text name) {
  const auto id = static_cast<int32_t>(instruction);
  switch (kind) {
    case rt::EventKind::ExecuteBegin:
      began_ = std::chrono::steady_clock::now();
      shift_ = 0;
      break;
    case rt::EventKind::KernelBegin:
    case rt::EventKind::DelegateBegin:
      started_ = now();
      break;
    case rt::EventKind::KernelEnd: {
      const uint64_t end = now();
      const bool known = instruction < calls_.size() && !calls_[instruction].empty();
      events.push_back(
          {known ? calls_[instruction] : nativeCall({name.data, name.size}), id, "", started_, end});
      events.push_back({"OPERATOR_CALL", id, "", started_, end});
      break;
    }
    case rt::EventKind::DelegateEnd:
      endDelegate(instruction);
      break;
    case rt::EventKind::ExecuteEnd:
      events.push_back({"Method::execute", -1, "", 0, now()});
      break;
  }
}

/// Replaces the time that the simulation took by the model's cycles.
void Recorder::endDelegate(uint32_t instruction) {
  const auto id = static_cast<int32_t>(instruction);
  uint64_t end = now();
  if (backend != nullptr && !backend->runs().empty() && backend->runs().back().instruction == instruction) {
    const DelegateRun& run = backend->runs().back();
    const auto at = [&](double cycles) { return started_ + static_cast<uint64_t>(cycles * 1e9 / clockHz_); };
    const uint64_t ended = at(static_cast<double>(run.pmuCycles));
    shift_ += static_cast<int64_t>(end) - static_cast<int64_t>(ended);
    end = ended;
    for (const npu::ScheduledCost& operation : run.stats.operations) {
      events.push_back({operation.isDma ? "NPU DMA" : "NPU operation", id,
                        fmt::format("{} at 0x{:x}", operation.isDma ? "DMA" : "operation", operation.offset),
                        at(static_cast<double>(operation.start)), at(static_cast<double>(operation.end))});
    }
    events.push_back({"+EthosUBackend::execute()NPU", id, "", started_, end});
  }
  events.push_back({"DELEGATE_CALL", id, "", started_, end});
}

}  // namespace carina::device
