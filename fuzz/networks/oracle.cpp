// SPDX-License-Identifier: Apache-2.0
#include "networks/oracle.hpp"

#include "decompose/aliases.hpp"
#include "decompose/composites.hpp"
#include "ir/footprint.hpp"
#include "ir/invalid_node.hpp"
#include "ir/verifier.hpp"
#include "pipeline/check.hpp"
#include "pipeline/verify.hpp"
#include "pte/program.hpp"

namespace carina::fuzz {
namespace {

// Networks between these sizes are supported but take seconds each; larger ones are refused.
constexpr int64_t kMostBytes = int64_t{1} << 25, kRefusedBytes = int64_t{1} << 30;

/// Floats in (-1, 1); integers are 0, which is a valid index of a nonempty tensor.
quantize::Sample sampleOf(const std::vector<pipeline::Port>& ports, Choices& choices) {
  uint64_t state = static_cast<uint64_t>(choices.below(256)) + 1;
  quantize::Sample sample;
  for (const pipeline::Port& port : ports) {
    Tensor tensor = Tensor::zeros(port.type.dtype, port.type.shape);
    if (port.type.dtype == DType::Float32) {
      for (float& value : tensor.mutableAs<float>()) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        value = static_cast<float>(static_cast<int64_t>(state >> 40)) / 8388608.0f - 1;
      }
    }
    sample.push_back(std::move(tensor));
  }
  return sample;
}

/// What a reader does with a graph before returning it.
Status settle(ir::Graph& graph) {
  Status status = ir::rejectInvalidNodes(
      "network", [&] { return decompose::replaceAliases(graph, decompose::Copies::Replace); });
  if (status.ok())
    status = ir::rejectInvalidNodes("network", [&] { return decompose::replaceComposites(graph); });
  if (!status.ok()) return status;
  graph.eraseDeadNodes();
  return ir::verify(graph);
}

std::string mismatch(const pipeline::Verification& verification) {
  for (const pipeline::LayerResult& layer : verification.layers) {
    if (layer.mismatches > 0) {
      return fmt::format("NPU and TOSA differ in {} of {} elements of {} ({}, {})", layer.mismatches,
                         layer.elements, layer.value, layer.op, layer.where);
    }
  }
  if (verification.delegateMismatches > 0) return "NPU and TOSA differ";
  if (!verification.findings.empty()) return "the command stream: " + verification.findings.front();
  return {};
}

/// The defect of a compiled program, or an empty string.
std::string runProgram(const pipeline::Build& build, Choices& choices) {
  const auto bytes = pte::writeProgram(build.program);
  if (!bytes) return "compiled, but the program cannot be written: " + bytes.error().str();
  const auto check = pipeline::checkProgram(std::as_bytes(std::span(*bytes)));
  if (!check) return "compiled, but the program cannot be read: " + check.error().str();
  if (!check->ok()) return "compiled, but check says: " + check->problems.front();
  const std::vector<pipeline::Port> ports =
      build.source ? pipeline::inputPorts(*build.source) : pipeline::inputPorts(build.graph());
  const std::vector<quantize::Sample> samples{sampleOf(ports, choices)};
  const auto verification = pipeline::verify(build, samples);
  if (!verification) {
    const std::string why = verification.error().str();
    if (why.find("the model's limit") != std::string::npos) return {};  // valid, but too large for the model
    // PyTorch fails in the same way: divisors are known only at run time.
    for (const char* divided : {"an integer is divided by zero", "integer division by zero"}) {
      if (why.find(divided) != std::string::npos) return {};
    }
    return "compiled, but does not run: " + why;
  }
  return mismatch(*verification);
}

}  // namespace

Verdict tryNetwork(ir::Graph network, Choices& choices) {
  pipeline::Options options;
  options.model = "network.pt2";
  options.madeUpSamples = true;
  options.fitWeights = choices.oneIn(4);  // changes codes only
  options.target = choices.of<const char*>(
      {"ethos-u55-128", "ethos-u85-256", "ethos-u65-256", "ethos-u55-32", "ethos-u85-2048", "cpu"});
  options.quantization = options.target == "cpu" ? pipeline::Quantization::None
                         : choices.oneIn(3)      ? pipeline::Quantization::Int16x8
                                                 : pipeline::Quantization::Int8;
  Verdict verdict;
  verdict.how = fmt::format("{} {}", options.target,
                            options.quantization == pipeline::Quantization::Int16x8 ? "int16x8" : "int8");
  const auto refused = [&](const Error& error) {
    verdict.refusal = error.str();
    if (error.message().empty()) verdict.defect = "an error without a message";
    return verdict;
  };
  if (network.outputs().empty()) {
    verdict.refusal = "no operator fits";
    return verdict;
  }
  if (const int64_t bytes = ir::footprintOf(network).bytes; bytes > kMostBytes && bytes <= kRefusedBytes) {
    verdict.refusal = "it would take long";
    return verdict;
  }
  if (Status status = settle(network); !status.ok()) return refused(status.error());
  std::vector<pipeline::StageTime> times;
  auto front = pipeline::frontOf(options, std::move(network), times);
  if (!front) return refused(front.error());
  const auto build = pipeline::buildFrom(std::move(*front), options, {});
  if (!build) return refused(build.error());
  verdict.served = true;
  verdict.defect = runProgram(*build, choices);
  return verdict;
}

}  // namespace carina::fuzz
