// SPDX-License-Identifier: Apache-2.0
#include "pipeline/ethosn_verify.hpp"

#include <algorithm>

#include "ethosn/lower/tosa_network.hpp"
#include "pipeline/work_limits.hpp"
#include "tosa/interpreter.hpp"

namespace carina::pipeline {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes bytesOf(const Tensor& tensor) {
  Bytes bytes;
  bytes.reserve(static_cast<size_t>(tensor.numElements()));
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    bytes.push_back(static_cast<uint8_t>(tensor.integerAt(i)));
  return bytes;
}

/// How far a result may deviate from the interpreter's.
int64_t toleranceOf(ethosn::Operator op) {
  switch (op) {
    case ethosn::Operator::Multiplication:
    case ethosn::Operator::Addition:
    case ethosn::Operator::LeakyRelu:
    case ethosn::Operator::Sigmoid:
    case ethosn::Operator::Tanh:
      return 2;
    default:
      return 1;
  }
}

/// The tolerance of an operation that follows operations whose results TOSA does not have: 8-bit products
/// with a 7-bit operand (half a code of either operand, and of both results), and look-ups. `isKnown`:
/// whether TOSA has the tensor.
template <typename IsKnown>
int64_t toleranceOf(const ethosn::Network& network, const ethosn::NetworkOperation& operation,
                    const IsKnown& isKnown) {
  constexpr int64_t kOfProducts = 3;
  const int64_t own = toleranceOf(operation.operation.op);
  const int32_t input = operation.inputs[0];
  if (isKnown(input)) return own;
  const auto before =
      std::find_if(network.operations.begin(), network.operations.end(), [input](const auto& other) {
        return std::count(other.outputs.begin(), other.outputs.end(), input) != 0;
      });
  if (before == network.operations.end()) return own;
  if (before->operation.op == ethosn::Operator::Multiplication) return kOfProducts;
  return std::max(own, toleranceOf(network, *before, isKnown));
}

ethosn::Network alone(const ethosn::Network& network, const ethosn::NetworkOperation& operation) {
  ethosn::Network out;
  ethosn::NetworkOperation copy = operation;
  for (int32_t& input : copy.inputs) {
    input = out.addTensor(network.tensors[static_cast<size_t>(input)]);
    out.inputs.push_back(input);
  }
  for (int32_t& output : copy.outputs) {
    output = out.addTensor(network.tensors[static_cast<size_t>(output)]);
    out.outputs.push_back(output);
  }
  out.operations.push_back(std::move(copy));
  return out;
}

}  // namespace

Status EthosNVerifier::open(size_t index, Verification& result) {
  Part& part = parts_[index];
  if (part.open) return {};
  part.open = true;
  const ir::Graph& tosa = build_.partitioned.delegates[index].tosa;
  std::unordered_map<const ir::Value*, int32_t> tensors;
  CARINA_TRY([[maybe_unused]] const ethosn::Network same, ethosn::networkOfTosa(tosa, &tensors));
  for (const ir::Value* input : tosa.inputs()) part.values[tensors.at(input)] = input;
  for (const ir::Node* node : tosa.nodes()) {
    for (const ir::Value* value : node->results()) {
      const auto found = tensors.find(value);
      if (found != tensors.end()) part.values[found->second] = value;
    }
  }
  for (const ethosn::NetworkOperation& operation : build_.ethosNParts[index].operations.operations) {
    auto compiled =
        ethosn::compileNetwork(alone(build_.ethosNParts[index].operations, operation), *build_.ethosN);
    if (!compiled) return std::move(compiled).error();
    part.alone.push_back(std::move(*compiled));
    part.layers.push_back(result.layers.size());
    LayerResult& layer = result.layers.emplace_back();
    const auto value = part.values.find(operation.outputs[0]);
    layer.value = value != part.values.end() ? value->second->name : operation.name;
    layer.op = ethosn::operatorName(operation.operation.op);
    layer.where = operation.name;
  }
  return {};
}

Status EthosNVerifier::add(size_t index, const device::EthosNDelegateRun& run, Verification& result) {
  CARINA_RETURN_IF_ERROR(open(index, result));
  Part& part = parts_[index];
  const ethosn::Network& network = build_.ethosNParts[index].operations;
  const ir::Graph& tosa = build_.partitioned.delegates[index].tosa;
  std::unordered_map<const ir::Value*, Bytes> expected;
  const auto keep = [&](const ir::Value& value, const Tensor& tensor) {
    if (dtypeSize(tensor.dtype()) == 1) expected[&value] = bytesOf(tensor);
  };
  constexpr int kKept = 2;  // each value as the interpreter has it, and by tensor index
  CARINA_RETURN_IF_ERROR(checkValues(tosa, budget_, kKept));
  CARINA_TRY(const std::vector<Tensor> outputs, tosa::interpret(tosa, run.inputs, keep, &budget_));
  for (size_t i = 0; i < tosa.inputs().size(); ++i) expected[tosa.inputs()[i]] = bytesOf(run.inputs[i]);
  const auto codeOf = [&network](int32_t tensor, int64_t value) -> int64_t {
    const bool isSigned = network.tensors[static_cast<size_t>(tensor)].type == ethosn::DataType::S8;
    return isSigned ? static_cast<int8_t>(value) : static_cast<uint8_t>(value);
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (int64_t k = 0; k < outputs[i].numElements(); ++k) {
      const int64_t distance = std::abs(codeOf(network.outputs[i], outputs[i].integerAt(k)) -
                                        codeOf(network.outputs[i], run.outputs[i].integerAt(k)));
      ++result.offTosa.elements;
      result.offTosa.different += distance != 0;
      result.offTosa.worst = std::max(result.offTosa.worst, distance);
    }
  }
  std::vector<Bytes> tensors(network.tensors.size());
  for (const auto& [tensor, value] : part.values) {
    const auto found = expected.find(value);
    if (found != expected.end()) tensors[static_cast<size_t>(tensor)] = found->second;
  }
  for (size_t i = 0; i < network.operations.size(); ++i) {
    const ethosn::NetworkOperation& operation = network.operations[i];
    std::vector<ByteSpan> inputs;
    for (int32_t input : operation.inputs)
      inputs.push_back(std::as_bytes(std::span(tensors[static_cast<size_t>(input)])));
    CARINA_TRY(ethosn::RunResult ran, ethosn::runNetwork(part.alone[i], inputs, *build_.ethosN,
                                                         {.hazards = false, .budget = &budget_}));
    for (size_t o = 0; o < operation.outputs.size(); ++o) {
      const auto tensor = static_cast<size_t>(operation.outputs[o]);
      if (tensors[tensor].size() != ran.outputs[o].size()) {
        tensors[tensor] = std::move(ran.outputs[o]);
        continue;
      }
      LayerResult& layer = result.layers[part.layers[i]];
      const int64_t tolerance = toleranceOf(
          network, operation, [&part](int32_t of) { return part.values.find(of) != part.values.end(); });
      layer.elements += static_cast<int64_t>(ran.outputs[o].size());
      for (size_t k = 0; k < ran.outputs[o].size(); ++k) {
        const int64_t want = codeOf(operation.outputs[o], tensors[tensor][k]),
                      got = codeOf(operation.outputs[o], ran.outputs[o][k]);
        if (std::abs(want - got) <= tolerance) continue;
        if (layer.mismatches++ != 0) continue;
        layer.firstMismatch = static_cast<int64_t>(k);
        layer.expected = want;
        layer.actual = got;
      }
    }
  }
  return {};
}

}  // namespace carina::pipeline
