// SPDX-License-Identifier: Apache-2.0
#include "pipeline/check.hpp"

#include <algorithm>
#include <map>

#include "carina/kernels.hpp"
#include "carina/runtime.hpp"
#include "cpu/kernel_schema.hpp"
#include "device/aligned_buffer.hpp"
#include "device/ethosn_backend.hpp"
#include "device/external_data.hpp"
#include "device/npu_host.hpp"
#include "device/npu_setup.hpp"
#include "npu/isa/payload.hpp"
#include "pipeline/command_streams.hpp"
#include "pipeline/ethosn.hpp"
#include "pipeline/file_kind.hpp"
#include "pipeline/loaded_program.hpp"
#include "pte/bundle.hpp"
#include "pte/delegate_blob.hpp"
#include "pte/program.hpp"

namespace carina::pipeline {
namespace {

using device::textOf;

rt::Status noKernel(rt::KernelContext&) {
  return rt::failure(rt::Code::MissingKernel, "a stand-in for a kernel that is missing");
}

class Checker {
 public:
  Checker(ByteSpan file, const pte::Program& program, std::span<const pte::TensorData> tensorData,
          Check& check)
      : file_(file), program_(program), tensorData_(tensorData), check_(check), budget_(file.size(), false) {}

  void run() {
    if (const auto status = pte::verifyProgram(program_); !status.ok())
      problem("the program contradicts itself: {}", firstOf(status.error()));
    for (const pte::Method& method : program_.methods) describe(method);
    describeCodes();
    checkLoading();
    checkStreams();
  }

 private:
  template <typename... Args>
  void problem(fmt::format_string<Args...> format, Args&&... args) {
    check_.problems.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  static std::string firstOf(const Error& error) { return error.diagnostics().front().str(); }

  void describeCodes() {
    const auto give = [](const std::vector<PortCodes>& from, std::vector<CheckedTensor>& to) {
      for (size_t i = 0; i < std::min(from.size(), to.size()); ++i) to[i].codes = from[i];
    };
    for (CheckedMethod& method : check_.methods) {
      const ProgramCodes codes = codesOf(program_, method.name);
      give(codes.inputs, method.inputs);
      give(codes.outputs, method.outputs);
    }
  }

  void describe(const pte::Method& method) {
    CheckedMethod& checked = check_.methods.emplace_back();
    checked.name = method.name;
    checked.describesCodes = isCodeMethod(method);
    for (size_t i = 1; i < method.pools.size(); ++i) checked.pools.push_back(method.pools[i]);
    describe(method, method.inputs, checked.inputs);
    describe(method, method.outputs, checked.outputs);
    for (size_t i = 0; i < method.delegates.size(); ++i) describe(method, i, checked);
    describeKernels(method, checked);
  }

  static void describe(const pte::Method& method, const std::vector<int32_t>& ids,
                       std::vector<CheckedTensor>& into) {
    for (int32_t id : ids) {
      CheckedTensor& checked = into.emplace_back();
      checked.type = "no tensor";
      if (id < 0 || static_cast<size_t>(id) >= method.values.size()) continue;
      const pte::Value& value = method.values[static_cast<size_t>(id)];
      if (const auto* integer = std::get_if<int64_t>(&value))
        checked.type = fmt::format("number {}", *integer);
      if (const auto* real = std::get_if<double>(&value)) checked.type = fmt::format("number {}", *real);
      if (const auto* truth = std::get_if<bool>(&value)) checked.type = fmt::format("number {}", *truth);
      const auto* tensor = std::get_if<pte::Tensor>(&value);
      if (tensor == nullptr) continue;
      checked.type = tensor->str();
      checked.bytes = pte::tensorBytes(*tensor).value_or(0);
      checked.planned = tensor->allocation.has_value();
    }
  }

  void describeKernels(const pte::Method& method, CheckedMethod& checked) {
    for (const pte::Operator& op : method.operators) {
      const bool present =
          rt::hasKernel({op.name.data(), op.name.size()}, {op.overload.data(), op.overload.size()});
      checked.kernels.push_back({op.str(), 0, present});
    }
    for (const pte::Chain& chain : method.chains) {
      for (size_t i = 0; i < chain.instructions.size(); ++i) {
        if (const auto* call = std::get_if<pte::KernelCall>(&chain.instructions[i])) {
          if (call->op < 0 || static_cast<size_t>(call->op) >= checked.kernels.size()) continue;
          CheckedKernel& kernel = checked.kernels[static_cast<size_t>(call->op)];
          ++kernel.calls;
          checkCall(method, kernel.name, call->arguments.size(), i);
        } else if (const auto* delegate = std::get_if<pte::DelegateCall>(&chain.instructions[i])) {
          checkDelegateCall(method, *delegate, checked);
        }
      }
    }
    for (const CheckedKernel& kernel : checked.kernels) {
      if (!kernel.present)
        problem("method {} fails to load because this runtime has no kernel {}", method.name, kernel.name);
    }
  }

  void checkCall(const pte::Method& method, const std::string& name, size_t arguments, size_t instruction) {
    const rt::KernelInfo* info = rt::findKernelInfo({name.data(), name.size()});
    if (info == nullptr) return;
    const size_t wanted = cpu::argumentsOf(info->arguments).size();
    // The result is passed again after the schema's arguments.
    if (arguments == wanted + 1) return;
    problem(
        "instruction {} of method {} fails because it passes {} {} arguments where its schema has {} and the "
        "result",
        instruction, method.name, name, arguments, wanted);
  }

  void describe(const pte::Method& method, size_t index, CheckedMethod& checked) {
    const pte::Delegate& delegate = method.delegates[index];
    CheckedDelegate& result = checked.delegates.emplace_back();
    result.id = delegate.id;
    result.blobBytes = static_cast<int64_t>(delegate.blob.size());
    if (delegate.id == ethosn::kProgramBackend) return describeEthosN(delegate, index, checked.name, result);
    if (delegate.id != pte::kEthosUBackend) {
      problem(
          "method {} fails to load because delegate {} needs the backend {}, which this runtime does not "
          "have",
          method.name, index, delegate.id);
      return;
    }
    const std::string place = fmt::format("delegate {} of method {}", index, method.name);
    const auto blob = pte::parseDelegateBlob(delegate.blob);
    if (!blob) {
      problem("{} fails to load: {}", place, firstOf(blob.error()));
      return;
    }
    result.constantBytes = static_cast<int64_t>(blob->constants.size());
    for (const pte::NamedData& named : program_.namedData) {
      if (named.key == blob->constantsKey) result.constantBytes = static_cast<int64_t>(named.bytes.size());
    }
    result.commandBytes = static_cast<int64_t>(blob->payload.size());
    result.scratchBytes = blob->scratchBytes;
    result.inputs = blob->inputs.size();
    result.outputs = blob->outputs.size();
    const pte::EthosUSettings settings = pte::ethosUSettings(delegate.specs);
    result.target = settings.target;
    result.systemConfig = settings.systemConfig;
    result.memoryMode = settings.memoryMode;
    describeTarget(*blob, place, settings, result);
  }

  void describeEthosN(const pte::Delegate& delegate, size_t index, const std::string& method,
                      CheckedDelegate& result) {
    const std::string place = fmt::format("delegate {} of method {}", index, method);
    const auto blob = ethosn::readProgramBlob(delegate.blob);
    if (!blob) {
      problem("{} fails to load: {}", place, firstOf(blob.error()));
      return;
    }
    result.target = blob->target;
    result.commandBytes = static_cast<int64_t>(blob->network.constantControlUnit.size());
    result.constantBytes = static_cast<int64_t>(blob->network.constantDma.size());
    result.scratchBytes = static_cast<int64_t>(ethosn::intermediateBytes(blob->network));
    result.inputs = blob->inputs.size();
    result.outputs = blob->outputs.size();
    const std::vector<uint8_t> network = ethosn::writeCompiledNetwork(blob->network);
    const auto checkedNetwork = checkEthosN(std::as_bytes(std::span(network)), budget_);
    if (!checkedNetwork) {
      problem("{} fails to load: {}", place, firstOf(checkedNetwork.error()));
      return;
    }
    ++ethosNStreams_;
    if (!checkedNetwork->findings.empty())
      problem("the commands of {} may fail or give wrong results: {}", place,
              checkedNetwork->findings.front());
  }

  void describeTarget(const pte::DelegateBlob& blob, const std::string& place, pte::EthosUSettings settings,
                      CheckedDelegate& result) {
    const auto payload = npu::readPayload(blob.payload);
    if (blob.payloadKey.empty() && !payload) {
      problem("{} fails to load: {}", place, firstOf(payload.error()));
      return;
    }
    if (payload) {
      const auto target = npu::payloadTarget(*payload);
      if (!target) {
        problem("{} fails to load: {}", place, firstOf(target.error()));
        return;
      }
      if (result.target.empty()) result.target = std::string((*target)->name);
      if (result.target != (*target)->name)
        problem("{} fails on the NPU because it says it is for {}, but its commands are for {}", place,
                result.target, (*target)->name);
    }
    settings.target = result.target;
    const auto machine = device::machineFor(settings);
    if (!machine) {
      problem("{} cannot be placed: {}", place, firstOf(machine.error()));
      return;
    }
    result.fastScratchBytes = device::fastScratchBytes(*machine);
  }

  void checkDelegateCall(const pte::Method& method, const pte::DelegateCall& call,
                         const CheckedMethod& checked) {
    if (call.delegate < 0 || static_cast<size_t>(call.delegate) >= checked.delegates.size()) return;
    const CheckedDelegate& delegate = checked.delegates[static_cast<size_t>(call.delegate)];
    const auto blob = pte::parseDelegateBlob(method.delegates[static_cast<size_t>(call.delegate)].blob);
    if (delegate.id != pte::kEthosUBackend || !blob) return;
    const std::string place = fmt::format("delegate {} of method {}", call.delegate, method.name);
    if (call.arguments.size() != blob->inputs.size() + blob->outputs.size()) {
      problem("{} fails because it is called with {} tensors, but its blob has {} inputs and {} outputs",
              place, call.arguments.size(), blob->inputs.size(), blob->outputs.size());
      return;
    }
    for (size_t i = 0; i < blob->inputs.size(); ++i) {
      const int32_t id = call.arguments[i];
      const auto* tensor = id >= 0 && static_cast<size_t>(id) < method.values.size()
                               ? std::get_if<pte::Tensor>(&method.values[static_cast<size_t>(id)])
                               : nullptr;
      if (tensor == nullptr) {
        problem("{} fails because its input {} is not a tensor", place, i);
      } else if (pte::tensorBytes(*tensor) != blob->inputs[i].bytes()) {
        problem("{} fails because input {} is {}, but the commands take {} bytes", place, i, tensor->str(),
                blob->inputs[i].bytes());
      }
    }
  }

  /// What the runtime itself finds at load, with stubs for kernels that were already reported missing.
  void checkLoading() {
    device::AlignedBuffer bytes(file_.size());
    std::copy(file_.begin(), file_.end(), reinterpret_cast<std::byte*>(bytes.data()));
    rt::Program program;
    if (const rt::Status status = rt::Program::load(bytes.span(), &program); !status.ok()) {
      problem("the program fails to load: {}", textOf(status));
      return;
    }
    rt::EthosUDelegate npu(nullptr);
    device::EthosNBackend ethosN(false, false, budget_);
    rt::Backend* const backends[] = {&npu, &ethosN};
    std::vector<rt::Kernel> kernels(rt::allKernels().begin(), rt::allKernels().end());
    for (const CheckedMethod& method : check_.methods) {
      for (const CheckedKernel& kernel : method.kernels) {
        if (!kernel.present) kernels.push_back({kernel.name.c_str(), noKernel});
      }
    }
    device::ExternalData external;
    for (const pte::TensorData& data : tensorData_) {
      if (const Status status = external.add(data); !status.ok()) problem("{}", firstOf(status.error()));
    }
    if (const Status status = device::checkLayouts(program_, tensorData_); !status.ok())
      problem("the program fails to load: {}", firstOf(status.error()));
    rt::Environment environment;
    environment.external = &external;
    environment.kernels = rt::KernelTable(kernels.data(), kernels.size());
    environment.backends = rt::Span<rt::Backend* const>(backends);
    for (uint32_t i = 0; i < check_.methods.size(); ++i) checkMethod(program, i, environment);
  }

  void checkMethod(const rt::Program& program, uint32_t index, const rt::Environment& environment) {
    CheckedMethod& method = check_.methods[index];
    rt::Requirements needs;
    if (const rt::Status status = rt::Method::require(program, index, environment, &needs); !status.ok()) {
      problem("method {} fails to load: {}", method.name, textOf(status));
      return;
    }
    method.methodBytes = static_cast<int64_t>(needs.methodBytes);
    method.temporaryBytes = static_cast<int64_t>(needs.temporaryBytes);
    const bool others = std::any_of(method.delegates.begin(), method.delegates.end(), [](const auto& d) {
      return d.id != pte::kEthosUBackend && d.id != ethosn::kProgramBackend;
    });
    const int64_t most = memoryFor(file_.size());
    int64_t total = method.temporaryBytes;
    for (int64_t pool : method.pools) total = pool < 0 || pool > most - total ? most + 1 : total + pool;
    if (total > most) {
      problem("method {} is not loaded here because it asks for more than {} bytes of memory", method.name,
              most);
      return;
    }
    if (others) return;
    device::AlignedBuffer methodMemory(needs.methodBytes), temporary(needs.temporaryBytes);
    std::vector<device::AlignedBuffer> buffers;
    std::vector<rt::MutableBytes> pools;
    for (int64_t pool : method.pools) buffers.emplace_back(static_cast<size_t>(pool));
    pools.reserve(buffers.size());
    for (const auto& buffer : buffers) pools.push_back(buffer.span());
    const rt::Memory memory{methodMemory.span(), rt::Span<rt::MutableBytes>(pools.data(), pools.size()),
                            temporary.span()};
    rt::Method loaded;
    if (const rt::Status status = loaded.load(program, index, environment, memory); !status.ok())
      problem("method {} fails to load: {}", method.name, textOf(status));
  }

  void checkStreams() {
    check_.commandStreams = ethosNStreams_;
    const auto streams = commandStreams(file_);
    if (!streams) return;  // streams that cannot be read were reported above
    check_.commandStreams += streams->size();
    for (const CommandStream& stream : *streams) {
      const std::vector<std::string> findings = checkText(stream);
      if (findings.empty()) continue;
      const std::string more =
          findings.size() > 1
              ? fmt::format(" (and {} more findings: carina inspect --check)", findings.size() - 1)
              : "";
      problem("the commands may fail or give wrong results: {}{}", findings.front(), more);
    }
  }

  ByteSpan file_;
  const pte::Program& program_;
  std::span<const pte::TensorData> tensorData_;
  Check& check_;
  size_t ethosNStreams_ = 0;
  WorkBudget budget_;  // of all streams for an Ethos-N
};

}  // namespace

Result<Check> checkProgram(ByteSpan file, std::span<const pte::TensorData> tensorData) {
  if (fileKind(file) == FileKind::Bundle) {
    CARINA_TRY(const pte::Bundle bundle, pte::readBundle(file));
    return checkProgram(bundle.program, tensorData);
  }
  if (fileKind(file) == FileKind::EthosNNetwork) {
    return fail(Code::WrongKind, "is a compiled Ethos-N network, not a program")
        .withRemedy("'carina inspect --check' checks it");
  }
  CARINA_TRY(const LoadedProgram loaded, LoadedProgram::from(file, {}));
  CARINA_TRY(const pte::Program program, pte::readProgram(loaded.bytes()));
  Check check;
  check.fileBytes = static_cast<int64_t>(file.size());
  check.atLoad = loaded.atLoad();
  Checker(loaded.bytes(), program, tensorData, check).run();
  return check;
}

}  // namespace carina::pipeline
