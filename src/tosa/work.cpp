// SPDX-License-Identifier: Apache-2.0
#include "tosa/work.hpp"

#include "tosa/op_facts.hpp"
#include "tosa/tosa.hpp"

namespace carina::tosa {
namespace {

// Costs of the interpreter's kernels in steps, measured on one core of a 2020s x86 machine and rounded up.
constexpr double kNode = 500;
constexpr double kOutput = 2, kInput = 0.5, kReduced = 6, kFunction = 10, kPower = 40, kTap = 1.5,
                 kFourier = 2;
constexpr double kProduct = 0.1, kFloatProduct = 1.5, kRun = 3;  // runs: contiguous products

double elements(const std::vector<ir::Value*>& values) {
  double sum = 0;
  for (const ir::Value* value : values) {
    if (value != nullptr) sum += static_cast<double>(value->numElements());
  }
  return sum;
}

double productOf(const ir::Value& operand) {
  return isFloat(operand.dtype()) ? kFloatProduct : kProduct;
}

/// Products per element of the result: all of the weight except its output channels.
double convolutionOf(const ir::Node& node, double out) {
  const ir::Value& weight = *node.operand(1);
  const double channels = static_cast<double>(node.result()->shape().back());
  const double taps = static_cast<double>(weight.numElements()) / std::max(channels, 1.0);
  const double inner = ir::isa<DepthwiseConv2d>(&node) ? 1 : static_cast<double>(weight.shape().back());
  return out * (taps * productOf(*node.operand(0)) + taps / std::max(inner, 1.0) * kRun);
}

double windowOf(const ir::Node& node, double out) {
  const int kernel = node.def().attributeIndex("kernel");
  double taps = kTap;
  for (const int64_t size : node.attributeAs<ir::Ints>(static_cast<size_t>(kernel)))
    taps *= static_cast<double>(size);
  return out * taps;
}

double fourierOf(const ir::Node& node) {
  const ir::Value& input = *node.operand(0);
  const double sides = static_cast<double>(input.shape()[1]) + static_cast<double>(input.shape()[2]);
  return static_cast<double>(input.numElements()) * sides * kFourier;
}

}  // namespace

double workOf(const ir::Node& node) {
  const double out = elements(node.results()), in = elements(node.operands());
  const double steps = kNode + out * kOutput + in * kInput;
  switch (factsOf(node.def()).work) {
    case WorkClass::Elements:
      return steps;
    case WorkClass::Convolution:
      return steps + convolutionOf(node, out);
    case WorkClass::Window:
      return steps + windowOf(node, out);
    case WorkClass::Product: {
      const ir::Value& a = *node.operand(0);
      return steps + out * (static_cast<double>(a.shape().back()) * productOf(a) + kRun);
    }
    case WorkClass::Fourier:
      return steps + fourierOf(node);
    case WorkClass::Reduction:
      return steps + in * kReduced;
    case WorkClass::Function:
      return steps + out * kFunction;
    case WorkClass::Power:
      return steps + out * kPower;
  }
  return steps;
}

double workOf(const ir::Graph& graph) {
  double steps = 0;
  for (const ir::Node* node : graph.nodes()) steps += workOf(*node);
  return steps;
}

}  // namespace carina::tosa
