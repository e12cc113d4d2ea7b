// SPDX-License-Identifier: Apache-2.0
#include "tosa/float_rules.hpp"

#include <cmath>

#include "tosa/interpreter.hpp"
#include "tosa/tosa.hpp"
#include "tosa/vector_files.hpp"

namespace carina::test {
namespace {

using tosa::OpId;

constexpr double kFraction = 0x1p-23, kSmallestNormal = 0x1p-126;
constexpr double kLargest = 0x1p128 - 0x1p104;

/// The specification's comparison with an allowed error.
bool within(double test, double reference, double error) {
  if (std::isnan(reference)) return std::isnan(test);
  if (!std::isfinite(error)) return true;
  if (reference < 0) {
    test = -test;
    reference = -reference;
  }
  double high = reference + error, low = reference - error;
  if (high > kLargest) high = INFINITY;
  if (low > kLargest) low = INFINITY;
  if (low < -kLargest) low = -INFINITY;
  if (test == 0) return low < kSmallestNormal;
  return low <= test && test <= high;
}

double ulps(double reference, double count) {
  if (reference == 0 || !std::isfinite(reference)) return 0;
  return count * std::max(std::exp2(std::floor(std::log2(std::fabs(reference)))), kSmallestNormal) *
         kFraction;
}

double absoluteBound(double magnitude, double value, double lower, double divisor) {
  double m = std::max(std::fabs(magnitude), kSmallestNormal);
  if (lower > 0) m = std::max(lower / value, m);
  if (std::isinf(value) && magnitude == 0) return 0;
  return std::exp2(-23 / divisor) * m * value;
}

double largestMagnitude(const Tensor& tensor) {
  double largest = 0;
  for (int64_t i = 0; i < tensor.numElements(); ++i) largest = std::max(largest, std::fabs(tensor.realAt(i)));
  return largest;
}

Tensor magnitudes(const Tensor& tensor) {
  if (!isFloat(tensor.dtype())) return tensor;
  std::vector<float> values;
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    values.push_back(static_cast<float>(std::fabs(tensor.realAt(i))));
  return Tensor::from<float>(tensor.shape(), values);
}

/// Number of products or terms per result element of a dot-product operator; 0 for all other operators.
int64_t dotProductLength(const ir::Node& node) {
  const auto weightSize = [&](std::initializer_list<int64_t> dims) {
    int64_t count = 1;
    for (int64_t d : dims) count *= node.operand(1)->dim(d);
    return count;
  };
  switch (tosa::opId(&node)) {
    case OpId::Conv2d:
    case OpId::TransposeConv2d:
      return weightSize({1, 2, 3});
    case OpId::Conv3d:
      return weightSize({1, 2, 3, 4});
    case OpId::DepthwiseConv2d:
      return weightSize({0, 1});
    case OpId::Matmul:
      return node.operand(0)->dim(2);
    case OpId::AvgPool2d:
      return node.attributeAs<ir::Ints>(0)[0] * node.attributeAs<ir::Ints>(0)[1];
    case OpId::ReduceSum:
      return node.operand(0)->dim(node.attributeAs<int64_t>(0));
    case OpId::Fft2d:
    case OpId::Rfft2d:
      return node.operand(0)->dim(1) * node.operand(0)->dim(2);
    default:
      return 0;
  }
}

/// The results of the same graph on absolute values, which bound the rounding errors of a dot product.
Result<std::vector<Tensor>> boundsOf(const Vector& vector, const ir::Node& node) {
  std::vector<Tensor> inputs;
  for (const Tensor& input : vector.inputs) inputs.push_back(magnitudes(input));
  const bool isFft = ir::isa<tosa::Fft2d>(&node) || ir::isa<tosa::Rfft2d>(&node);
  if (isFft) {  // cosines and sines are at most 1
    double sum = 0;
    for (const Tensor& input : inputs) {
      for (int64_t i = 0; i < input.numElements(); ++i) sum += input.realAt(i);
    }
    std::vector<Tensor> bounds;
    for (const ir::Value* result : node.results()) {
      bounds.push_back(Tensor::from<float>(
          result->shape(),
          std::vector<float>(static_cast<size_t>(result->numElements()), static_cast<float>(sum))));
    }
    return bounds;
  }
  ir::Graph positive = vector.graph.clone();
  for (const auto& constant : positive.constants()) constant->setConstant(magnitudes(constant->constant()));
  return tosa::interpret(positive, inputs);
}

/// Error allowed for element i, for the operators that are not dot products.
double allowedError(const ir::Node& node, const std::vector<Tensor>& in, int64_t i, double ref) {
  const auto x = [&] { return in[0].realAt(i); };
  switch (tosa::opId(&node)) {
    case OpId::Add:
    case OpId::Sub:
    case OpId::Mul:
    case OpId::Ceil:
    case OpId::Floor:
    case OpId::Cast:
      return ulps(ref, 0.5);
    case OpId::Reciprocal:
      return ulps(ref, 1);
    case OpId::Rsqrt:
      return ulps(ref, 2);
    case OpId::Erf:
      return ulps(ref, 5);
    case OpId::Exp:
      return absoluteBound(ref, 3 + 2 * std::fabs(x()), 0, 1);
    case OpId::Log:
      return absoluteBound(ref, 5, 0.5, 1);
    case OpId::Sin:
      return std::max(absoluteBound(x(), 2, 0, 2), 3.15 * kSmallestNormal);
    case OpId::Cos:
      return absoluteBound(1 + std::fabs(x()), 1, 0, 2);
    case OpId::Sigmoid:
      return absoluteBound(ref, 2 * (1 + std::fabs(x())), 0, 1);
    case OpId::Tanh:
      return absoluteBound(ref, 4 * (3 + 2 * std::fabs(x())), 0.5, 1);
    case OpId::ReduceProduct: {
      const auto n = static_cast<double>(in[0].dim(node.attributeAs<int64_t>(0)));
      return std::max(std::fabs(ref), kSmallestNormal) * (std::pow(1 + 0x1p-24, n) - 1);
    }
    case OpId::Pow: {
      if (in[0].shape() != node.result()->shape() || in[1].shape() != node.result()->shape())
        return ulps(ref, 64);
      const double base = in[0].realAt(i), exponent = in[1].realAt(i), log = exponent * std::log(base);
      const double m = absoluteBound(log, 5.5, std::fabs(0.55 * exponent), 1);
      return ref * std::expm1(m) + absoluteBound(ref, 3 + 2 * std::fabs(log + m), 0, 1);
    }
    case OpId::Resize: {
      if (node.attributeAs<int64_t>(0) == static_cast<int64_t>(tosa::ResizeMode::NEAREST)) return 0;
      const double largest = largestMagnitude(in[0]);
      return std::max(absoluteBound(largest, 20, 0, 1), 0.006 * largest);
    }
    default:
      return 0;
  }
}

}  // namespace

::testing::AssertionResult withinTolerance(const std::filesystem::path& tosa,
                                           const std::filesystem::path& npz) {
  const auto vector = readVector(tosa, npz);
  if (!vector.ok()) return ::testing::AssertionFailure() << vector.error().str();
  if (vector->graph.numNodes() != 1) return ::testing::AssertionFailure() << "the rules are for one operator";
  const ir::Node& node = *vector->graph.firstNode();
  const auto results = tosa::interpret(vector->graph, vector->inputs);
  if (!results.ok()) return ::testing::AssertionFailure() << results.error().str();
  const int64_t length = dotProductLength(node);
  auto bounds = length > 0 ? boundsOf(*vector, node) : Result<std::vector<Tensor>>(std::vector<Tensor>{});
  if (!bounds.ok()) return ::testing::AssertionFailure() << bounds.error().str();

  std::vector<Tensor> operands;  // inputs and constants in operand order
  for (const ir::Value* operand : node.operands()) {
    const auto& inputs = vector->graph.inputs();
    const auto it = std::find(inputs.begin(), inputs.end(), operand);
    operands.push_back(it == inputs.end() ? operand->constant()
                                          : vector->inputs[static_cast<size_t>(it - inputs.begin())]);
  }
  for (size_t k = 0; k < results->size(); ++k) {
    const Tensor& result = (*results)[k];
    const Tensor* reference = findTensor(vector->arrays, fmt::format("ref{}", k));
    if (!reference || reference->shape() != result.shape())
      return ::testing::AssertionFailure() << "no ref" << k << " of this shape";
    for (int64_t i = 0; i < result.numElements(); ++i) {
      const double test = result.realAt(i), ref = reference->realAt(i);
      double error = 0;
      if (length > 0) {
        const double bound = std::max((*bounds)[k].realAt(i), kSmallestNormal * static_cast<double>(length));
        error = 2.0 * static_cast<double>(length + 1) * std::max(bound * 0x1p-24, kSmallestNormal);
      } else if (isFloat(result.dtype())) {
        error = allowedError(node, operands, i, ref);
      }
      if (!within(test, ref, error)) {
        return ::testing::AssertionFailure() << node.opName() << " element " << i << ": " << test
                                             << " instead of " << ref << ", allowed error " << error;
      }
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace carina::test
