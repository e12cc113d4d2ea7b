// SPDX-License-Identifier: Apache-2.0
#include "pipeline/inference_time.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "cpu/known_turns.hpp"
#include "ethosn/stream/program_blob.hpp"
#include "pipeline/part_turns.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::pipeline {
namespace {

/// Relative error of the NPU cycles of networks (docs/npu-model.md, "Cycles").
constexpr double kNpuError = 0.10, kLargeNpuError = 0.25;
constexpr int32_t kLargestConfirmed = 512;  // MACs

double npuError(const npu::Machine* machine) {
  const bool large = machine != nullptr && machine->target->macs > kLargestConfirmed;
  return large ? kLargeNpuError : kNpuError;
}

/// The time of an Ethos-N is unknown: its planner's metric is not a time, and it has no clock here.
bool runsOnEthosN(const pte::Method& method) {
  return std::any_of(method.delegates.begin(), method.delegates.end(),
                     [](const pte::Delegate& delegate) { return delegate.id == ethosn::kProgramBackend; });
}

bool contains(const std::vector<int32_t>& list, int32_t item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

/// The integer type of a conversion between float and int8 or int16 at the program's boundary; "" for other
/// calls.
std::string convertedAtBorder(const pte::Method& method, const pte::KernelCall& call,
                              const cpu::CallWork& work) {
  if (call.arguments.empty()) return "";
  const bool in = work.kernel.find("::quantize_per_tensor") != std::string::npos &&
                  contains(method.inputs, call.arguments.front());
  const bool out = work.kernel.find("::dequantize_per_tensor") != std::string::npos &&
                   contains(method.outputs, call.arguments.back());
  for (const char* type : {"int8", "int16"}) {
    if ((in && work.types == std::string("float32>") + type) ||
        (out && work.types == std::string(type) + ">float32"))
      return type;
  }
  return "";
}

const pte::Tensor* tensorAt(const pte::Method& method, int32_t index) {
  if (index < 0 || static_cast<size_t>(index) >= method.values.size()) return nullptr;
  return std::get_if<pte::Tensor>(&method.values[static_cast<size_t>(index)]);
}

/// [1, C, H, W] or [1, H, W, C] with one, three or four channels and at least the size of an image.
bool isImageInput(const pte::Tensor& tensor) {
  constexpr int32_t kMinSide = 16;
  const auto& sizes = tensor.sizes;
  if (sizes.size() != 4 || sizes[0] != 1) return false;
  if (tensor.type != pte::ScalarType::Float32 && tensor.type != pte::ScalarType::UInt8) return false;
  const auto channels = [](int32_t size) { return size == 1 || size == 3 || size == 4; };
  const bool first = channels(sizes[1]) && sizes[2] >= kMinSide && sizes[3] >= kMinSide;
  return first || (channels(sizes[3]) && sizes[1] >= kMinSide && sizes[2] >= kMinSide);
}

/// Kernels that change the representation of an image, not its contents; --io-inputs uint8, --mean, --std and
/// --io-layout replace them.
bool preparesPictures(std::string_view kernel) {
  constexpr std::string_view kPreparing[] = {"::quantize_per_tensor",
                                             "::dequantize_per_tensor",
                                             "::_to_copy",
                                             "::_to_dim_order_copy",
                                             "::permute_copy",
                                             "::transpose_copy",
                                             "::div.",
                                             "::mul.",
                                             "::sub.",
                                             "::add.",
                                             "::clone"};
  return std::any_of(std::begin(kPreparing), std::end(kPreparing),
                     [&](std::string_view part) { return kernel.find(part) != std::string_view::npos; });
}

/// The image input with the most expensive preparation: the cycles of the kernels between it and the first
/// kernel that does something else.
std::pair<size_t, double> picturePreparation(const pte::Method& method, cpu::Core core) {
  std::pair<size_t, double> dearest{0, 0};
  if (method.chains.empty()) return dearest;
  for (size_t i = 0; i < method.inputs.size(); ++i) {
    const pte::Tensor* input = tensorAt(method, method.inputs[i]);
    if (input == nullptr || !isImageInput(*input)) continue;
    const auto elements = [](const pte::Tensor& tensor) {
      return std::accumulate(tensor.sizes.begin(), tensor.sizes.end(), int64_t{1},
                             [](int64_t product, int32_t size) { return product * size; });
    };
    std::vector<int32_t> prepared{method.inputs[i]};
    double cycles = 0;
    for (const pte::Instruction& instruction : method.chains.front().instructions) {
      const auto* call = std::get_if<pte::KernelCall>(&instruction);
      if (call == nullptr || call->arguments.size() < 2) continue;
      const bool reads = std::any_of(call->arguments.begin(), call->arguments.end() - 1,
                                     [&](int32_t argument) { return contains(prepared, argument); });
      const pte::Tensor* result = tensorAt(method, call->arguments.back());
      if (!reads || result == nullptr || elements(*result) != elements(*input)) continue;
      const cpu::CallWork work = cpu::workOf(method, *call);
      if (!preparesPictures(work.kernel)) continue;
      cycles += cpu::costOf(work, core).cycles;
      prepared.push_back(call->arguments.back());
    }
    if (cycles > dearest.second) dearest = {i, cycles};
  }
  return dearest;
}

/// Cycles of a method's kernels on one core.
struct KernelSum {
  double cycles = 0, doubt = 0;  // doubt: possible error in cycles
  double atBorder = 0, borderCalls = 0;
  std::vector<KernelTime> kernels;
  std::string borderType;  // "int8"
  bool branches = false;

  KernelSum(const pte::Method& method, cpu::Core core) {
    std::map<std::pair<std::string, std::string>, KernelTime> byKernel;
    for (const pte::Chain& chain : method.chains) {
      const std::vector<double> turns = cpu::knownTripCounts(method, chain);
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

/// The number of cycles, if the gain is significant.
std::optional<int64_t> ifBetter(double other, int64_t now) {
  const auto cycles = static_cast<int64_t>(std::llround(other));
  const auto least = static_cast<int64_t>(static_cast<double>(now) * (1 - InferenceTime::kMinReportedGain));
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
  // Without an NPU, nothing else could do it.
  if (const auto [input, cycles] = picturePreparation(method, core);
      npuCycles > 0 && cycles > total * InferenceTime::kMinReportedGain) {
    time.pictureInput = input;
    time.imagePreparationCycles = std::llround(cycles);
  }
  if (const cpu::Core helium = cpu::withHelium(core); helium != core) {
    const double with = static_cast<double>(npuCycles) + KernelSum(method, helium).cycles +
                        cpu::costOf(cpu::callingWork(method), helium).cycles;
    time.heliumCycles = ifBetter(with, time.cycles());
  }
  time.kernels = std::move(kernels.kernels);
  return time;
}

namespace {

/// Rounds summands to integers such that the sums of rounded and exact values agree.
class WholeCycles {
 public:
  int64_t add(double cycles) {
    const auto before = std::llround(sum_);
    sum_ += cycles;
    return std::llround(sum_) - before;
  }

 private:
  double sum_ = 0;
};

/// "float32[1,3,8,8] -> int8[1,3,8,8]"
std::string operandsText(const pte::Method& method, const pte::KernelCall& call) {
  std::string text;
  for (size_t i = 0; i + 1 < call.arguments.size(); ++i) {
    // The result of an out-variant is its last argument but one, and its return value.
    const pte::Tensor* operand = tensorAt(method, call.arguments[i]);
    if (operand == nullptr || call.arguments[i] == call.arguments.back()) continue;
    text += (text.empty() ? "" : ", ") + operand->str();
  }
  const pte::Tensor* result = call.arguments.empty() ? nullptr : tensorAt(method, call.arguments.back());
  return result == nullptr ? text : text + " -> " + result->str();
}

}  // namespace

std::vector<InferenceStep> inferenceSteps(const pte::Method& method, std::span<const int64_t> partCycles,
                                          cpu::Core core) {
  using Kind = InferenceStep::Kind;
  std::vector<InferenceStep> steps;
  WholeCycles calls, kernels;
  int64_t now = 0;
  const auto add = [&](InferenceStep step, int64_t cycles) {
    if (cycles <= 0) return;
    step.start = now;
    step.cycles = cycles;
    now += cycles;
    steps.push_back(std::move(step));
  };
  cpu::CallWork begin;
  begin.kernel = "(calls)";
  begin[cpu::Work::Call] = 1;
  add({Kind::Call, "call of the program", "", 0, 0, 1, 0}, calls.add(cpu::costOf(begin, core).cycles));
  for (const pte::Chain& chain : method.chains) {
    const std::vector<double> turns = cpu::knownTripCounts(method, chain);
    for (size_t i = 0; i < chain.instructions.size(); ++i) {
      const pte::Instruction& instruction = chain.instructions[i];
      const int64_t times = std::llround(turns[i]);
      const cpu::CallWork calling = cpu::callingWork(method, instruction);
      InferenceStep call{Kind::Call, "instruction", "", 0, 0, times, 0};
      const auto* delegate = std::get_if<pte::DelegateCall>(&instruction);
      const auto* kernel = std::get_if<pte::KernelCall>(&instruction);
      const size_t part = delegate == nullptr ? 0 : static_cast<size_t>(delegate->delegate);
      if (delegate != nullptr) {
        call.name = fmt::format("call of NPU part {}", part);
        call.what = fmt::format("{:.0f} bytes copied to and from its arena", calling[cpu::Work::Byte]);
        call.part = part;
      }
      add(std::move(call), calls.add(cpu::costOf(calling, core).cycles * turns[i]));
      if (delegate != nullptr && part < partCycles.size()) {
        add({Kind::Npu, fmt::format("NPU part {}", part), "", 0, 0, times, part}, partCycles[part] * times);
      } else if (kernel != nullptr) {
        const cpu::CallWork work = cpu::workOf(method, *kernel);
        add({Kind::Kernel, work.kernel, operandsText(method, *kernel), 0, 0, times, 0},
            kernels.add(cpu::costOf(work, core).cycles * turns[i]));
      }
    }
  }
  return steps;
}

int64_t npuCyclesOf(const pte::Method& method, std::span<const int64_t> partCycles) {
  int64_t cycles = 0;
  for (const pte::Chain& chain : method.chains) {
    const std::vector<double> turns = cpu::knownTripCounts(method, chain);
    for (size_t i = 0; i < chain.instructions.size(); ++i) {
      const auto* call = std::get_if<pte::DelegateCall>(&chain.instructions[i]);
      if (call != nullptr && call->delegate >= 0 && static_cast<size_t>(call->delegate) < partCycles.size())
        cycles += partCycles[static_cast<size_t>(call->delegate)] * std::llround(turns[i]);
    }
  }
  return cycles;
}

std::optional<InferenceTime> inferenceOf(const Build& build, const std::string& core) {
  if (build.program.methods.empty() || runsOnEthosN(build.program.methods.front())) return std::nullopt;
  const int64_t cycles = npuCycles(build);
  const npu::Machine* machine = build.machine ? &*build.machine : nullptr;
  const auto chosen = coreOf(core, machine);
  InferenceTime time =
      inferenceTime(build.program.methods.front(), cycles, machine, chosen ? *chosen : usualCore(machine));
  // Pixel inputs require that the network is quantized here.
  if (!build.quantization) time.imagePreparationCycles = 0;
  return time;
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
