// SPDX-License-Identifier: Apache-2.0
#include "pipeline/inference_time.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "cpu/known_turns.hpp"
#include "ethosn/stream/program_blob.hpp"
#include "pipeline/part_turns.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::pipeline {
namespace {

/// What networks may be off by on the NPU (docs/npu-model.md, "Cycles").
constexpr double kNpuError = 0.10, kLargeNpuError = 0.25;
constexpr int32_t kLargestConfirmed = 512;  // MACs

double npuError(const npu::Machine* machine) {
  const bool large = machine != nullptr && machine->target->macs > kLargestConfirmed;
  return large ? kLargeNpuError : kNpuError;
}

/// How long an Ethos-N takes is not known: its planner's measure is no time, and it has no clock here.
bool runsOnEthosN(const pte::Method& method) {
  return std::any_of(method.delegates.begin(), method.delegates.end(),
                     [](const pte::Delegate& delegate) { return delegate.id == ethosn::kProgramBackend; });
}

bool contains(const std::vector<int32_t>& list, int32_t item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

/// The integer type of a conversion between float and int8 or int16 at the program's border; "" for other
/// calls.
std::string convertedAtBorder(const pte::Method& method, const pte::KernelCall& call,
                              const cpu::CallWork& work) {
  if (call.arguments.empty()) return "";
  const bool in = work.kernel.find("::quantize_per_tensor") != std::string::npos &&
                  contains(method.inputs, call.arguments.front());
  const bool out = work.kernel.find("::dequantize_per_tensor") != std::string::npos &&
                   contains(method.outputs, call.arguments.back());
  for (const std::string type : {"int8", "int16"}) {
    if ((in && work.types == "float32>" + type) || (out && work.types == type + ">float32")) return type;
  }
  return "";
}

/// Kernels of a method on one core.
struct KernelSum {
  double cycles = 0, doubt = 0;  // doubt: cycles that it may be off by
  double atBorder = 0, borderCalls = 0;
  std::vector<KernelTime> kernels;
  std::string borderType;  // "int8"
  bool branches = false;

  KernelSum(const pte::Method& method, cpu::Core core) {
    std::map<std::pair<std::string, std::string>, KernelTime> byKernel;
    for (const pte::Chain& chain : method.chains) {
      const std::vector<double> turns = cpu::knownTurns(method, chain);
      for (size_t i = 0; i < chain.instructions.size(); ++i) {
        const pte::Instruction& instruction = chain.instructions[i];
        const bool known = turns[i] > 1;
        branches = branches || (std::holds_alternative<pte::JumpFalseCall>(instruction) && !known);
        if (const auto* call = std::get_if<pte::KernelCall>(&instruction))
          add(method, *call, core, turns[i], byKernel);
      }
    }
    for (auto& [key, time] : byKernel) kernels.push_back(std::move(time));
    std::stable_sort(kernels.begin(), kernels.end(),
                     [](const KernelTime& a, const KernelTime& b) { return a.cycles > b.cycles; });
  }

 private:
  void add(const pte::Method& method, const pte::KernelCall& call, cpu::Core core, double times,
           std::map<std::pair<std::string, std::string>, KernelTime>& byKernel) {
    const cpu::CallWork work = cpu::workOf(method, call);
    cpu::Cost cost = cpu::costOf(work, core);
    cost.cycles *= times;
    cycles += cost.cycles;
    doubt += cost.cycles * cost.error;
    if (const std::string type = convertedAtBorder(method, call, work); !type.empty()) {
      borderType = type;
      atBorder += cost.cycles;
      borderCalls += 1;
    }
    KernelTime& time = byKernel[{work.kernel, work.types}];
    time.kernel = work.kernel;
    time.types = work.types;
    time.calls += static_cast<size_t>(std::llround(times));
    time.cycles += cost.cycles;
    time.error = std::max(time.error, cost.error);
    time.measured = time.measured && cost.measured;
  }
};

/// Whether another number of cycles is worth a word.
std::optional<int64_t> ifBetter(double other, int64_t now) {
  const auto cycles = static_cast<int64_t>(std::llround(other));
  const auto least = static_cast<int64_t>(static_cast<double>(now) * (1 - InferenceTime::kWorthSaying));
  return cycles < least ? std::optional(cycles) : std::nullopt;
}

}  // namespace

cpu::Core usualCore(const npu::Machine* machine) {
  return machine != nullptr && machine->target->isU85() ? cpu::Core::M85 : cpu::Core::M55;
}

Result<cpu::Core> coreOf(const std::string& name, const npu::Machine* machine) {
  if (name.empty()) return usualCore(machine);
  auto core = cpu::findCore(name);
  if (!core) return std::move(core).error().at("--cpu");
  return core;
}

InferenceTime inferenceTime(const pte::Method& method, int64_t npuCycles, const npu::Machine* machine,
                            cpu::Core core) {
  InferenceTime time;
  time.core = core;
  time.clockHz = machine == nullptr ? 0 : machine->system.clockHz;
  time.npuCycles = npuCycles;
  KernelSum kernels(method, core);
  cpu::CallWork calling = cpu::callingWork(method);
  const cpu::Cost calls = cpu::costOf(calling, core);
  time.cpuCycles = std::llround(kernels.cycles);
  time.callCycles = std::llround(calls.cycles);
  time.branches = kernels.branches;
  const auto total = static_cast<double>(time.cycles());
  const double doubt =
      static_cast<double>(npuCycles) * npuError(machine) + kernels.doubt + calls.cycles * calls.error;
  time.error = total > 0 ? doubt / total : 0;
  if (kernels.borderCalls > 0) {
    calling[cpu::Work::Run] -= kernels.borderCalls;
    const double without = static_cast<double>(npuCycles) + kernels.cycles - kernels.atBorder +
                           cpu::costOf(calling, core).cycles;
    time.integerIoCycles = ifBetter(without, time.cycles());
    time.integerIo = kernels.borderType;
  }
  if (const cpu::Core helium = cpu::withHelium(core); helium != core) {
    const double with = static_cast<double>(npuCycles) + KernelSum(method, helium).cycles +
                        cpu::costOf(cpu::callingWork(method), helium).cycles;
    time.heliumCycles = ifBetter(with, time.cycles());
  }
  time.kernels = std::move(kernels.kernels);
  return time;
}

std::optional<InferenceTime> inferenceOf(const Build& build, const std::string& core) {
  if (build.program.methods.empty() || runsOnEthosN(build.program.methods.front())) return std::nullopt;
  const int64_t cycles = npuCycles(build);
  const npu::Machine* machine = build.machine ? &*build.machine : nullptr;
  const auto chosen = coreOf(core, machine);
  return inferenceTime(build.program.methods.front(), cycles, machine, chosen ? *chosen : usualCore(machine));
}

Result<std::optional<InferenceTime>> inferenceOf(ByteSpan program, const std::string& method,
                                                 int64_t npuCycles, const npu::Machine* machine,
                                                 const std::string& core) {
  std::optional<InferenceTime> time;
  CARINA_TRY(const cpu::Core chosen, coreOf(core, machine));
  const auto read = pte::readProgram(program);
  if (!read || !pte::verifyProgram(*read).ok()) return time;
  const pte::Method* found = method.empty() ? nullptr : read->findMethod(method);
  if (method.empty() && !read->methods.empty()) found = &read->methods.front();
  if (found != nullptr && !runsOnEthosN(*found)) time = inferenceTime(*found, npuCycles, machine, chosen);
  return time;
}

}  // namespace carina::pipeline
