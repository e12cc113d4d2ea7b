// SPDX-License-Identifier: Apache-2.0
#include "pipeline/ethosn.hpp"

#include <cstring>

#include "ethosn/stream/stream_text.hpp"

namespace carina::pipeline {
namespace {

std::string buffersText(std::string_view what, const std::vector<ethosn::BufferInfo>& infos) {
  std::string text;
  for (const ethosn::BufferInfo& info : infos)
    text += fmt::format("  {} buffer {}: {} bytes\n", what, info.id, info.size);
  return text;
}

}  // namespace

Result<std::string> ethosNSummary(ByteSpan bytes) {
  CARINA_TRY(const EthosNProgram program, readEthosN(bytes, ""));
  const ethosn::CompiledNetwork& network = program.network;
  CARINA_TRY(const ByteSpan streamBytes, ethosn::commandStreamBytes(network));
  CARINA_TRY(const ethosn::CommandStream stream, ethosn::readCommandStream(streamBytes));
  std::string text = fmt::format(
      "compiled Ethos-N network for {}: command stream {} bytes, constants {} bytes, intermediate {} bytes\n",
      program.variant != nullptr ? program.variant->name : "any Ethos-N78", streamBytes.size(),
      network.constantDma.size(), ethosn::intermediateBytes(network));
  text += buffersText("input", network.inputs) + buffersText("output", network.outputs);
  std::array<size_t, ethosn::kAgentTypes> agents{};
  for (const ethosn::Agent& agent : stream.agents) ++agents[static_cast<size_t>(agent.type())];
  text += fmt::format("  {} agents:", stream.agents.size());
  for (size_t i = 0; i < agents.size(); ++i) {
    if (agents[i] != 0)
      text += fmt::format(" {} {}", agents[i], ethosn::agentTypeName(static_cast<ethosn::AgentType>(i)));
  }
  text += "\n  commands:";
  for (size_t q = 0; q < ethosn::kQueues; ++q) {
    text += fmt::format(" {} {}", stream.queues[q].size(), ethosn::queueName(static_cast<ethosn::Queue>(q)));
  }
  return text + "\n";
}

Result<std::string> ethosNCommands(ByteSpan bytes, bool constants) {
  CARINA_TRY(const ethosn::CompiledNetwork network, ethosn::readCompiledNetwork(bytes));
  return ethosn::printNetwork(network, {.constants = constants});
}

Result<EthosNProgram> readEthosN(ByteSpan bytes, std::string_view target) {
  EthosNProgram program;
  CARINA_TRY(program.network, ethosn::readCompiledNetwork(bytes));
  CARINA_RETURN_IF_ERROR(ethosn::checkBuffers(program.network));
  CARINA_TRY(const ByteSpan streamBytes, ethosn::commandStreamBytes(program.network));
  CARINA_TRY(const ethosn::CommandStream stream, ethosn::readCommandStream(streamBytes));
  CARINA_TRY(program.variant, ethosn::variantOf(stream));
  if (target.empty()) return program;
  CARINA_TRY(const ethosn::Target named, ethosn::findTarget(target));
  const ethosn::Variant* wanted = named.variant;
  if (program.variant != nullptr && program.variant != wanted) {
    return fail(Code::OtherNpu, "the network is for {}, not for {}", program.variant->name, wanted->name)
        .at("--target")
        .withRemedy("leave it out, or compile the network for that variant");
  }
  program.variant = wanted;
  return program;
}

namespace {

Result<ethosn::RunResult> runOn(const EthosNProgram& program, std::span<const ByteSpan> inputs,
                                const ethosn::RunOptions& options) {
  if (program.variant != nullptr) {
    return ethosn::runNetwork(program.network, inputs, ethosn::largestTarget(*program.variant), options);
  }
  // A program that only moves data does not record a number of banks: use the first variant whose SRAM holds
  // it.
  std::optional<Error> first;
  for (const ethosn::Variant& variant : ethosn::allVariants()) {
    if (!variant.kernels) continue;
    auto result = ethosn::runNetwork(program.network, inputs, ethosn::largestTarget(variant), options);
    if (result) return result;
    if (!first) first = std::move(result).error();
  }
  return *std::move(first);
}

}  // namespace

Result<EthosNCheck> checkEthosN(ByteSpan bytes, WorkBudget& budget) {
  CARINA_TRY(const EthosNProgram program, readEthosN(bytes, ""));
  EthosNCheck check;
  CARINA_TRY(const ByteSpan streamBytes, ethosn::commandStreamBytes(program.network));
  check.words = streamBytes.size() / 4;
  size_t largest = 0;
  for (const ethosn::BufferInfo& info : program.network.inputs)
    largest = std::max<size_t>(largest, info.size);
  constexpr size_t kMaxInput = size_t{512} << 20;
  const std::vector<std::byte> zeros(std::min(largest, kMaxInput));
  std::vector<ByteSpan> inputs;
  for (const ethosn::BufferInfo& info : program.network.inputs) {
    inputs.push_back(ByteSpan(zeros).first(std::min<size_t>(info.size, kMaxInput)));
  }
  auto result = runOn(program, inputs, {.arithmetic = false, .budget = &budget});
  if (!result) {
    for (const Diagnostic& diagnostic : result.error().diagnostics())
      check.findings.push_back(diagnostic.str());
    return check;
  }
  for (const ethosn::Finding& finding : result->findings) check.findings.push_back(finding.str());
  return check;
}

Result<std::vector<Port>> ethosNPorts(const EthosNProgram& program, const NamedTensors& arrays) {
  std::vector<Port> ports;
  bool isSigned = false;
  for (const auto& [name, tensor] : arrays) {
    if (name.starts_with("in") && isFloat(tensor.dtype()))
      return fail(Code::InputMismatch, "{}: holds {}, but a compiled Ethos-N network takes 8-bit codes", name,
                  dtypeName(tensor.dtype()))
          .withRemedy(
              "give round(x / scale) + zero point as int8 or uint8: 'carina compile' prints both of each "
              "input");
    isSigned |= tensor.dtype() == DType::Int8 && name != "labels";
  }
  const DType type = isSigned ? DType::Int8 : DType::UInt8;
  for (const ethosn::BufferInfo& info : program.network.inputs) {
    const std::string name = fmt::format("in{}", ports.size());
    const Tensor* array = findTensor(arrays, name);
    if (array == nullptr && arrays.size() == 1 && program.network.inputs.size() == 1)
      array = findTensor(arrays, "");
    Shape shape{static_cast<int64_t>(info.size)};
    if (array != nullptr && array->numElements() == shape[0]) {
      shape = array->shape();
    } else if (array != nullptr && array->rank() > 1) {
      // Several samples along the leading axis.
      const Shape one(array->shape().begin() + 1, array->shape().end());
      if (numElements(one) == shape[0]) shape = one;
    }
    ports.push_back({fmt::format("input {}", ports.size()), {type, shape}});
  }
  return ports;
}

Result<ethosn::RunResult> runEthosN(const EthosNProgram& program, std::span<const Tensor> inputs, bool check,
                                    WorkBudget& budget) {
  std::vector<ByteSpan> bytes;
  for (const Tensor& input : inputs) bytes.push_back(input.bytes());
  return runOn(program, bytes, {.hazards = check, .budget = &budget});
}

std::vector<Tensor> ethosNOutputs(const std::vector<std::vector<uint8_t>>& outputs,
                                  std::span<const Port> inputs) {
  const DType type = inputs.empty() ? DType::UInt8 : inputs[0].type.dtype;
  std::vector<Tensor> tensors;
  for (const std::vector<uint8_t>& output : outputs) {
    Tensor tensor = Tensor::uninitialized(type, {static_cast<int64_t>(output.size())});
    std::memcpy(tensor.mutableBytes().data(), output.data(), output.size());
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace carina::pipeline
