// SPDX-License-Identifier: Apache-2.0
#include "ethosn/model/run.hpp"

#include <algorithm>

#include "base/budget.hpp"
#include "ethosn/model/machine.hpp"

namespace carina::ethosn {

const char* assumptionText(Assumption assumption) {
  switch (assumption) {
    case Assumption::MceRounding:
      return "the MCE rounds half up and accumulates in 32 bits";
    case Assumption::Winograd:
      return "Winograd convolutions are exact";
    case Assumption::BilinearResize:
      return "bilinear upsampling averages neighbours, rounds half up, and repeats the last row and column";
    case Assumption::SigmoidTables:
      return "EXP2 and RCP of the PLE round to nearest";
    case Assumption::PaddedMaxPool:
      return "max-pooling ignores what lies outside the tensor";
    case Assumption::FcafUncompressed:
      return "compressed feature maps have the contents of uncompressed ones";
  }
  return "?";
}

std::string Finding::str() const {
  std::string place = fmt::format("list {}, command {} (offset {:#x})", queueName(queue), command, offset);
  return message.empty() ? place : place + ": " + message;
}

Result<const Variant*> variantOf(const CommandStream& stream) {
  std::optional<PleFamily> family;
  for (size_t i = 0; i < stream.agents.size(); ++i) {
    uint16_t id = 0;
    if (const auto* loader = std::get_if<PleLoader>(&stream.agents[i].data)) {
      id = loader->pleKernel;
    } else if (const auto* scheduler = std::get_if<PleScheduler>(&stream.agents[i].data)) {
      id = scheduler->pleKernel;
    } else {
      continue;
    }
    const auto kernel = pleKernel(id);
    if (!kernel) return fail(Code::NpuFault, "agent {} names the unknown PLE kernel {}", i, id);
    if (family && *family != kernel->family) {
      return fail(Code::NpuFault,
                  "agent {} names {}, a kernel of a different variant than the preceding agents", i,
                  pleKernelName(id));
    }
    family = kernel->family;
  }
  if (!family) return nullptr;
  for (const Variant& variant : allVariants()) {
    if (variant.kernels == family) return &variant;
  }
  CARINA_UNREACHABLE("every family of kernels has a variant");
}

Target largestTarget(const Variant& variant) {
  constexpr int64_t kLargest = 256 << 10;  // per input generator
  return {&variant, kLargest * variant.igs()};
}

Result<RunResult> runNetwork(const CompiledNetwork& network, std::span<const ByteSpan> inputs,
                             const Target& target, const RunOptions& options) {
  CARINA_RETURN_IF_ERROR(requireKernels(*target.variant));
  CARINA_TRY(model::Buffers buffers, model::Buffers::make(network, inputs, options.hazards));
  CARINA_TRY(const ByteSpan bytes, commandStreamBytes(network));
  CARINA_TRY(const CommandStream stream, readCommandStream(bytes));
  CARINA_TRY(const Variant* variant, variantOf(stream));
  if (variant != nullptr && variant != target.variant) {
    return fail(Code::OtherNpu, "the network is for {}, not for {}", variant->name, target.variant->name);
  }
  // Real networks do up to about 100,000 multiply-accumulates per byte of their file.
  constexpr uint64_t kBaseWork = uint64_t{1} << 33, kWorkPerByte = uint64_t{1} << 16;
  const uint64_t size = network.constantDma.size() + network.constantControlUnit.size();
  WorkBudget own(static_cast<int64_t>(
      std::min<uint64_t>(Budget::ofFile(size, kBaseWork, kWorkPerByte).left(), uint64_t{1} << 62)));
  model::Machine machine(stream, target, options, std::move(buffers),
                         options.budget != nullptr ? *options.budget : own);
  CARINA_RETURN_IF_ERROR(machine.run());
  return machine.result();
}

}  // namespace carina::ethosn
